"""Searching tasks: the syntax of the search box, and pages of matching tasks."""
