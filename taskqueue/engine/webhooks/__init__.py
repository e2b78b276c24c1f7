"""Webhooks: endpoints, the deliveries that events cause, and their outcomes."""
