"""The code that runs in a child: it turns orders into attempts, which run the project's bodies."""
