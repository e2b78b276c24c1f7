"""The app that holds the tasks."""
