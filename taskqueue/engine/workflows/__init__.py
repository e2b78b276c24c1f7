"""Workflows as rows: insert graphs, count the ends of their tasks, and advance them."""
