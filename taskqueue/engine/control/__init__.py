"""The verbs by which people change tasks, queues and workers, guarded and audited."""
