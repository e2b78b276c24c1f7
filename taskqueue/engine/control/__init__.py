"""The verbs by which people act on tasks, queues and workers: guarded and audited."""
