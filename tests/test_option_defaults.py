"""The project gives its definitions options, by patterns of their names."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import override_settings

from taskqueue import Fixed, InvalidTask, task
from taskqueue.backend.definitions import TaskDefinition
from taskqueue.declarations.definition import registry
from taskqueue.declarations.definition_checks import check_option_defaults
from tests.sample.framework_tasks import add

DEFAULTS: dict[str, Any] = {
    "*": {"max_attempts": 3, "backoff": Fixed(7)},
    "shop.reports.*": {"queue_name": "reports", "timeout": 1800, "priority": 5},
    "shop.reports.daily": {"timeout": 60},
}


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_definitions", dict(registry._definitions))


def body() -> None: ...


def declared(name: str, **options: Any) -> Any:
    with override_settings(TASKQUEUE={"DEFAULTS": DEFAULTS}):
        return task(name=name, **options)(body).options


def test_each_pattern_that_matches_gives_its_options_and_the_later_wins() -> None:
    weekly = declared("shop.reports.weekly")
    assert (weekly.queue_name, weekly.priority) == ("reports", 5)
    assert (weekly.timeout, weekly.max_attempts) == (timedelta(seconds=1800), 3)
    assert weekly.backoff == Fixed(7)
    assert declared("shop.reports.daily").timeout == timedelta(seconds=60)
    mail = declared("shop.mail.send")
    assert (mail.queue_name, mail.timeout, mail.max_attempts) == ("default", None, 3)


def test_options_of_the_definition_go_before_those_of_the_settings() -> None:
    own = declared("shop.reports.daily", queue_name="mail", timeout=None)
    assert (own.queue_name, own.timeout, own.priority) == ("mail", None, 5)


def test_tasks_of_the_framework_have_them_too() -> None:
    with override_settings(TASKQUEUE={"DEFAULTS": {"tests.sample.*": {"timeout": 9}}}):
        made = TaskDefinition.of(add, {})
    assert made.options.timeout == timedelta(seconds=9)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"timout": 5}, "There is no option 'timout'. Did you mean 'timeout'?"),
        ({"timeout": -1}, "timeout must be"),
        ({"run_after": 5}, "run_after cannot be defined statically"),
        ({"name": "shop.x"}, "name belongs to one definition: set it in @task(...)."),
        ({"takes_context": True}, "takes_context belongs to one definition"),
    ],
)
def test_options_that_cannot_be_are_errors_of_the_checks_and_of_the_definition(
    options: dict[str, Any], reason: str
) -> None:
    with override_settings(TASKQUEUE={"DEFAULTS": {"tests.*": options}}):
        (error,) = check_option_defaults()
        with pytest.raises(InvalidTask) as raised:
            task(name="tests.mine")(body)
    assert error.id == "taskqueue.E009"
    for text in (error.msg, str(raised.value)):
        assert text.startswith("TASKQUEUE['DEFAULTS']['tests.*']: ")
        assert reason in text


def test_a_pattern_that_matches_nothing_is_reported() -> None:
    defaults = {"tests.sample.task.ad": {"timeout": 5}, "tests.sample.*": {"timeout": 5}}
    with override_settings(TASKQUEUE={"DEFAULTS": defaults}):
        (warning,) = check_option_defaults()
    assert warning.id == "taskqueue.W003"
    assert "'tests.sample.task.ad', which matches no definition" in warning.msg
    assert warning.hint == "Did you mean 'tests.sample.tasks.add'?"


def test_no_name_is_suggested_for_a_pattern_that_is_like_none() -> None:
    with override_settings(TASKQUEUE={"DEFAULTS": {"billing.tasks.send_*": {"timeout": 5}}}):
        (warning,) = check_option_defaults()
    assert warning.hint is None
