"""Schedules in the admin: the list, the page, the form, and the buttons."""
