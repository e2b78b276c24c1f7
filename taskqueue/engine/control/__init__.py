"""What people do by hand to tasks, queues and workers: guarded and audited."""
