"""Workflows: enqueue, find, show, draw and change them; the types that may be enqueued."""
