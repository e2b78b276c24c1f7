"""Webhooks: their endpoints, the deliveries that events cause, and the outcomes of these."""
