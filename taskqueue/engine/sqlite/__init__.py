"""SQLite's dialect of the engine's statements: a few short ones under `BEGIN IMMEDIATE`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from taskqueue.core.lazy_names import LateFunctions

if TYPE_CHECKING:
    from taskqueue.engine.sqlite import claim as claiming
    from taskqueue.engine.sqlite import (
        duties,
        enqueue,
        limit_count,
        limit_lock,
        limit_take,
        record,
        reports,
        values,
        waking,
        workflows,
    )


class SQLite(metaclass=LateFunctions):
    """The statements, named after the verbs that use them; imported when they are needed."""

    FUNCTIONS: ClassVar[Mapping[str, str]] = {
        "taskqueue.engine.sqlite.enqueue": "insert insert_many insert_keyed",
        "taskqueue.engine.sqlite.claim": "claim earliest_ready candidates insert_lease",
        "taskqueue.engine.sqlite.record": "record_successes record_endings",
        "taskqueue.engine.sqlite.reports": "insert_logs write_notes",
        "taskqueue.engine.sqlite.duties": (
            "write_rollups take_arrivals renew see_stops promote end_overdue prune"
        ),
        "taskqueue.engine.sqlite.workflows": "fold insert_step_tasks",
        "taskqueue.engine.sqlite.waking": "wake_sleeping",
        "taskqueue.engine.sqlite.limit_lock": "lock_limits",
        "taskqueue.engine.sqlite.limit_count": "count_limits",
        "taskqueue.engine.sqlite.limit_take": "take_limited reopen_partitions",
        "taskqueue.engine.sqlite.values": "now",
    }

    if TYPE_CHECKING:
        now = staticmethod(values.now)
        insert = staticmethod(enqueue.insert)
        insert_many = staticmethod(enqueue.insert_many)
        insert_keyed = staticmethod(enqueue.insert_keyed)
        claim = staticmethod(claiming.claim)
        earliest_ready = staticmethod(claiming.earliest_ready)
        candidates = staticmethod(claiming.candidates)
        insert_lease = staticmethod(claiming.insert_lease)
        record_successes = staticmethod(record.record_successes)
        record_endings = staticmethod(record.record_endings)
        write_rollups = staticmethod(duties.write_rollups)
        take_arrivals = staticmethod(duties.take_arrivals)
        insert_logs = staticmethod(reports.insert_logs)
        write_notes = staticmethod(reports.write_notes)
        renew = staticmethod(duties.renew)
        see_stops = staticmethod(duties.see_stops)
        promote = staticmethod(duties.promote)
        end_overdue = staticmethod(duties.end_overdue)
        prune = staticmethod(duties.prune)
        fold = staticmethod(workflows.fold)
        insert_step_tasks = staticmethod(workflows.insert_step_tasks)
        wake_sleeping = staticmethod(waking.wake_sleeping)
        lock_limits = staticmethod(limit_lock.lock_limits)
        count_limits = staticmethod(limit_count.count_limits)
        take_limited = staticmethod(limit_take.take_limited)
        reopen_partitions = staticmethod(limit_take.reopen_partitions)
