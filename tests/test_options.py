"""Every option is checked where it is written down, and a mistake is answered with the remedy."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import datetime
from types import MappingProxyType
from typing import Any

import pytest

from taskqueue import InvalidTask, task
from taskqueue.core.suggestions import SYNONYMS
from taskqueue.declarations.option import Use
from taskqueue.declarations.options import OPTIONS, options_for
from taskqueue.definitions import Definition
from taskqueue.models import Task
from tests.engine.steps import claim_one
from tests.option_rows import ACCEPTED, ask
from tests.refused_option_rows import HUGE, REFUSED
from tests.sample.tasks import add, echo

NAMES = OPTIONS.keys()
USING_ONLY = NAMES - options_for(Use.TASK).keys()
DEFINITION_ONLY = NAMES - options_for(Use.USING).keys()


def body(amount: int = 0, note: str = "") -> None:
    """A body whose place all declarations here share."""


async def async_body(amount: int = 0, note: str = "") -> None:
    """What only such bodies can have."""


def declare(**options: Any) -> Definition[Any, Any]:
    return task(**options)(async_body if "per_slot" in options else body)


def named(rows: list[Any]) -> list[str]:
    return [f"{name}-{place}" for place, (name, *_) in enumerate(rows)]


@pytest.mark.parametrize(("name", "value", "normal"), ACCEPTED, ids=named(ACCEPTED))
def test_a_possible_value_is_taken_in_its_normal_form(name: str, value: Any, normal: Any) -> None:
    assert getattr(declare(**{name: value}).options, name) == normal


@pytest.mark.parametrize(("name", "value", "reason"), REFUSED, ids=named(REFUSED))
def test_an_impossible_value_is_refused_at_the_declaration(
    name: str, value: Any, reason: str
) -> None:
    with pytest.raises((InvalidTask, ValueError), match=reason) as refusal:
        declare(**{name: value})
    assert name in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [row for row in REFUSED if row[0] not in DEFINITION_ONLY],
    ids=named([row for row in REFUSED if row[0] not in DEFINITION_ONLY]),
)
def test_using_refuses_the_same(name: str, value: Any, reason: str) -> None:
    with pytest.raises((InvalidTask, ValueError), match=reason):
        add.using(**{name: value})


def test_every_option_stands_in_the_tables() -> None:
    assert {row[0] for row in ACCEPTED} == NAMES - USING_ONLY
    # A schedule is refused by the system checks: see tests/schedules.
    assert {row[0] for row in REFUSED} == NAMES - USING_ONLY - {"schedule"}


@pytest.mark.parametrize("name", sorted(DEFINITION_ONLY))
def test_using_refuses_options_of_the_definition(name: str) -> None:
    with pytest.raises(InvalidTask, match=rf"set it in @task\({name}=...\)"):
        add.using(**{name: True})


def test_run_after_belongs_to_using() -> None:
    with pytest.raises(InvalidTask, match=r"Use .using\(run_after=...\)"):
        declare(run_after=5)


def test_a_callable_backoff_belongs_to_the_definition() -> None:
    with pytest.raises(InvalidTask, match=r"@task\(backoff=...\)"):
        add.using(backoff=ask)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("max_attemps", "max_attempts"),
        ("queue", "queue_name"),
        ("uniqe_key", "unique_key"),
        ("time_out", "timeout"),
        ("TIMEOUT", "timeout"),
        ("Max-Retries", "max_attempts"),
        ("soft_time_limit", "timeout"),
        ("ttl", "expires_after"),
        ("unique", "unique_key"),
    ],
)
@pytest.mark.parametrize("write", [declare, add.using], ids=["task", "using"])
def test_an_unknown_option_suggests_the_nearest(
    write: Callable[..., Any], wrong: str, right: str
) -> None:
    with pytest.raises(InvalidTask, match=f"no option '{wrong}'. Did you mean '{right}'"):
        write(**{wrong: 1})


@pytest.mark.parametrize("synonym", ["eta", "countdown", "delay", "at", "schedule_at"])
def test_a_synonym_of_another_queue_leads_to_the_option(synonym: str) -> None:
    with pytest.raises(InvalidTask, match="Did you mean 'run_after'"):
        add.using(**{synonym: 1})
    with pytest.raises(InvalidTask, match=r"no option .* Use \.using\(run_after=\.\.\.\)"):
        declare(**{synonym: 1})


def test_every_synonym_stands_for_an_option_and_is_none() -> None:
    assert set(SYNONYMS.values()) <= NAMES
    assert NAMES.isdisjoint(SYNONYMS)


@pytest.mark.parametrize(
    "name",
    ["partition", "partition_key", "limits", "rate_limit", "chain", "group", "callback",
     "on_success", "on_failure", "workflow", "event"],
)  # fmt: skip
@pytest.mark.parametrize("write", [declare, add.using], ids=["task", "using"])
def test_an_unknown_option_that_resembles_none_gets_no_suggestion(
    write: Callable[..., Any], name: str
) -> None:
    with pytest.raises(InvalidTask) as refusal:
        write(**{name: 1})
    assert str(refusal.value) == f"There is no option {name!r}."


def test_an_option_that_resembles_none_is_refused_without_a_guess() -> None:
    with pytest.raises(InvalidTask, match=r"^There is no option 'zzz'\.$"):
        declare(zzz=1)


@pytest.mark.parametrize("name", ["limit", "concurrency_key"])
@pytest.mark.parametrize("write", [declare, add.using], ids=["task", "using"])
def test_an_option_that_does_not_exist_yet_is_never_accepted_and_ignored(
    write: Callable[..., Any], name: str
) -> None:
    with pytest.raises(InvalidTask, match=f"no option '{name}'"):
        write(**{name: 1})


def test_a_ping_must_come_three_times_within_a_lease() -> None:
    assert declare(lease_duration=6, ping_interval=2)
    with pytest.raises(InvalidTask, match="at most a third of lease_duration"):
        declare(lease_duration=6, ping_interval=2.1)
    with pytest.raises(InvalidTask, match="at most a third of lease_duration"):
        declare(lease_duration=6).using(ping_interval=2.1)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"broadcast": True, "workers": 2}, "leave out workers and worker_names"),
        ({"broadcast": True, "worker_names": ["a"]}, "leave out workers and worker_names"),
        ({"workers": 3, "worker_names": ["a", "b", "a"]}, "never be reached by the 2"),
        ({"restart": "all", "unique_for": "finished"}, "needs unique_for='kept'"),
    ],
)
@pytest.mark.parametrize("write", [declare, add.using], ids=["task", "using"])
def test_workers_that_cannot_be_found_are_refused(
    write: Callable[..., Any], options: dict[str, Any], reason: str
) -> None:
    with pytest.raises(InvalidTask, match=reason):
        write(**options)


@pytest.mark.parametrize("value", [-math.inf, math.nan, HUGE, "x", datetime(2030, 1, 1), True])
def test_run_after_is_an_aware_datetime_or_a_duration(value: Any) -> None:
    with pytest.raises(InvalidTask, match="run_after"):
        add.using(run_after=value)


def test_using_gives_another_definition_and_leaves_the_first_alone() -> None:
    other = add.using(priority=5).using(queue_name="mail")
    assert (other.options.priority, other.options.queue_name) == (5, "mail")
    assert (add.options.priority, add.options.queue_name) == (0, "default")
    assert other.name == add.name
    assert other(2, b=3) == 5


def test_options_are_immutable() -> None:
    with pytest.raises(AttributeError):
        add.options.priority = 5  # type: ignore[misc]


@pytest.mark.django_db
def test_metadata_is_what_it_was_when_the_option_was_written() -> None:
    metadata = {"steps": [1]}
    other = echo.using(metadata=metadata)
    metadata["steps"].append(2)
    assert other.enqueue().metadata == {"steps": [1]}


@pytest.mark.django_db
def test_metadata_follows_the_rules_of_arguments() -> None:
    metadata = {"tuple": (1,), "bytes": b"x", "large": 1e16, "small": 5e-324}
    stored = {"tuple": [1], "bytes": "x", "large": 1e16, "small": 5e-324}
    using = echo.using(metadata=MappingProxyType(metadata))
    for result in (using.enqueue(), *using.enqueue_many([((), {})])):
        row = Task.objects.get(id=result.id)
        assert row.metadata == stored
        assert isinstance(row.metadata["large"], float)
        row.delete()
    using.enqueue()
    assert json.loads(claim_one().metadata) == stored
