"""The quick set of the fault run finds no violation; a violation would fail the run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from tests.chaos.__main__ import summary
from tests.chaos.faults import FAULTS
from tests.chaos.verdict import Verdict, row
from tests.sharing_out import DATABASE, IS_FULL, SEED
from tests.worker_process import ROOT

LONGEST = 800
"""Seconds; alone on two cores the quick set takes less than a sixth of that."""


ON_ONE = {
    "postgresql": {"child_killed", "limits", "signals", "workflows"},
    "sqlite": {"parent_frozen", "tree_frozen", "worker_killed_elsewhere"},
}
"""Quick faults of both databases that run on one of them without TASKQUEUE_FULL=1.

What is most of SQL runs on PostgreSQL, where workers write at the same time.
"""
ALWAYS = {"events", "worker_killed"}
"""Quick faults of each run. The others take turns: the seed of the run chooses every other one."""


def candidates(database: str) -> list[str]:
    """The quick faults of a database, without those that are left to the other one."""
    left_out = {
        name
        for other, names in ON_ONE.items()
        if other != database and not IS_FULL
        for name in names
    }
    return [
        name
        for name, fault in sorted(FAULTS.items())
        if fault.is_quick and database in fault.databases and name not in left_out
    ]


def chosen(database: str, seed: int) -> list[str]:
    """The quick faults that a run of the suite with this seed has; two seeds in a row have all."""
    found = candidates(database)
    if IS_FULL:
        return found
    others = [name for name in found if name not in ALWAYS]
    return [*sorted(ALWAYS), *others[seed % 2 :: 2]]


@pytest.mark.slow
def test_the_quick_set_of_faults_violates_nothing() -> None:
    run = subprocess.Popen(
        [
            *(sys.executable, "-m", "tests.chaos", "--database", DATABASE),
            *(f"--only={name}" for name in chosen(DATABASE, SEED)),
        ],
        cwd=ROOT,
        env=dict(os.environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        output, _ = run.communicate(timeout=LONGEST)
    except subprocess.TimeoutExpired:
        run.send_signal(signal.SIGTERM)  # It ends its workers and servers.
        output, _ = run.communicate(timeout=60)
        pytest.fail(f"Not within {LONGEST} s.\n{output}")
    print(output)
    assert run.returncode == 0
    assert output.rstrip().endswith("No violation.")


def test_each_quick_fault_runs_on_one_database_at_least() -> None:
    runs = {database: set(candidates(database)) for database in ON_ONE}
    assert set.union(*runs.values()) == {name for name, each in FAULTS.items() if each.is_quick}
    assert set.intersection(*runs.values()) >= ALWAYS
    for database, names in ON_ONE.items():
        assert names <= runs[database]


@pytest.mark.parametrize("database", ON_ONE)
@pytest.mark.parametrize("seed", [0, 7])
def test_two_seeds_in_a_row_have_all_quick_faults_of_a_database(database: str, seed: int) -> None:
    runs = [set(chosen(database, each)) for each in (seed, seed + 1)]
    assert set.union(*runs) == set(candidates(database))
    assert all(run >= ALWAYS for run in runs)


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_each_fault_says_what_it_does_and_what_must_come_of_it(fault: type) -> None:
    assert fault.__doc__
    assert fault.expectation
    assert fault.databases <= {"postgresql", "sqlite"}


def test_a_violation_is_counted_shown_and_fails_the_run() -> None:
    good, bad = Verdict(fault="quiet", seed=1, tasks=10), Verdict(fault="loud", seed=2, tasks=5)
    bad.count([(1, "a task did not end"), (6, "two effects"), (5, "a late write")])

    assert (bad.lost, bad.doubled, bad.stale) == (1, 1, 1)
    assert row(bad).endswith("3 VIOLATIONS")
    assert row(good).endswith("ok")
    text, has_failed = summary([good, bad], 60)
    assert has_failed
    assert "invariant 6: two effects" in text
    assert "15 tasks, 1 lost, 1 doubled, 1 stale writes" in text
    assert summary([good], 60)[1] is False
