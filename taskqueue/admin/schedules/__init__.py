"""Schedules in the admin: the list, the page, the form, and what people do to them."""
