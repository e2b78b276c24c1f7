"""Judging a run: the checker's invariants, the required ends, and the fault's own checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from django.db import connection

from taskqueue.core.states import FINISHED
from taskqueue.models import Lease, Task
from tests.chaos.faults.base import Fault
from tests.chaos.fleet import LEASE, PING, TAKEOVER_INTERVAL
from tests.chaos.gathering import gather
from tests.chaos.history import Bounds, Death, History
from tests.chaos.limit_rows import STOOD_STILL
from tests.chaos.lock_probe import beside
from tests.chaos.pace import kept
from tests.chaos.stage import Stage
from tests.chaos.takeover import percentile, takeovers
from tests.chaos.verdict import Verdict

MOST_SHOWN = 5
BOUNDS = Bounds(lease=LEASE, ping=PING, takeover_interval=TAKEOVER_INTERVAL, shutdown_timeout=15.0)


def judge(fault: Fault, stage: Stage, verdict: Verdict, *, has_ended: bool) -> None:
    """Enter all that is to be said of the run into its verdict."""
    history = gather(
        client_log=stage.folder / "client",
        journals=[stage.journal],
        terms=stage.terms,
        deaths=[Death(worker.name, at) for worker in stage.workers for at in worker.deaths],
        faults=stage.faults,
        stalls=stage.pace.stalls(),
        lock_waits=stage.lock_waits(),
        verbs=stage.verbs,
        event_log=stage.folder / "events",
        limit_changes=stage.limit_changes,
        limit_repairs=sum(worker.log().count(STOOD_STILL) for worker in stage.workers),
        heard=stage.heard,
        is_over=True,
        bounds=replace(BOUNDS, lease=stage.lease, looks_again=connection.vendor == "sqlite"),
    )
    history.save(stage.folder / "history.json")
    verdict.tasks = len(history.tasks)
    verdict.count([*violations_of(fault.amend(history)), *fault.violations()])
    if not has_ended:
        open_tasks = Task.objects.exclude(status__in=FINISHED)
        counts = Counter(open_tasks.values_list("metadata__kind", "status"))
        verdict.problems.append(f"not ended within {fault.healing:g} s: {dict(counts)}")
    verdict.problems += wrong_ends(stage, fault.also_ends)
    verdict.problems += silent_ends()
    verdict.problems += list(fault.look())[:20]
    verdict.note = fault.note()
    judge_takeovers(fault, stage, verdict)
    verdict.facts |= {
        "answers": dict(stage.client.answers),
        "errors": dict(stage.client.errors.most_common(MOST_SHOWN)),
        "leases": dict(Counter(lease.status for lease in history.leases)),
    }


def violations_of(history: History) -> list[tuple[int, str]]:
    """What the checker finds, as numbers of invariants and texts."""
    from tests.chaos.checker import check

    return [(violation.invariant, str(violation)) for violation in check(history)]


def wrong_ends(stage: Stage, also: frozenset[str]) -> Iterator[str]:
    """Tasks that ended otherwise than their kind must."""
    ends = {kind.name: kind.ends for kind in stage.kinds}
    shown = Counter[str]()
    rows = Task.objects.filter(status__in=FINISHED).values_list(
        "id", "metadata__kind", "status", "error_class", "error_message"
    )
    for task_id, kind, status, error, message in rows:
        if kind in ends and status not in ends[kind] | also:
            shown[kind] += 1
            if shown[kind] <= MOST_SHOWN:
                yield f"{task_id} ({kind}) {status}: {error} {message[:200]}"


def silent_ends() -> Iterator[str]:
    """Attempts that did not end well, and do not say why."""
    silent = Lease.objects.filter(status__in=("lost", "failed"), error_class="", error_message="")
    for lease in silent[:MOST_SHOWN]:
        yield f"{lease} is {lease.status}, and does not say why"


def judge_takeovers(fault: Fault, stage: Stage, verdict: Verdict) -> None:
    """How long takeovers took, where the fault is about them.

    The limit does not count what the machine, or SQLite's write lock, kept from everybody, once
    there was something to do.
    """
    spans = takeovers(stage.hits)
    times = [until - since for since, until in spans]
    verdict.takeover_p50, verdict.takeover_p99 = percentile(times, 0.5), percentile(times, 0.99)
    verdict.facts["takeovers"] = len(times)
    if fault.takeover_limit is None:
        return
    idle = fault.lease if fault.takeover_limit > fault.lease else 0.0
    stalls = stage.pace.stalls()
    stalls = [*stalls, *beside(stalls, stage.lock_waits())]
    given = [until - since - kept(stalls, since + idle, until) for since, until in spans]
    worst = percentile(given, 0.99)
    if worst is not None and worst > fault.takeover_limit:
        verdict.problems.append(
            f"takeover p99 {verdict.takeover_p99:.1f} s, of which the machine gave {worst:.1f} s,"
            f" not {fault.takeover_limit:g} s"
        )
