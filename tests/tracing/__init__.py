"""Spans of enqueues and attempts, in one trace across processes."""
