"""The small runs of workflows."""

from __future__ import annotations

import random
import time

from taskqueue import group
from taskqueue.core.workflow_states import FINAL_WORKFLOWS
from taskqueue.models import Collected, Lease, Task, Workflow
from taskqueue.results.workflows import get_workflow
from tests.chaos import batch_bodies
from tests.chaos.bugs import bodies, clients
from tests.chaos.bugs.trial import Trial
from tests.chaos.history import Fault
from tests.chaos.workflow_bodies import (
    part,
    random_chord,
    random_graph,
    random_tree,
    sides,
    spread_late,
    story,
    together,
)


def chords(trial: Trial) -> None:
    """Chords of eight, whose members end at about the same time on several workers."""
    trial.lengthen_leases()
    chance = random.Random(4)
    trial.start_workers(3, 3)
    for _ in range(12):
        random_chord(str(trial.journal), chance).enqueue()
    _settle(trial, 8)


def graphs(trial: Trial) -> None:
    """Graphs of many steps that depend on each other."""
    trial.lengthen_leases()
    trial.start_workers(3, 3)
    for seed in range(3):
        random_graph.enqueue(str(trial.journal), seed, 60)
    _settle(trial, 15)


def side_by_side(trial: Trial) -> None:
    """Steps of one workflow that end at the same time, each on another worker."""
    trial.lengthen_leases()
    trial.start_workers(4, 2)
    for _ in range(12):
        sides.enqueue(str(trial.journal), 0.1)
    _settle(trial, 8)


def trees(trial: Trial) -> None:
    """Calls that bodies find, also some that die after they have written theirs."""
    trial.lengthen_leases()
    journal = str(trial.journal)
    chance = random.Random(4)
    trial.start_workers(2, 3)
    for _ in range(4):
        random_tree(journal, chance).enqueue()
        spread_late.s(journal, 1).enqueue()
    _settle(trial, 8)


def other_ends(trial: Trial) -> None:
    """Members that expire, are cancelled with their workflow, or lost for good."""
    journal = str(trial.journal)
    trial.start_workers(2, 2)
    unserved = part.using(worker_names=["nobody"])
    expiring = part.using(worker_names=["nobody"], expires_after=0.5)
    group(expiring.s(journal, n) for n in range(3)).enqueue()
    # More than the verb cancels itself.
    stopped = unserved.starmap([(journal, n) for n in range(600)]).enqueue()
    short = bodies.work.using(max_crashes=1)
    (group(short.s(journal, 3.0) for _ in range(2)) | together.s(journal)).enqueue()
    trial.wait_for(lambda: trial.marks() == 2)
    get_workflow(stopped.id).cancel("enough")
    killed = trial.holder(short.name)
    trial.faults.append(Fault("kill", time.time(), time.time(), (trial.name_of(killed),)))
    killed.leave_no_proof()
    killed.kill()
    _settle(trial, 12)


def without_a_second_worker(trial: Trial) -> None:
    """A task of two workers, of which one never comes, and whose workflow is cancelled then."""
    trial.lengthen_leases()
    trial.start_worker(2)
    run = part.using(workers=2).s(str(trial.journal), 0).enqueue()
    trial.wait_for(lambda: Lease.objects.filter(status="succeeded").exists())
    trial.enqueue(clients.cancel, str(run.id))
    _settle(trial, 6)
    _end(trial)


def retries(trial: Trial) -> None:
    """Workflows that are retried by two at once, while others of their steps run."""
    trial.lengthen_leases()
    trial.start_workers(3, 3)
    journal = str(trial.journal)
    for number in range(8):
        story.enqueue(journal, number, 0.1)
    for _ in range(2):
        trial.enqueue(clients.retry_often, 60.0)
    _settle(trial, 15, all_succeed=True)
    _end(trial)


def recounts(trial: Trial) -> None:
    """Wide maps, which are recounted again and again while their ends are noted."""
    trial.lengthen_leases()
    journal = str(trial.journal)
    trial.start_workers(3, 3)
    trial.enqueue(clients.recount_often, 20.0)
    trial.wait_for(lambda: trial.marks() == 1)
    for _ in range(3):
        (part.starmap([(journal, n) for n in range(200)]) | together.s(journal)).enqueue()
    _settle(trial, 15)
    _end(trial)


def batches(trial: Trial) -> None:
    """Events of three groups, which are collected and fired by several at once."""
    trial.lengthen_leases()
    trial.start_workers(4, 2)
    for first in (0, 1000, 2000):
        trial.enqueue(batch_bodies.collect, str(trial.folder / "events"), first, 150)
    for _ in range(4):
        trial.enqueue(batch_bodies.fire, 150)
    trial.settle(15, all_end=True)
    trial.wait_for(lambda: not Collected.objects.exists())
    _end(trial)


def _end(trial: Trial) -> None:
    """Wait until those have ended too that did something to workflows or batches."""
    trial.settle(15, all_end=not trial.bug)
    bad = Task.objects.filter(step_id=None, status="failed").values_list("name", "error_message")
    assert trial.bug or not bad, list(bad)


def _settle(trial: Trial, timeout: float, *, all_succeed: bool = False) -> None:
    """Wait until all workflows have ended, or succeeded; no longer than this with a bug."""
    trial.wait_for(lambda: trial.journal.exists())
    deadline = time.monotonic() + (timeout if trial.bug else 6 * timeout)
    ends = ["succeeded"] if all_succeed else FINAL_WORKFLOWS
    while Workflow.objects.exclude(status__in=ends).exists():
        if time.monotonic() > deadline:
            return
        time.sleep(0.05)
    if not trial.bug:
        # A workflow does not wait for the callbacks of its end.
        trial.settle(timeout)
