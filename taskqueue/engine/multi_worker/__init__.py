"""Tasks of several workers: each of `workers` distinct ones must succeed.

`open_slots`, `running_leases` and `successes` are changed arithmetically under the task's lock,
never counted from the leases.
"""

from taskqueue.engine.multi_worker.closing import (
    begin_anew,
    close,
    end_overdue,
    has_all_successes,
    reopen,
)
from taskqueue.engine.multi_worker.recording import NEVER, SharedRecord, record_shared
from taskqueue.engine.multi_worker.settling import ended, leases_of, settle

__all__ = [
    "NEVER",
    "SharedRecord",
    "begin_anew",
    "close",
    "end_overdue",
    "ended",
    "has_all_successes",
    "leases_of",
    "record_shared",
    "reopen",
    "settle",
]
