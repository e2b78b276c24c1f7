"""Processes that a measurement starts: each does one thing and answers in JSON."""
