"""Schedulers that race and are killed serve each nominal time once; and who does not is caught."""

from __future__ import annotations

import os

import pytest

from tests.schedules.year.bugs import BUGS, planted
from tests.schedules.year.checking import Tally, check
from tests.schedules.year.plans import CHANGES, Plan, small_plan
from tests.schedules.year.race import Facts, Race, create_schedules
from tests.sharing_out import DATABASE

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

SEED = 7
TRIES = 12
"""What a bug does depends on what happens within milliseconds: it may take some seeds to show."""
GAP = CHANGES[1:2]
SHARE = 1 if os.environ.get("TASKQUEUE_FULL") == "1" else 6
CHOSEN = [
    name for place, name in enumerate(BUGS) if place % SHARE == (DATABASE == "sqlite") % SHARE
]
"""One on each database, for they take long; all with TASKQUEUE_FULL=1."""


def raced(plan: Plan) -> tuple[Facts, Tally]:
    ids = create_schedules(plan)
    facts = Race(plan).run()
    print(facts)
    return facts, check(plan, ids)


def test_three_schedulers_that_are_killed_serve_each_nominal_time_once() -> None:
    facts, tally = raced(small_plan(SEED, changes=CHANGES[::2], kill_every=60, longest_fuse=200))

    assert tally.violations == []
    assert (facts.errors, facts.ended_with) == (0, ())
    assert tally.nominal_times == tally.run + tally.skipped > 500
    assert tally.run == tally.tasks > 200
    assert facts.killed + facts.died > 3


@pytest.mark.parametrize("name", CHOSEN)
def test_a_scheduler_with_a_mistake_is_caught(name: str) -> None:
    bug = BUGS[name]
    said: list[str] = []
    with planted(bug):
        for seed in range(SEED, SEED + TRIES):
            plan = small_plan(seed, changes=GAP, kill_every=100, longest_fuse=150)
            ids = create_schedules(plan, prefix=f"{seed} ")
            Race(plan).run()
            said += check(plan, ids).violations
            if any(phrase in text for phrase in bug.says for text in said):
                return
    pytest.fail(f"{bug.plant.__doc__} Nobody noticed, for the checker said {said}")
