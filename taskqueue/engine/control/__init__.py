"""Verbs of people on tasks, queues and workers: guarded and audited."""
