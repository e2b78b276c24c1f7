"""The small runs of workflows."""

from __future__ import annotations

import random
import time

from taskqueue import group
from taskqueue.core.workflow_states import FINAL_WORKFLOWS
from taskqueue.models import Workflow
from taskqueue.results.workflows import get_workflow
from tests.chaos.bugs import bodies
from tests.chaos.bugs.trial import Trial
from tests.chaos.history import Fault
from tests.chaos.workflow_bodies import (
    part,
    random_chord,
    random_graph,
    random_tree,
    spread_late,
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


def _settle(trial: Trial, timeout: float) -> None:
    """Wait until all workflows have ended; no longer than this with a bug."""
    trial.wait_for(lambda: trial.journal.exists())
    deadline = time.monotonic() + (timeout if trial.bug else 6 * timeout)
    while Workflow.objects.exclude(status__in=FINAL_WORKFLOWS).exists():
        if time.monotonic() > deadline:
            return
        time.sleep(0.05)
