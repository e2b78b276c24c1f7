"""Whatever people do to workflows, and whenever: their totals hold, and they come to an end."""

from __future__ import annotations

import pytest

from taskqueue.engine.workflows import advancing, releasing, stopping, tasks
from tests.workflows.played_verbs import DEEPEST, Player, random_graph
from tests.workflows.recount import assert_counts, assert_settled

pytestmark = pytest.mark.django_db
ROUNDS, TURNS = 2, 24
"""How often all come to an end, and what is done before that."""
CHECK_AFTER = 8
AT_ONCE = 2
"""Of all of which one transaction does so much."""
MOST_MEMBERS = 5
"""One transaction begins the whole of a small fan-out."""


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have large retries and stops go on in another transaction soon."""
    for module, name in (
        (advancing, "MOST_CANCELLED"),
        (advancing, "MOST_REOPENED"),
        (releasing, "MOST_CUT"),
        (stopping, "MOST_STOPPED"),
        (stopping, "MOST_LOOKED"),
        (tasks, "CHUNK"),
    ):
        monkeypatch.setattr(module, name, AT_ONCE)
    defaults = advancing.Advance.__init__.__kwdefaults__
    monkeypatch.setitem(defaults, "most_members", MOST_MEMBERS)


def play(seed: int) -> None:
    """Have a few workflows come to an end again and again; their totals hold all the time."""
    player = Player(seed)
    random_graph.enqueue(player.chance.randrange(1 << 30), DEEPEST)
    try:
        for _ in range(ROUNDS):
            for turn in range(TURNS):
                player.turn()
                if turn % CHECK_AFTER == 0:
                    assert_counts()
            player.come_to_rest()
            assert_counts()
            assert_settled()
    except BaseException:
        print("\n".join(player.log))
        raise


@pytest.mark.parametrize("seed", range(10))
def test_totals_hold_whatever_people_do(seed: int) -> None:
    play(seed)


@pytest.mark.parametrize("seed", range(10, 20))
@pytest.mark.usefixtures("small_parts")
def test_totals_hold_where_verbs_take_many_transactions(seed: int) -> None:
    play(seed)
