"""The subcommands of `manage.py taskqueue`; each group has a module."""

from taskqueue.management.cli import (
    acting,
    alerts,
    calls,
    definitions,
    diagnosis,
    events,
    export,
    groups,
    limits,
    logs,
    operations,
    queues,
    records,
    schedules,
    stats,
    tasks,
    top,
    webhooks,
    workers,
    workflows,
)

SUBCOMMANDS = (
    tasks.listed, tasks.show, tasks.why, logs.logs, export.export, definitions.tasks,
    tasks.enqueue, calls.enqueue_many, *acting.VERBS,
    limits.release, workers.stop, workers.pause, workers.resume, workers.pauses, queues.queues,
    workers.workers, limits.limits,
    schedules.schedules, workflows.workflows, groups.groups, events.events, alerts.alerts,
    webhooks.webhooks, operations.operations, stats.stats, top.top, records.failures, records.audit,
    diagnosis.doctor, diagnosis.health, diagnosis.prune, diagnosis.roles,
)  # fmt: skip
