"""Alerts: rules that are due, incidents and messages. `monitoring.alerts` judges the rules."""
