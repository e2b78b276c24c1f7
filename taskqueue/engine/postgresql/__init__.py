"""PostgreSQL's dialect of the engine's statements: single statements, row locks, `NOTIFY`."""

from taskqueue.engine.postgresql import claim as claiming
from taskqueue.engine.postgresql import (
    duties,
    enqueue,
    limit_count,
    limit_lock,
    limit_take,
    record,
    record_notes,
    workflows,
)


class PostgreSQL:
    """The statements, by the verbs that use them."""

    now = staticmethod(enqueue.now)
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
    insert_logs = staticmethod(record_notes.insert_logs)
    write_notes = staticmethod(record_notes.write_notes)
    renew = staticmethod(duties.renew)
    see_stops = staticmethod(duties.see_stops)
    promote = staticmethod(duties.promote)
    end_overdue = staticmethod(duties.end_overdue)
    prune = staticmethod(duties.prune)
    fold = staticmethod(workflows.fold)
    insert_step_tasks = staticmethod(workflows.insert_step_tasks)
    wake_sleeping = staticmethod(workflows.wake_sleeping)
    lock_limits = staticmethod(limit_lock.lock_limits)
    count_limits = staticmethod(limit_count.count_limits)
    take_limited = staticmethod(limit_take.take_limited)
    reopen_partitions = staticmethod(limit_take.reopen_partitions)
