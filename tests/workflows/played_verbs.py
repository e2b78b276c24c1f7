"""A worker and an operator, played by a seed: workflows, what becomes of tasks, and verbs."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from django.db import connection
from django.db.models.functions import Now

from taskqueue import chain, control, fan_out, group, task, workflow
from taskqueue.core.outcomes import Outcome, OutcomeKind
from taskqueue.core.states import FINISHED
from taskqueue.core.workflow_states import FINAL_STEPS, FINAL_WORKFLOWS
from taskqueue.engine.connections import transaction
from taskqueue.engine.record import record
from taskqueue.engine.rows import Claimed
from taskqueue.engine.workflows import rounds, serving
from taskqueue.engine.workflows.fan_outs import keep_fan_out
from taskqueue.engine.workflows.pruning import prune_workflows
from taskqueue.engine.workflows.reconciling import reconcile
from taskqueue.exceptions import TaskQueueError
from taskqueue.models import Step, Task, Workflow, WorkflowCount
from taskqueue.results.workflows import WorkflowRun, get_workflow
from taskqueue.workflows import Builder, StepHandle, chord
from tests.engine.steps import claim, outcome, policy

MOST_STEPS, DEEPEST = 4, 2
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
MOST_FANS = 8
MOST_TURNS = 300
"""After that, workflows that have not ended never will."""


@task
def leaf(*values: object) -> int:
    """Return a number."""


@task
def listing(*values: object) -> list[int]:
    """Return a few numbers."""


@task
def spread(*values: object) -> Any:
    """Return calls, or a number."""


NAMES = {"leaf", "spread", "random_graph"}
"""Of canvases that are one step."""


def random_canvas(chance: random.Random, depth: int) -> Any:
    """A call, or a canvas of several."""
    number = chance.randrange(1, 4)
    kinds: list[Callable[[], Any]] = [leaf.si, spread.si]
    if depth > 0:
        parts = [random_canvas(chance, depth - 1) for _ in range(number)]
        bounds = {"concurrency": chance.randint(1, 2), "tolerate": chance.randint(0, 1)}
        kinds += [
            lambda: chain(*parts, leaf.si()),
            lambda: chord(parts, leaf.si()),
            lambda: group(parts, **bounds),
            lambda: random_graph.si(chance.randrange(1 << 30), depth - 1),
        ]
    return chance.choice(kinds)()


@workflow(name="tests.random_verbs")
def random_graph(wf: Builder, seed: int, depth: int) -> None:
    """A few steps of any kind, which depend on each other as the seed says."""
    chance = random.Random(seed)
    steps: list[StepHandle] = []
    for number in range(chance.randint(1, MOST_STEPS)):
        near = chance.sample(steps, min(len(steps), chance.choice((0, 1, 1, 2))))
        after: list[Any] = [chance.choice((s, s, s, s.ended, s.failed)) for s in near]
        settings: dict[str, Any] = {"name": f"s{number}", "after": after}
        call: Any = random_canvas(chance, depth)
        lot = chance.random()
        if lot < 0.15:
            settings |= {
                "concurrency": chance.choice((None, 1, 2)),
                "tolerate": chance.randint(0, 1),
            }
            numbers = wf.step(listing.si(), name=f"numbers{number}", after=after)
            call = spread.map(numbers)
            settings["after"] = []
        elif lot < 0.4:
            call = spread.map(range(chance.randint(0, 4)))
            settings |= {
                "concurrency": chance.choice((None, 1, 2)),
                "tolerate": chance.randint(0, 1),
            }
        elif lot < 0.5:
            call = leaf.si()
            settings["compensate"] = chance.choice((leaf.si(), spread.si()))
        if chance.random() < 0.3 and (lot < 0.5 or call.default_name in NAMES):
            settings["on_failure"] = "continue"
        if steps and chance.random() < 0.1:
            settings["when"] = chance.choice(steps).is_null()
        steps.append(wf.step(call, **settings))


class Player:
    """Plays a worker and an operator: what they do, and what becomes of tasks, is random."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.held: list[Claimed] = []
        self.good = 0.75
        """How likely a body succeeds."""
        self.log: list[str] = []
        self.fans_left = MOST_FANS

    # The worker

    def claim(self) -> None:
        """Claim a few tasks, and keep them."""
        self.held += claim(self.chance.randint(1, 5))

    def record(self) -> None:
        """Record what became of some of the claimed tasks; mostly follow it up."""
        self.chance.shuffle(self.held)
        number = self.chance.randint(1, len(self.held) or 1)
        some, self.held = self.held[:number], self.held[number:]
        outcomes = [self._play(each) for each in some]
        with transaction(connection):
            recorded = record(connection, outcomes, policy=policy())
        for each in some:
            got = recorded.get(each.lease_id)
            self.log.append(f"record {each.name} {each.task_id} {got}")
        steps = {row.step_id for row in recorded.values() if row.step_id is not None}
        if steps and self.chance.random() < 0.7:
            rounds.fold_and_advance(connection, steps)

    def serve(self) -> None:
        """Do what is left to do of any workflow."""
        Workflow.objects.filter(status="stopping").update(stops_again_at=None)
        serving.serve(connection)

    def recount(self) -> None:
        """Count all that runs anew, as if it had stood still: there is nothing to repair."""
        Workflow.objects.update(recount_at=LONG_AGO, moved_at=LONG_AGO)
        Step.objects.update(counted_at=None)
        reconcile(connection)
        assert not WorkflowCount.objects.filter(what="repaired").exists()

    def pass_deadline(self) -> None:
        """Have the deadline of one pass that runs, and have another fail at its first failure."""
        rows = Workflow.objects.filter(status="running", parent_step_id=None)
        rows.update(deadline_at=Now(), fail_fast=self.chance.random() < 0.5)
        serving.end_overdue(connection)
        Workflow.objects.update(deadline_at=None)

    def prune(self) -> None:
        """Delete what a retry has discarded."""
        prune_workflows(connection)

    def _play(self, claimed: Claimed) -> Outcome:
        chance = self.chance
        if chance.random() >= self.good:
            kind = chance.choice(
                (
                    OutcomeKind.FAILED,
                    OutcomeKind.FAILED,
                    OutcomeKind.CANCELLED,
                    OutcomeKind.RETURNED,
                )
            )
            return outcome(claimed, kind, retryable=False)
        done = outcome(claimed, OutcomeKind.SUCCEEDED)
        if chance.random() < 0.2:
            done = done._replace(updates=json.dumps({"last": chance.randrange(100)}))
        if claimed.name == listing.name:
            numbers = list(range(chance.randint(0, 4)))
            return done._replace(return_value=json.dumps(numbers))
        if claimed.name == spread.name and self.fans_left > 0 and chance.random() < 0.5:
            self.fans_left -= 1
            calls = self._random_calls()
            try:
                keep_fan_out(connection, calls, lease_id=claimed.lease_id, task_id=claimed.task_id)
            except TaskQueueError:  # Its lease has ended.
                return done
            return done._replace(has_fan=True)
        return done._replace(return_value="1")

    def _random_calls(self) -> Any:
        chance = self.chance
        number = chance.randint(0, 4)
        bounds = {"concurrency": chance.choice((None, 1, 2)), "tolerate": chance.randint(0, 1)}
        lot = chance.random()
        if lot < 0.5:
            target = chance.choice((leaf, leaf, spread))
            return fan_out(target, [((n,), {}) for n in range(number)], **bounds)
        canvas = [random_canvas(chance, 1) for _ in range(number + 1)]
        if lot < 0.75:
            return fan_out(canvas, **bounds)
        return fan_out(group(canvas) | leaf.si())

    # The operator

    def act(self) -> None:
        """Do one thing to one workflow; whether it is refused is no matter."""
        rows = Workflow.objects.exclude(parent_step_id=0).order_by("id")
        run = get_workflow(self.chance.choice(list(rows.values_list("id", flat=True))))
        name, verb = self.chance.choice(self._verbs())
        try:
            verb(run)
        except TaskQueueError as error:
            self.log.append(f"{name} {run.id}: {error}")
        else:
            self.log.append(f"{name} {run.id}")

    def _verbs(self) -> list[tuple[str, Callable[[WorkflowRun], object]]]:
        return [
            ("cancel", lambda run: run.cancel()),
            ("pause", lambda run: run.pause()),
            ("resume", lambda run: run.resume()),
            ("resume", lambda run: run.resume()),
            ("retry", lambda run: run.retry()),
            ("retry", lambda run: run.retry()),
            ("retry_from", self._retry_from),
            ("retry_from", self._retry_from),
            ("retry_task", self._retry_task),
            ("cancel_task", self._cancel_task),
            ("resolve", self._resolve),
        ]

    def _retry_from(self, run: WorkflowRun) -> None:
        self._of_step(run, {}, lambda name: run.retry(from_step=name))

    def _resolve(self, run: WorkflowRun) -> None:
        self._of_step(run, {"status": "failed"}, lambda name: run.resolve(name, [0, 1]))

    def _of_step(
        self, run: WorkflowRun, which: dict[str, Any], act: Callable[[str], object]
    ) -> None:
        rows = Step.objects.filter(workflow_id=run.id, parent_step_id=None, **which)
        names = list(rows.order_by("id").values_list("name", flat=True))
        if names:
            name = self.chance.choice(names)
            self.log.append(f"… {name}")
            act(name)

    def _retry_task(self, run: WorkflowRun) -> None:
        self._of_task(run, FINISHED - {"succeeded"}, control.retry)

    def _cancel_task(self, run: WorkflowRun) -> None:
        self._of_task(run, ("blocked", "ready", "scheduled"), control.cancel)

    def _of_task(self, run: WorkflowRun, statuses: Any, act: Callable[[Any], object]) -> None:
        rows = Task.objects.filter(step__workflow_id=run.id, status__in=sorted(statuses))
        # One that is to be sent again is counted as held until the step sends more.
        rows = rows.exclude(status="blocked", step__status="running")
        ids = list(rows.order_by("id").values_list("id", flat=True))
        if ids:
            id = self.chance.choice(ids)
            self.log.append(f"… {id}")
            act(id)

    # Both

    def turn(self) -> None:
        """Do one of all these."""
        acts = [self.claim, self.claim, self.record, self.record, self.serve, self.act, self.act]
        acts += [self.prune] if self.chance.random() < 0.3 else []
        acts += [self.recount] if self.chance.random() < 0.3 else []
        acts += [self.pass_deadline] if self.chance.random() < 0.1 else []
        self.chance.choice(acts)()

    def come_to_rest(self) -> None:
        """Resume all, and work until all workflows have ended."""
        for _ in range(MOST_TURNS):
            for id in self._open().exclude(paused_at=None).values_list("id", flat=True):
                try:
                    get_workflow(id).resume()
                except TaskQueueError:
                    Workflow.objects.filter(id=id, status="stopping").update(paused_at=None)
            self.claim()
            if self.held:
                self.record()
            self.serve()
            if not self._open().exists() and not self.held:
                self.serve()
                return
        rows = [*self._open().values("id", "status", "paused_at", "open_steps", "parent_step_id")]
        steps = Step.objects.filter(workflow__in=self._open()).order_by("id")
        told = steps.exclude(status__in=FINAL_STEPS).values(
            "id",
            "name",
            "kind",
            "status",
            "waits",
            "is_due",
            "members",
            "released",
            "ended",
            "failures",
            "held",
            "reopen_from",
            "workflow_id",
        )
        raise AssertionError(f"These do not end: {rows}, with open steps {[*told]}")

    def _open(self) -> Any:
        return Workflow.objects.exclude(status__in=FINAL_WORKFLOWS).order_by("id")
