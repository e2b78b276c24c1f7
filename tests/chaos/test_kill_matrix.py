"""Seeded bugs fit into the present code, and the checker catches them in real workers."""

from __future__ import annotations

import pytest

from tests.chaos.bugs import run_kill_matrix
from tests.chaos.bugs.catalogue import BUGS, Bug
from tests.chaos.bugs.planting import DoesNotFit, Planting, planting
from tests.chaos.checker import INVARIANTS
from tests.sharing_out import DATABASE, IS_FULL

SHORT = ["key_never_held", "own_success_forgotten", "effect_apart"]
HERE = SHORT if IS_FULL else SHORT[DATABASE == "sqlite" :: 2]
"""By turns on one database, with TASKQUEUE_FULL=1 on both. The full matrix takes minutes: `python
-m tests.chaos --kill-matrix`."""


@pytest.mark.parametrize(
    "bug",
    [bug for bug in BUGS.values() if DATABASE in bug.databases],
    ids=lambda bug: bug.name,
)
def test_a_bug_fits_into_the_code(bug: Bug) -> None:
    with planting() as made:
        bug.plant(made)
    assert bug.summary.endswith(".")


def test_a_bug_that_no_longer_fits_says_so() -> None:
    with planting() as made:
        with pytest.raises(DoesNotFit, match="must be mended"):
            made.rewrite("taskqueue.engine.takeover:EXPIRED", "no such words", "")
        with pytest.raises(DoesNotFit, match="must be mended"):
            made.replace("taskqueue.engine.takeover:no_such_name", None)


def test_a_planted_fault_is_removed_afterwards() -> None:
    from taskqueue.engine import takeover

    made, before = Planting(), takeover.EXPIRED
    made.rewrite("taskqueue.engine.takeover:EXPIRED", "The lease", "No lease")
    made.rewrite("taskqueue.engine.takeover:EXPIRED", "No lease", "Nothing")
    assert before != takeover.EXPIRED
    made.restore()
    assert before == takeover.EXPIRED


def test_each_invariant_that_a_run_can_break_has_its_bug() -> None:
    # 17 is broken by whatever breaks 1 or 2.
    assert {bug.invariant for bug in BUGS.values()} == INVARIANTS.keys() - {17}


@pytest.mark.slow
def test_the_checker_catches_seeded_bugs(capsys: pytest.CaptureFixture[str]) -> None:
    is_good = run_kill_matrix(DATABASE, HERE)
    assert is_good, capsys.readouterr().out
