"""What failed lately, grouped by error and task."""

from __future__ import annotations

from uuid import UUID

import pytest

from taskqueue.monitoring.read_models.failure_group import LONGEST_MESSAGE, failures
from taskqueue.monitoring.searching.finding import find
from taskqueue.monitoring.searching.search import parse
from tests.monitoring.rows import HOUR, MINUTE, ago, make_task

pytestmark = pytest.mark.django_db


def fail(error_class: str = "builtins.ValueError", message: str = "", **fields: object) -> UUID:
    """A task that failed."""
    task = make_task("failed", error_class=error_class, error_message=message, **fields)
    return task.id


def test_failed_tasks_are_grouped_by_error_and_name() -> None:
    first, last = ago(HOUR), ago(MINUTE)
    fail(finished_at=first, message="the first")
    newest = fail(finished_at=last, message="the last")
    fail(finished_at=ago(2 * MINUTE))
    fail(name="shop.tasks.pack")
    fail("builtins.KeyError", finished_at=ago(2 * HOUR))
    make_task("cancelled", error_class="builtins.ValueError")
    found = failures()
    assert (found.looked_at, found.is_capped) == (5, False)
    assert [(group.error_class, group.name, group.count) for group in found.groups] == [
        ("builtins.ValueError", "shop.tasks.send", 3),
        ("builtins.ValueError", "shop.tasks.pack", 1),
        ("builtins.KeyError", "shop.tasks.send", 1),
    ]
    group = found.groups[0]
    assert (group.first_seen, group.last_seen) == (first, last)
    assert (group.example_id, group.example_message) == (newest, "the last")


def test_of_what_ended_at_one_moment_one_is_the_example() -> None:
    moment = ago(MINUTE)
    for _ in range(3):
        fail(finished_at=moment)
    (group,) = failures().groups
    assert group.count == 3


def test_only_the_newest_are_looked_at() -> None:
    fail("builtins.KeyError", finished_at=ago(HOUR))
    fail()
    fail()
    found = failures(newest=2)
    assert (found.looked_at, found.is_capped) == (2, True)
    assert [group.error_class for group in found.groups] == ["builtins.ValueError"]


def test_failures_before_a_moment_are_left_out_also_in_the_search() -> None:
    fail(finished_at=ago(2 * HOUR))
    fail("builtins.KeyError", finished_at=ago(HOUR))
    newest = fail(finished_at=ago(MINUTE))
    since = ago(HOUR)
    found = failures(since=since)
    [group] = found.groups
    assert (group.example_id, group.count, found.looked_at) == (newest, 1, 1)
    assert group.q.endswith(f" failed_after:{since.isoformat()}")
    which = parse(group.q, now=since).which
    assert [task.id for task in find(which).tasks] == [newest]


def test_only_so_many_groups_are_given_and_all_are_counted() -> None:
    for name in "aaabbc":
        fail(name=name)
    found = failures(limit=2)
    assert ([group.name for group in found.groups], found.looked_at) == (["a", "b"], 6)


def test_a_long_message_is_cut() -> None:
    fail(message="é" * (LONGEST_MESSAGE + 1))
    (group,) = failures().groups
    assert group.example_message == "é" * LONGEST_MESSAGE


def test_where_nothing_failed_there_is_no_group() -> None:
    found = failures()
    assert (found.groups, found.looked_at, found.is_capped) == ([], 0, False)
