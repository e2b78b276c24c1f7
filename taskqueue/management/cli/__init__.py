"""The subcommands of `manage.py taskqueue`, a group a file."""

from taskqueue.management.cli.acting import ACTING
from taskqueue.management.cli.diagnosis import DOCTOR, HEALTH
from taskqueue.management.cli.enqueueing import ENQUEUE
from taskqueue.management.cli.listing import LIST
from taskqueue.management.cli.maintenance import PRUNE, ROLES
from taskqueue.management.cli.operations import OPERATIONS
from taskqueue.management.cli.queues import PAUSE, QUEUES, RESUME
from taskqueue.management.cli.schedules import SCHEDULES
from taskqueue.management.cli.showing import SHOW, WHY
from taskqueue.management.cli.stats import STATS
from taskqueue.management.cli.top import TOP
from taskqueue.management.cli.workers import WORKERS

SUBCOMMANDS = (
    LIST, SHOW, WHY, ENQUEUE, *ACTING, PAUSE, RESUME, QUEUES, WORKERS, SCHEDULES,
    OPERATIONS, STATS, TOP,
    DOCTOR, HEALTH, PRUNE, ROLES,
)  # fmt: skip

__all__ = ["SUBCOMMANDS"]
