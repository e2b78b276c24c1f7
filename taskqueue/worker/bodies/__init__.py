"""The code that runs in a child: orders become attempts, which run the project's bodies."""
