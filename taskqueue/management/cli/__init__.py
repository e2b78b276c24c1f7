"""The subcommands of `manage.py taskqueue`, a group a file."""

from taskqueue.management.cli import (
    acting,
    alerts,
    diagnosis,
    events,
    groups,
    limits,
    queues,
    schedules,
    stats,
    tasks,
    top,
    webhooks,
    workers,
    workflows,
)

SUBCOMMANDS = (
    tasks.listed, tasks.show, tasks.why, tasks.enqueue, *acting.VERBS,
    limits.release, workers.stop, workers.pause, workers.resume, workers.pauses, queues.queues,
    workers.workers, limits.limits,
    schedules.schedules, workflows.workflows, groups.groups, events.events, alerts.alerts,
    webhooks.webhooks, acting.operations, stats.stats,
    top.top, diagnosis.doctor, diagnosis.health, diagnosis.prune, diagnosis.roles,
)  # fmt: skip
