"""Alerts: taking up rules, incidents and who is told of them; judging is `monitoring.alerts`."""
