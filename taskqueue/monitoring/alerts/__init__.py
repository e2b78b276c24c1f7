"""Judging alert rules, with the functions that the dashboard, `top` and the doctor use."""
