"""Enqueue, find, show, draw and change workflows, and list the types that may be enqueued."""
