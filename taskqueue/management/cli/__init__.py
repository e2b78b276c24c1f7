"""The subcommands of `manage.py taskqueue`, a group a file."""

from taskqueue.management.cli import (
    acting,
    diagnosis,
    groups,
    schedules,
    stats,
    tasks,
    top,
    workers,
    workflows,
)

SUBCOMMANDS = (
    tasks.listed, tasks.show, tasks.why, tasks.enqueue, *acting.VERBS,
    workers.stop, workers.pause, workers.resume, workers.pauses, workers.queues, workers.workers,
    schedules.schedules, workflows.workflows, groups.groups, acting.operations, stats.stats,
    top.top, diagnosis.doctor, diagnosis.health, diagnosis.prune, diagnosis.roles,
)  # fmt: skip
