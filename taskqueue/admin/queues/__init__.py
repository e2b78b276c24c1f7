"""Queues in the admin: which there are, how each does, and the buttons that pause and resume."""
