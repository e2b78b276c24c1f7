"""Verbs on rows, and the only code that changes a status."""
