"""Bugs in claims under limits."""

from __future__ import annotations

import time
from typing import Any

from taskqueue.engine.statement import change
from tests.chaos.bugs.planting import Planting

ENGINE = "taskqueue.engine"
TURN, MOVES = f"{ENGINE}.limits.turn", f"{ENGINE}.limits.moves"
SHARING = f"{ENGINE}.limits.sharing"


def _texts(planting: Planting, step: str) -> str:
    return f"{ENGINE}.{planting.vendor}.limit_{step}"


def counts_with_the_lock(planting: Planting) -> None:
    """Places are counted by the snapshot with which the locks were asked for."""
    path = f"{_texts(planting, 'lock')}:LOCK"
    planting.rewrite(
        path,
        "SELECT\n    (SELECT json_agg(candidate) FROM candidate)::text,",
        "SELECT\n    (SELECT jsonb_object_agg(limiter_id, number) FROM (\n"
        "        SELECT slot.limiter_id, count(*) AS number FROM taskqueue_slot AS slot\n"
        "        JOIN taskqueue_lease AS lease ON lease.id = slot.lease_id\n"
        "        WHERE lease.finished_at IS NULL GROUP BY 1) AS counted)::text AS counted,\n"
        "    (SELECT json_agg(candidate) FROM candidate)::text,",
    )
    import json

    from taskqueue.engine.postgresql import limit_lock

    kept: dict[str, Any] = {}

    def fetching(connection: Any, statement: str, parameters: Any = ()) -> Any:
        rows = before_fetch(connection, statement, parameters)
        if statement is limit_lock.LOCK:
            ((counted, *others),) = rows
            kept["counted"] = json.loads(counted or "{}")
            time.sleep(0.01)
            return [tuple(others)]
        return rows

    def count(*arguments: Any, **named: Any) -> Any:
        counted = before_count(*arguments, **named)
        running = {id.replace("-", ""): number for id, number in kept["counted"].items()}
        return counted._replace(running=running)

    # All claims wait for limiters, as the snapshot is old only then.
    planting.replace(f"{_texts(planting, 'lock')}:LOCK_AT_ONCE", limit_lock.LOCK)
    before_fetch = planting.replace(f"{_texts(planting, 'lock')}:fetch", fetching)
    before_count = _replaced(planting, "count_limits", count)


def limiters_not_locked(planting: Planting) -> None:
    """Claims of different partitions under one limiter count at the same time."""
    for name, ending in (("LOCK", ""), ("LOCK_AT_ONCE", " SKIP LOCKED")):
        path = f"{_texts(planting, 'lock')}:{name}"
        planting.rewrite(
            path,
            f"WHERE id = wanted.id\n        LIMIT 1\n        FOR UPDATE{ending}\n",
            "WHERE id = wanted.id\n        LIMIT 1\n",
        )
        planting.rewrite(
            path,
            "WHERE id = noted.id AND id <> ALL (ARRAY(SELECT id FROM needed))\n        LIMIT 1\n"
            "        FOR UPDATE SKIP LOCKED",
            "WHERE id = noted.id AND id <> ALL (ARRAY(SELECT id FROM needed))\n        LIMIT 1",
        )

    def count(*arguments: Any, **named: Any) -> Any:
        counted = before(*arguments, **named)
        time.sleep(0.05)
        return counted

    before = _replaced(planting, "count_limits", count)


def ended_leases_take_places(planting: Planting) -> None:
    """A slot counts whether its lease runs or not, and ends leave theirs to others."""
    old, new = {
        "postgresql": ("WHERE id = slot.lease_id AND finished_at IS NULL", "WHERE true"),
        "sqlite": ("WHERE lease.finished_at IS NULL\nGROUP BY", "GROUP BY"),
    }[planting.vendor]
    name = "COUNT" if planting.vendor == "postgresql" else "RUNNING"
    planting.rewrite(f"{_texts(planting, 'count')}:{name}", old, new)

    _leave_slots(planting)


def ends_not_noted(planting: Planting) -> None:
    """Nobody is told of a place that came free."""

    _leave_slots(planting)


def notes_forgotten_without_lock(planting: Planting) -> None:
    """A claim deletes all notes that it has read, also of what others hold."""

    def count(connection: Any, locked: Any, **named: Any) -> Any:
        counted = before(connection, locked, **named)
        change(
            connection,
            "DELETE FROM taskqueue_limitnote WHERE subject = ANY (%s::uuid[])",
            (list(locked.noted),),
        )
        return counted

    before = _replaced(planting, "count_limits", count)


def locked_tasks_are_no_tasks(planting: Planting) -> None:
    """A partition is empty as soon as all of its tasks are held by somebody."""
    planting.rewrite(
        f"{_texts(planting, 'take')}:TAKE",
        "ORDER BY priority DESC, run_after, id\n        LIMIT 1\n    ) AS head ON true",
        "ORDER BY priority DESC, run_after, id\n        LIMIT 1\n        FOR UPDATE SKIP LOCKED\n"
        "    ) AS head ON true",
    )


def allotted_counts_as_taken(planting: Planting) -> None:
    """A place stays closed that was allotted to a task which somebody held."""
    planting.replace(f"{TURN}:Turn._reopen", lambda self, shares, got: None)


def counters_dropped_early(planting: Planting) -> None:
    """A start is forgotten when half of the window is over."""

    def left(self: Any, now: float) -> int:
        first = self._part(now - 0.5 * self.seconds)
        self.taken = {part: number for part, number in self.taken.items() if part >= first}
        return max(0, self.rate - sum(self.taken.values()))

    planting.replace("taskqueue.core.rates:Window.left", left)


def holder_forgotten_on_retry(planting: Planting) -> None:
    """What follows in a sequence starts while a task waits for its retry."""
    from taskqueue.core.states import FINISHED

    planting.replace(f"{MOVES}:FINISHED", frozenset({*FINISHED, "retrying"}))


def places_not_passed(planting: Planting) -> None:
    """A task takes over the turn of another one, but not its places."""
    _rewrite_passing(
        planting,
        "WHERE slot.lease_id = ANY (ARRAY[claimed.before])",
        "WHERE slot.lease_id = ANY (ARRAY[claimed.before]) AND false",
    )


def passed_beyond_the_limit(planting: Planting) -> None:
    """Places pass on although the limit allows fewer by now."""
    _rewrite_passing(planting, "LEAST(asked.number, bound.left_over)", "asked.number")


def passed_places_not_noted(planting: Planting) -> None:
    """Nobody is told of a place that could not pass on."""
    _rewrite_passing(
        planting, "SELECT limiter_id FROM freed\n)", "SELECT limiter_id FROM freed WHERE false\n)"
    )


def bounds_of_the_lock(planting: Planting) -> None:
    """A claim goes by numbers of limits that it read before it waited for their limiters."""
    from taskqueue.engine.postgresql import limit_lock

    planting.replace(f"{SHARING}:as_now", lambda row, counted: row)

    def lock(*arguments: Any, **named: Any) -> Any:
        locked = before(*arguments, **named)
        time.sleep(0.05)
        return locked

    # All claims wait for limiters, as the snapshot is old only then.
    planting.replace(f"{_texts(planting, 'lock')}:LOCK_AT_ONCE", limit_lock.LOCK)
    before = _replaced(planting, "lock_limits", lock)


def places_of_lost_sequences(planting: Planting) -> None:
    """All partitions of a claim are reopened as they were where one task could not be had."""

    def reopen(self: Any, shares: Any, got: Any) -> None:
        before = [share.row for share in shares if share.tasks]
        self._dialect.reopen_partitions(self._connection, before, limiters=[])
        self.is_left = True

    planting.replace(f"{TURN}:Turn._reopen", reopen)


def idleness_earns_credit(planting: Planting) -> None:
    """The virtual time of a tenant that was idle is not lifted to that of the others."""
    planting.replace(f"{SHARING}:lift_idle", lambda shares, floors: None)


def limited_queues_cached(planting: Planting) -> None:
    """A worker goes by the limited queues that there were when it started."""
    name, old, new = {
        "postgresql": ("CLAIM", "WHERE limiter_id IS NOT NULL OR paused_at", "WHERE paused_at"),
        "sqlite": ("PICK", "WHERE limiter_id IS NOT NULL\n", "WHERE false\n"),
    }[planting.vendor]
    planting.rewrite(f"{ENGINE}.{planting.vendor}.claim:{name}", old, new)


def _leave_slots(planting: Planting) -> None:
    """The trigger does not see that a lease takes places."""

    def take(connection: Any, *arguments: Any, **named: Any) -> Any:
        from taskqueue.engine.connections import installed
        from taskqueue.models import Lease

        claimed = before(connection, *arguments, **named)
        with installed(connection):
            ids = [row.lease_id for row in claimed]
            Lease.objects.filter(id__in=ids).update(is_limited=False)
        return claimed

    before = _replaced(planting, "take_limited", take)


def _rewrite_passing(planting: Planting, old: str, new: str) -> None:
    """Put other words into the statements that pass places on."""
    planting.rewrite(f"{ENGINE}.postgresql.limit_pass:PASS_ON", old, new)
    planting.rewrite(f"{ENGINE}.postgresql.limit_pass_at_once:RECORD_AND_PASS", old, new)


def _replaced(planting: Planting, verb: str, function: Any) -> Any:
    """Put a function in place of a verb of the dialect; what was."""
    before = planting.replace(planting.wording(verb), staticmethod(function))
    return before.__func__
