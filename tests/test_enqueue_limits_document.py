"""docs/enqueue-limits.md: its recipes do what it says."""

from __future__ import annotations

import re
from typing import Any

import pytest

from taskqueue import Capacity, CapacityReached
from taskqueue.declarations.admission import LONGEST_WINDOW, MOST_PLACES
from taskqueue.declarations.definition import registry
from taskqueue.engine.places import MOST_LOCKED
from tests.engine.steps import task_of
from tests.worker_process import ROOT

pytestmark = pytest.mark.django_db
TEXT = (ROOT / "docs" / "enqueue-limits.md").read_text()


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The tasks of the recipes, by their names."""
    monkeypatch.setattr(registry, "_definitions", dict(registry._definitions))
    names: dict[str, Any] = {"__name__": "shop.tasks"}
    for block in re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL):
        exec(block, names)
    return names


def outcome(result: Any) -> tuple[bool, bool]:
    return result.created, result.updated


NEW, UPDATED, DROPPED = (True, False), (False, True), (False, False)


def test_the_recipes_do_what_the_table_says(shop: dict[str, Any]) -> None:
    refresh = shop["refresh_prices"].using(unique_per="week")
    assert [outcome(refresh.enqueue(region)) for region in ("eu", "eu", "us")] == [
        NEW, DROPPED, NEW,
    ]  # fmt: skip
    index = shop["index_document"]
    assert [outcome(index.enqueue(1, text)) for text in "ab"] == [NEW, UPDATED]
    assert task_of(index.enqueue(1, "c")).unique_key == "debounce:1"
    assert [outcome(shop["remind"].enqueue(user)) for user in (1, 1, 2)] == [NEW, DROPPED, NEW]
    orders = shop["import_orders"]
    outcomes = [outcome(orders.enqueue(7, f"{number}.csv")) for number in range(11)]
    assert outcomes == [NEW] * 10 + [DROPPED]
    with pytest.raises(CapacityReached):
        orders.using(capacity=Capacity(10, key="account_id")).enqueue(7, "x")
    assert outcome(orders.using(capacity=None).enqueue(7, "x")) == NEW


def test_it_names_the_bounds() -> None:
    assert f"N is 1 to {MOST_PLACES:,}." in TEXT
    assert f"1 to {MOST_PLACES:,} tasks in 1 second to {LONGEST_WINDOW // 86_400} days" in TEXT
    assert f"more than {MOST_LOCKED} places" in TEXT
