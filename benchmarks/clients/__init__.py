"""Processes that a measurement starts: each does one thing and prints its result as JSON."""
