"""Webhooks: their endpoints, the deliveries that events cause, and what came of each."""
