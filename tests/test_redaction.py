"""What may be shown of arguments: never what a definition calls sensitive."""

from __future__ import annotations

from typing import Any

import pytest

from taskqueue.declarations.options import Options
from taskqueue.declarations.redaction import REDACTED, redacted, redacted_for
from taskqueue.definitions import Definition
from taskqueue.exceptions import ArgumentsDoNotBind


def definition(body: Any, *sensitive: str, takes_context: bool = False) -> Definition[Any, Any]:
    """A definition that the registry does not know."""
    return Definition(body, Options(sensitive=frozenset(sensitive), takes_context=takes_context))


def plain(user: str, password: str = "", *rest: str) -> None:
    """A body."""


def collecting(user: str, **options: str) -> None:
    """A body that takes any keyword."""


@pytest.mark.parametrize(
    ("args", "kwargs", "shown_args", "shown_kwargs"),
    [
        (["ann", "hush"], {}, ["ann", REDACTED], {}),
        (["ann"], {"password": "hush"}, ["ann"], {"password": REDACTED}),
        ([], {"user": "ann"}, [], {"user": "ann"}),
        (["ann", "hush", "more"], {}, ["ann", REDACTED, "more"], {}),
    ],
)
def test_a_sensitive_argument_is_redacted_however_it_was_passed(
    args: list[str], kwargs: dict[str, str], shown_args: list[str], shown_kwargs: dict[str, str]
) -> None:
    assert redacted_for(definition(plain, "password"), args, kwargs) == (shown_args, shown_kwargs)


def test_a_sensitive_collection_is_redacted_as_a_whole() -> None:
    assert redacted_for(definition(plain, "rest"), ["ann", "x", "a", "b"], {}).args == [
        "ann", "x", REDACTED, REDACTED,
    ]  # fmt: skip
    shown = redacted_for(definition(collecting, "options"), [], {"user": "ann", "pin": "1"})
    assert shown.kwargs == {"user": "ann", "pin": REDACTED}


def test_one_name_of_a_collection_can_be_sensitive() -> None:
    shown = redacted_for(definition(collecting, "pin"), [], {"pin": "1", "colour": "red"})
    assert shown.kwargs == {"pin": REDACTED, "colour": "red"}


def test_the_context_is_not_counted_among_the_arguments() -> None:
    def body(context: Any, user: str, password: str) -> None:
        """A body."""

    shown = redacted_for(definition(body, "password", takes_context=True), ["ann", "hush"], {})
    assert shown.args == ["ann", REDACTED]


def test_arguments_that_no_longer_fit_a_sensitive_definition_are_redacted() -> None:
    def renamed(user: str, passphrase: str) -> None:
        """A body whose secret had another name when the task was enqueued."""

    old = redacted_for(definition(renamed, "passphrase"), ["ann", "a", "b"], {"password": "hush"})
    assert old == (["ann", REDACTED, REDACTED], {"password": REDACTED})


def test_without_secrets_all_is_shown() -> None:
    assert redacted_for(definition(plain), ["ann", "x"], {"other": 1}) == (
        ["ann", "x"], {"other": 1},
    )  # fmt: skip


def test_a_definition_is_found_by_the_name_of_its_task() -> None:
    shown = redacted("tests.sample.tasks.log_in", ["ann", "hush"], {})
    assert shown is not None
    assert shown.args == ["ann", REDACTED]


def test_of_an_unknown_definition_nothing_may_be_shown() -> None:
    assert redacted("tests.sample.tasks.gone", ["ann", "hush"], {}) is None


def test_no_result_shows_its_arguments_when_it_is_printed() -> None:
    from taskqueue.backend.framework import TaskResultStatus
    from taskqueue.backend.results import QueueResult
    from taskqueue.backend.tasks import make

    values = {
        "id": "1",
        "status": TaskResultStatus.READY,
        "args": ["hush"],
        "kwargs": {"a": "hush"},
    }
    assert repr(make(QueueResult, values)) == "<QueueResult 1 READY>"


@pytest.mark.django_db
def test_our_results_and_rows_show_no_arguments_when_they_are_printed() -> None:
    from taskqueue.models import Task
    from tests.sample.tasks import log_in

    result = log_in.enqueue("ann", password="hush")
    assert "hush" not in f"{result!r} {result.definition!r} {Task.objects.get()!r}"


def test_a_refused_call_shows_no_default_of_a_sensitive_parameter() -> None:
    def body(user: str, token: str = "dev-secret", *, colour: str = "red") -> None:
        """A body."""

    with pytest.raises(ArgumentsDoNotBind) as refused:
        definition(body, "token").encode((), {"size": 1})
    told = str(refused.value)
    assert "dev-secret" not in told
    assert "(user: 'str', token: 'str' = [redacted], *, colour: 'str' = 'red')" in told
    with pytest.raises(ArgumentsDoNotBind, match="dev-secret"):
        definition(body).encode((), {"size": 1})
