"""Alerts: take up rules, follow incidents, and tell people.

`monitoring.alerts` judges conditions.
"""
