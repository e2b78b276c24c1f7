"""Endpoints of webhooks: their list, the page of each with its deliveries, and their forms."""
