"""Claims are shared out among queues by weight, or strictly in order."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskqueue import InvalidTask
from taskqueue.worker.quotas import QueueQuotas

PICKS = 10_000


def lanes(text: str = "", *, is_strict: bool = False) -> QueueQuotas:
    return QueueQuotas.parse(text, is_strict=is_strict)


def picks(chosen: QueueQuotas, names: list[str], count: int, size: int = 1) -> list[str]:
    """The queues of so many picks, in claims of that size while all queues are full."""
    made: list[str] = []
    while len(made) < count:
        for name, quota in chosen.quotas(names, size):
            made += [name] * quota
    return made[:count]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 10, 16, 100])
def test_weights_of_6_3_1_are_kept_within_five_points_over_ten_thousand_picks(size: int) -> None:
    chosen = lanes("critical=6,default=3,low=1")
    made = Counter(picks(chosen, [*chosen.weights], PICKS, size))
    for name, share in (("critical", 0.6), ("default", 0.3), ("low", 0.1)):
        assert abs(made[name] / PICKS - share) < 0.05


@pytest.mark.parametrize("size", [1, 4, 10])
@pytest.mark.parametrize("text", ["critical=6,default=3,low=1", "a=50,b=49,c=1", "a,b,c"])
def test_every_queue_is_served_within_a_hundred_picks(text: str, size: int) -> None:
    chosen = lanes(text)
    made = picks(chosen, [*chosen.weights], 1000, size)
    for start in range(1000 - 100):
        assert set(made[start : start + 100]) == {*chosen.weights}


@given(
    weights=st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 50), min_size=2),
    sizes=st.lists(st.integers(1, 30), min_size=1, max_size=50),
)
def test_whatever_the_sizes_of_claims_each_queue_gets_its_share(
    weights: dict[str, int], sizes: list[int]
) -> None:
    chosen = QueueQuotas(weights)
    made: Counter[str] = Counter()
    for size in sizes:
        quotas = chosen.quotas(list(weights), size)
        assert sum(quota for _, quota in quotas) == size
        assert all(quota > 0 for _, quota in quotas)
        made.update(dict(quotas))
    total = sum(weights.values())
    for name, weight in weights.items():
        # Smooth weighted round robin is never further off than the number of queues.
        assert abs(made[name] - sum(sizes) * weight / total) <= len(weights)


def test_a_heavy_queue_is_spread_out_and_not_served_in_a_row() -> None:
    chosen = lanes("a=5,b=1,c=1")
    assert "".join(picks(chosen, [*chosen.weights], 7)) == "aabacaa"


def test_a_queue_without_tasks_leaves_its_share_to_the_others() -> None:
    chosen = lanes("critical=6,default=3,low=1")
    made = Counter(picks(chosen, ["default", "low"], 1000))
    assert made == {"default": 750, "low": 250}
    assert picks(chosen, ["low"], 3) == ["low"] * 3


def test_a_queue_that_was_empty_for_long_does_not_make_up_for_it() -> None:
    chosen = lanes("a=1,b=1")
    picks(chosen, ["a"], 1000)
    assert Counter(picks(chosen, ["a", "b"], 100)) == {"a": 50, "b": 50}


def test_without_names_all_queues_are_served_alike() -> None:
    chosen = lanes()
    assert not chosen.weights
    ready = chosen.serving({"b", "a", "c"})
    assert ready == ["a", "b", "c"]
    assert Counter(picks(chosen, ready, 300)) == {"a": 100, "b": 100, "c": 100}


def test_strict_queues_are_drained_in_the_given_order() -> None:
    chosen = lanes("low=1,critical=9", is_strict=True)
    assert chosen.quotas(chosen.serving({"critical", "low"}), 7) == [("low", 7)]
    assert chosen.quotas(chosen.serving({"critical"}), 7) == [("critical", 7)]


def test_a_queue_that_was_not_named_is_not_served() -> None:
    chosen = lanes("b,a")
    assert chosen.serving({"a", "b", "c"}) == ["b", "a"]
    assert chosen.serving({"c"}) == []
    assert chosen.quotas([], 5) == chosen.quotas(["a"], 0) == []


def test_a_choice_is_read_as_it_is_written() -> None:
    choice = QueueQuotas.parse(" critical=6, default=3 ,low,")
    assert choice.weights == {"critical": 6, "default": 3, "low": 1}
    assert QueueQuotas.parse("").weights == {}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a b", "not the name of a queue"),
        ("=3", "not the name of a queue"),
        ("a,a", "listed twice"),
        ("a=0", "from 1 to 1000000, not '0'"),
        ("a=-1", "not '-1'"),
        ("a=x", "not 'x'"),
        ("a=1.5", "not '1.5'"),
        ("a=1000001", "not '1000001'"),
        ("a=²", "not '²'"),
    ],
)
def test_a_choice_that_cannot_be_read_says_why(text: str, reason: str) -> None:
    with pytest.raises(InvalidTask, match=reason):
        QueueQuotas.parse(text)


@pytest.mark.parametrize("text", [",", " ", ", ,"])
def test_a_list_that_names_no_queue_is_refused(text: str) -> None:
    """It would serve all of them, which is the opposite of what a list is for."""
    with pytest.raises(InvalidTask, match="names no queue; omit it to serve all"):
        QueueQuotas.parse(text)


def test_strict_without_names_is_refused() -> None:
    with pytest.raises(InvalidTask, match="--strict needs --queues"):
        QueueQuotas.parse("", is_strict=True)
