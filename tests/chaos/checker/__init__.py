"""What must hold of every run: the invariants of GUARANTEES.md, asked of a recorded history.

    violations = check(history)

Each invariant is a function of the evidence and yields what it finds. The attempts of a task are
ordered by their number, and its changes by the order of writing, never by clocks of different
hosts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from tests.chaos.checker.batches import events_are_in_one_batch
from tests.chaos.checker.callbacks import callbacks_are_called_once
from tests.chaos.checker.compensations import successes_are_undone_once
from tests.chaos.checker.contexts import contexts_are_folds
from tests.chaos.checker.ending import (
    acknowledged_stops_end_tasks,
    atomic_effects_commit_with_success,
    only_known_transitions,
    starts_are_bounded,
)
from tests.chaos.checker.enqueueing import (
    counts_add_up,
    nothing_is_lost,
    only_what_was_enqueued_runs,
)
from tests.chaos.checker.evidence import Evidence, Violation
from tests.chaos.checker.fan_outs import calls_count_once
from tests.chaos.checker.feed import events_equal_changes
from tests.chaos.checker.figures import Figures, figures
from tests.chaos.checker.healing import faults_heal, told_workers_claim_nothing
from tests.chaos.checker.keys import keys_have_one_holder
from tests.chaos.checker.limits import limits_hold
from tests.chaos.checker.ownership import (
    ended_leases_write_nothing,
    ownership_does_not_overlap,
    takeovers_follow_expiry,
)
from tests.chaos.checker.several import as_many_workers_as_asked
from tests.chaos.checker.step_limits import members_keep_to_limits
from tests.chaos.checker.workflow_verbs import verbs_are_obeyed
from tests.chaos.checker.workflows import workflows_follow_their_graphs
from tests.chaos.history import History

__all__ = ["INVARIANTS", "Evidence", "Figures", "Violation", "check", "figures"]


WORKFLOW_RULES: tuple[Callable[[Evidence], Iterator[Violation]], ...] = (
    workflows_follow_their_graphs,
    members_keep_to_limits,
    calls_count_once,
    contexts_are_folds,
    callbacks_are_called_once,
    successes_are_undone_once,
    verbs_are_obeyed,
    events_are_in_one_batch,
)


def workflows_do_as_they_are_told(evidence: Evidence) -> Iterator[Violation]:
    """12, of the graphs, of what bodies and people add to them, and of batches."""
    for rule in WORKFLOW_RULES:
        yield from rule(evidence)


INVARIANTS: dict[int, Callable[[Evidence], Iterator[Violation]]] = {
    1: nothing_is_lost,
    2: only_what_was_enqueued_runs,
    3: ownership_does_not_overlap,
    4: takeovers_follow_expiry,
    5: ended_leases_write_nothing,
    6: atomic_effects_commit_with_success,
    7: only_known_transitions,
    8: faults_heal,
    9: starts_are_bounded,
    10: keys_have_one_holder,
    12: workflows_do_as_they_are_told,
    13: limits_hold,
    14: acknowledged_stops_end_tasks,
    15: told_workers_claim_nothing,
    16: as_many_workers_as_asked,
    17: counts_add_up,
    18: events_equal_changes,
}
"""By their numbers in GUARANTEES.md; 11 is asked of its fault alone."""


def check(history: History, invariants: Iterable[int] = tuple(INVARIANTS)) -> list[Violation]:
    """Return everything in the history that breaks one of these invariants."""
    evidence = Evidence(history)
    return [found for number in invariants for found in INVARIANTS[number](evidence)]
