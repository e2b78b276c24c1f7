"""Judging alert rules, by the functions that the dashboard, `top` and the doctor use."""
