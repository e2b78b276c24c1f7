"""The bugs: what each changes, which invariant it breaks, and which small run reveals it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.db import connection

from tests.chaos.bugs import (
    advancing,
    claiming,
    event_scenarios,
    hearing,
    limit_scenarios,
    limiting,
    publishing,
    recording,
    reopening,
    running,
    scenarios,
    workflow_scenarios,
)
from tests.chaos.bugs.planting import Planting

BOTH = frozenset({"postgresql", "sqlite"})
POSTGRESQL = frozenset({"postgresql"})


@dataclass(frozen=True, kw_only=True)
class Bug:
    """A bug; its function's docstring says what is wrong."""

    plant: Callable[[Planting], None]
    invariant: int
    scenario: scenarios.Scenario
    databases: frozenset[str] = BOTH
    guards: tuple[str, ...] = ()
    """What must go first, for it would keep the database from taking what the bug writes."""
    sqlite_guards: tuple[str, ...] = ()
    """The same on SQLite, where it takes other statements."""

    @property
    def name(self) -> str:
        """By which it is planted."""
        return self.plant.__name__

    def drop_guards(self) -> None:
        """Take them away; SQLite cannot drop a CHECK, and is told to look away by the bug."""
        is_sqlite = connection.vendor == "sqlite"
        with connection.cursor() as cursor:
            for statement in (*self.guards, *(self.sqlite_guards if is_sqlite else ())):
                if connection.vendor == "postgresql" or "CONSTRAINT" not in statement:
                    cursor.execute(statement)

    @property
    def summary(self) -> str:
        """What is wrong."""
        return (self.plant.__doc__ or "").split("\n")[0]


_ALL = (
    Bug(plant=recording.success_without_fence, invariant=5, scenario=scenarios.stale_success),
    Bug(plant=recording.failure_without_fence, invariant=5, scenario=scenarios.stale_failure),
    Bug(plant=recording.lines_without_fence, invariant=5, scenario=scenarios.stale_success),
    Bug(plant=recording.progress_without_fence, invariant=5, scenario=scenarios.stale_success),
    Bug(plant=recording.shared_end_without_fence, invariant=5, scenario=scenarios.stale_part),
    Bug(plant=recording.success_after_stop, invariant=14, scenario=scenarios.stops),
    Bug(plant=recording.stopped_runs_again, invariant=14, scenario=scenarios.stops),
    Bug(plant=recording.crashes_not_counted, invariant=9, scenario=scenarios.giving_up),
    Bug(plant=recording.return_costs_an_attempt, invariant=9, scenario=scenarios.told_to_end),
    Bug(plant=recording.failures_without_limit, invariant=9, scenario=scenarios.giving_up),
    Bug(plant=recording.strange_transition, invariant=7, scenario=scenarios.giving_up),
    Bug(plant=recording.end_left_unasked, invariant=7, scenario=scenarios.giving_up),
    Bug(plant=recording.effect_apart, invariant=6, scenario=scenarios.hooks_that_crash),
    Bug(plant=claiming.claims_without_lock, invariant=3, scenario=scenarios.crowd),
    Bug(plant=claiming.attempt_not_raised, invariant=3, scenario=scenarios.crowd),
    Bug(plant=claiming.claimed_task_deleted, invariant=1, scenario=scenarios.crowd),
    Bug(plant=claiming.claims_when_told_to_end, invariant=15, scenario=scenarios.told_to_end),
    Bug(plant=claiming.own_success_forgotten, invariant=16,
        scenario=scenarios.one_after_the_other,
        guards=("DROP INDEX taskqueue_lease_worker",)),
    Bug(plant=claiming.places_not_counted, invariant=16, scenario=scenarios.all_at_once,
        guards=("ALTER TABLE taskqueue_task DROP CONSTRAINT taskqueue_task_workers",)),
    Bug(plant=claiming.names_ignored, invariant=16, scenario=scenarios.by_name),
    Bug(plant=claiming.broadcast_seats_one, invariant=16, scenario=scenarios.broadcast),
    Bug(plant=running.takeover_without_expiry, invariant=4, scenario=scenarios.long_bodies),
    Bug(plant=running.takeover_without_lock, invariant=4, scenario=scenarios.sleeping_worker),
    Bug(plant=running.takeover_never, invariant=8, scenario=scenarios.killed_worker),
    Bug(plant=running.no_pings_while_bodies_run, invariant=3, scenario=scenarios.long_bodies),
    Bug(plant=running.children_outlive_leases, invariant=3, scenario=scenarios.sleeping_worker),
    Bug(plant=running.pings_without_fence, invariant=5, scenario=scenarios.stale_success),
    Bug(plant=running.stops_not_enforced, invariant=14, scenario=scenarios.stops),
    Bug(plant=publishing.key_never_held, invariant=10, scenario=scenarios.publishers),
    Bug(plant=publishing.key_released_at_claim, invariant=10, scenario=scenarios.publishers),
    Bug(plant=publishing.scopes_mixed_up, invariant=10, scenario=scenarios.publishers),
    Bug(plant=publishing.wrong_holder_answered, invariant=10, scenario=scenarios.publishers),
    Bug(plant=publishing.enqueued_twice, invariant=2, scenario=scenarios.publishers),
    Bug(plant=publishing.enqueue_apart, invariant=2, scenario=scenarios.publishers,
        databases=POSTGRESQL),
    Bug(plant=advancing.fold_without_delete, invariant=12, scenario=workflow_scenarios.chords),
    Bug(plant=advancing.notes_after_commit, invariant=12, scenario=workflow_scenarios.chords),
    Bug(plant=advancing.workflow_not_locked, invariant=12,
        scenario=workflow_scenarios.side_by_side, databases=POSTGRESQL),
    Bug(plant=advancing.no_second_look, invariant=12, scenario=workflow_scenarios.graphs,
        databases=POSTGRESQL),
    Bug(plant=advancing.released_too_early, invariant=12, scenario=workflow_scenarios.graphs),
    Bug(plant=advancing.skipped_counts_as_success, invariant=12,
        scenario=workflow_scenarios.graphs),
    Bug(plant=advancing.places_sent_twice, invariant=12, scenario=workflow_scenarios.graphs,
        guards=("ALTER TABLE taskqueue_member DROP CONSTRAINT taskqueue_member_pkey",),
        sqlite_guards=(
            "CREATE TABLE without_key AS SELECT * FROM taskqueue_member",
            "DROP TABLE taskqueue_member",
            "ALTER TABLE without_key RENAME TO taskqueue_member",
        )),
    Bug(plant=advancing.calls_staged_by_task, invariant=12, scenario=workflow_scenarios.trees),
    Bug(plant=advancing.context_written_at_once, invariant=12, scenario=workflow_scenarios.trees),
    Bug(plant=advancing.fan_outs_only_counted, invariant=12, scenario=workflow_scenarios.trees),
    Bug(plant=advancing.overdue_not_noted, invariant=12, scenario=workflow_scenarios.other_ends),
    Bug(plant=advancing.cancel_not_noted, invariant=12, scenario=workflow_scenarios.other_ends),
    Bug(plant=advancing.next_worker_waited_for, invariant=12,
        scenario=workflow_scenarios.without_a_second_worker),
    Bug(plant=advancing.takeover_not_noted, invariant=12, scenario=workflow_scenarios.other_ends),
    Bug(plant=limiting.counts_with_the_lock, invariant=13, scenario=limit_scenarios.together,
        databases=POSTGRESQL),
    Bug(plant=limiting.limiters_not_locked, invariant=13, scenario=limit_scenarios.crowds,
        databases=POSTGRESQL),
    Bug(plant=limiting.ended_leases_take_places, invariant=13, scenario=limit_scenarios.crowds),
    Bug(plant=limiting.ends_not_noted, invariant=13, scenario=limit_scenarios.crowds),
    Bug(plant=limiting.counters_dropped_early, invariant=13, scenario=limit_scenarios.rates),
    Bug(plant=limiting.holder_forgotten_on_retry, invariant=13, scenario=limit_scenarios.orders),
    Bug(plant=limiting.notes_forgotten_without_lock, invariant=13,
        scenario=limit_scenarios.held_tasks, databases=POSTGRESQL),
    Bug(plant=limiting.locked_tasks_are_no_tasks, invariant=13,
        scenario=limit_scenarios.held_tasks, databases=POSTGRESQL),
    Bug(plant=limiting.allotted_counts_as_taken, invariant=13,
        scenario=limit_scenarios.held_tasks, databases=POSTGRESQL),
    Bug(plant=limiting.places_of_lost_sequences, invariant=13,
        scenario=limit_scenarios.held_sequences, databases=POSTGRESQL),
    Bug(plant=limiting.bounds_of_the_lock, invariant=13, scenario=limit_scenarios.changes,
        databases=POSTGRESQL),
    Bug(plant=limiting.places_not_passed, invariant=13, scenario=limit_scenarios.successions,
        databases=POSTGRESQL),
    Bug(plant=limiting.passed_beyond_the_limit, invariant=13,
        scenario=limit_scenarios.successions, databases=POSTGRESQL),
    Bug(plant=limiting.passed_places_not_noted, invariant=13, scenario=limit_scenarios.pauses,
        databases=POSTGRESQL),
    Bug(plant=limiting.idleness_earns_credit, invariant=13, scenario=limit_scenarios.latecomers),
    Bug(plant=limiting.limited_queues_cached, invariant=13, scenario=limit_scenarios.tight_queues),
    Bug(plant=reopening.retry_without_lock, invariant=12, scenario=workflow_scenarios.retries,
        databases=POSTGRESQL),
    Bug(plant=reopening.recount_keeps_notes, invariant=12, scenario=workflow_scenarios.recounts),
    Bug(plant=reopening.group_fired_without_lock, invariant=12,
        scenario=workflow_scenarios.batches, databases=POSTGRESQL),
    Bug(plant=hearing.cursor_over_ids, invariant=18,
        scenario=event_scenarios.overlapping_enqueues, databases=POSTGRESQL),
    Bug(plant=hearing.two_pumps, invariant=18, scenario=event_scenarios.pumps_at_once,
        databases=POSTGRESQL),
    Bug(plant=hearing.effects_after_commit, invariant=18, scenario=event_scenarios.killed_pump),
    Bug(plant=hearing.handler_tasks_apart, invariant=18, scenario=event_scenarios.killed_pump,
        databases=POSTGRESQL),
    Bug(plant=hearing.batch_cut_short, invariant=18,
        scenario=event_scenarios.many_ends_at_once, databases=POSTGRESQL),
    Bug(plant=hearing.bulk_events_apart, invariant=18, scenario=event_scenarios.bulk_enqueues,
        databases=POSTGRESQL),
    Bug(plant=hearing.bulk_events_after_commit, invariant=18,
        scenario=event_scenarios.bulk_enqueues, databases=POSTGRESQL),
    Bug(plant=hearing.mask_never_refreshed, invariant=18,
        scenario=event_scenarios.late_subscription, databases=POSTGRESQL),
)  # fmt: skip

BUGS = {bug.name: bug for bug in _ALL}
SCENARIOS = {bug.scenario.__name__: bug.scenario for bug in _ALL}
