"""The code of a child process: it turns orders into attempts, which run the project's bodies."""
