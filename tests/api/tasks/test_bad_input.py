"""What Python refuses is refused over REST too, with its place, and nothing is written."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import override_settings

from taskqueue.api.tasks.option_fields import OPTIONS
from taskqueue.core.retries import Backoff, Fixed
from taskqueue.models import Audit, Task
from tests.api.conftest import ApiClient
from tests.api.tasks.problems import problem
from tests.option_rows import ACCEPTED
from tests.refused_option_rows import REFUSED as REFUSED_OPTIONS
from tests.sample.rest_tasks import register, tell
from tests.test_payload import EXACT, nested
from tests.test_payload import REFUSED as REFUSED_ARGUMENTS

pytestmark = pytest.mark.django_db
DAY = 86_400
YEAR = 366 * DAY
NEVER_STORED = pytest.mark.sqlite_only
"""What no database sees need not be tried with both."""


class NotInJson(Exception):
    """A value that no body can hold."""


def as_json(value: Any) -> Any:
    """The value as a client in another language would write it."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Backoff):
        return value.snapshot()
    if isinstance(value, list | tuple):
        if any(each is value for each in value):
            raise NotInJson
        return [as_json(each) for each in value]
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise NotInJson
        return {key: as_json(each) for key, each in value.items()}
    if value is None or isinstance(value, str | int | float):
        return value
    raise NotInJson


def rows(table: Any) -> Iterator[Any]:
    """The rows of options whose values a body can hold."""
    for name, value, *_ in table:
        try:
            written = as_json(value)
        except NotInJson:
            continue
        if name != "name":
            yield pytest.param(name, written, id=ascii(f"{name}={str(written)[:40]}"))


def refused(answer: Any) -> dict[str, Any]:
    """What it tells; and that nothing was written."""
    assert answer.status_code in (400, 422), answer.content
    told = problem(answer, answer.status_code, answer.json()["code"])
    assert told["detail"]
    assert not Task.objects.exists()
    assert not Audit.objects.exists()
    return told


@NEVER_STORED
@pytest.mark.parametrize(("name", "value"), list(rows(REFUSED_OPTIONS)))
def test_an_option_that_python_refuses_is_refused(name: str, value: Any, root: ApiClient) -> None:
    told = refused(root.act("tasks/", {"name": tell.name, name: value}))
    if "errors" in told and told["errors"][0]["pointer"]:
        assert told["errors"][0]["pointer"].startswith(f"/{name}")


BEYOND: list[tuple[str, Any]] = [
    ("max_attempts", 2**31 - 1), ("workers", 1000), ("deadline", "2030-01-01T00:00:00+00:00"),
    ("retention", 400 * 86_400.0), ("unique_for", "kept"),
]  # fmt: skip
"""What Python takes, and REST bounds."""


@pytest.mark.parametrize(("name", "value"), list(rows(ACCEPTED)))
def test_an_option_that_python_takes_is_taken_if_json_has_it(
    name: str, value: Any, root: ApiClient
) -> None:
    if name == "worker_names" and isinstance(value, str):
        value = [value]  # Python takes one as it is.
    answer = root.act("tasks/", {"name": tell.name, name: value})
    if name in OPTIONS and (name, value) not in BEYOND:
        assert answer.status_code == 201, answer.content
    else:  # Of definitions.
        assert refused(answer)["errors"][0]["pointer"] == f"/{name}"


def argument_rows() -> Iterator[Any]:
    for name, (value, _) in REFUSED_ARGUMENTS.items():
        if isinstance(value, datetime | timedelta):
            continue  # As arguments they are text and numbers.
        try:
            yield pytest.param(as_json(value), id=name)
        except NotInJson:
            continue


@pytest.mark.parametrize("value", list(argument_rows()))
def test_an_argument_that_python_refuses_is_refused_with_its_place(
    value: Any, root: ApiClient
) -> None:
    told = refused(root.act("tasks/", {"name": tell.name, "args": [1, value]}))
    if told["status"] == 422:  # Else it is no JSON.
        assert told["errors"][0]["pointer"].startswith("/args/1")
    told = refused(root.act("tasks/", {"name": tell.name, "kwargs": {"a": {"b": value}}}))
    if told["status"] == 422:
        assert told["errors"][0]["pointer"].startswith("/kwargs/a/b")
    refused(root.act("tasks/", {"name": tell.name, "metadata": {"a": value}}))
    many = [{"name": tell.name}, {"name": tell.name, "args": [value]}]
    told = refused(root.act("tasks/bulk/", {"tasks": many}))
    if told["status"] == 422:
        assert told["errors"][0]["pointer"].startswith("/tasks/1/args/0")


@pytest.mark.parametrize("value", EXACT, ids=ascii)
def test_an_argument_comes_back_as_it_was_sent(value: Any, root: ApiClient) -> None:
    answer = root.act("tasks/", {"name": tell.name, "args": [value], "kwargs": {"a": value}})
    assert answer.status_code == 201
    told = root.get(answer["Location"]).content
    assert json.loads(told)["args"] == [value]
    assert json.loads(told)["kwargs"] == {"a": value}


NAME = json.dumps(tell.name)
BODIES = {
    "nothing": "",
    "no JSON": "{",
    "not UTF-8": b'{"name": "\xff"}',
    "a list": "[]",
    "a number": "1",
    "null": "null",
    "a text": '"x"',
    "no name": "{}",
    "a name that is a number": '{"name": 5}',
    "a name that is null": '{"name": null}',
    "an empty name": '{"name": ""}',
    "a long name": json.dumps({"name": "n" * 256}),
    "a name with NUL": '{"name": "a\\u0000"}',
    "a name with a lone surrogate": '{"name": "\\ud800"}',
    "a name that is a path": '{"name": "os.system"}',
    "a key that stands twice": f'{{"name": {NAME}, "name": {NAME}}}',
    "a key that stands twice inside": f'{{"name": {NAME}, "kwargs": {{"a": 1, "a": 2}}}}',
    "an unknown field": f'{{"name": {NAME}, "color": 1}}',
    "a field of answers": f'{{"name": {NAME}, "id": "1"}}',
    "a field that no text can hold": f'{{"name": {NAME}, "\\ud800": 1}}',
    "a class that is no exception": f'{{"name": {NAME}, "retry_for": ["builtins.dict"]}}',
    "a function in place of a class": f'{{"name": {NAME}, "retry_for": ["os.system"]}}',
    "a class that nobody has loaded": f'{{"name": {NAME}, "retry_for": ["antigravity.Up"]}}',
    "a class as text": f'{{"name": {NAME}, "retry_for": "ValueError"}}',
    "classes without end": json.dumps({"name": tell.name, "retry_for": ["ValueError"] * 51}),
    "attempts without end": f'{{"name": {NAME}, "max_attempts": 1001}}',
    "crashes without end": f'{{"name": {NAME}, "max_crashes": 101}}',
    "retries without a pause": (
        f'{{"name": {NAME}, "backoff": {{"policy": "fixed", "seconds": 0}}}}'
    ),
    "retries with a cap of nothing": (
        f'{{"name": {NAME}, "backoff": {{"policy": "linear", "base": 5, "cap": 0.5}}}}'
    ),
    "a lease of years": f'{{"name": {NAME}, "lease_duration": 1e9}}',
    "a lease of more than a day": f'{{"name": {NAME}, "lease_duration": 86401}}',
    "a ping of more than a third of a day": (
        f'{{"name": {NAME}, "lease_duration": 86400, "ping_interval": 28801}}'
    ),
    "a retention of years": f'{{"name": {NAME}, "retention": {YEAR + 1}}}',
    "a crash delay of more than a day": f'{{"name": {NAME}, "crash_delay": 86401}}',
    "a timeout of more than a week": f'{{"name": {NAME}, "timeout": {7 * DAY + 1}}}',
    "a time after years": f'{{"name": {NAME}, "run_after": {YEAR + 1}}}',
    "a moment after years": f'{{"name": {NAME}, "run_after": "9999-01-01T00:00:00Z"}}',
    "a deadline after years": f'{{"name": {NAME}, "deadline": {YEAR + 1}}}',
    "a deadline at the end of time": f'{{"name": {NAME}, "deadline": "9999-12-31T23:59:59Z"}}',
    "an expiry after years": f'{{"name": {NAME}, "expires_after": {YEAR + 1}}}',
    "a key for years": f'{{"name": {NAME}, "unique_key": "k", "unique_for": {YEAR + 1}}}',
    "a key for ever": f'{{"name": {NAME}, "unique_key": "k", "unique_for": "kept"}}',
    "workers without end": f'{{"name": {NAME}, "workers": 101}}',
    "NaN": f'{{"name": {NAME}, "args": [NaN]}}',
    "Infinity": f'{{"name": {NAME}, "args": [-Infinity]}}',
    "a number beyond floats": f'{{"name": {NAME}, "args": [1e400]}}',
    "a priority beyond floats": f'{{"name": {NAME}, "priority": 1e400}}',
    "a timeout beyond floats": f'{{"name": {NAME}, "timeout": {10**400}}}',
    "digits without end": f'{{"name": {NAME}, "args": [{"9" * 5000}]}}',
    "brackets without end": f'{{"name": {NAME}, "args": {"[" * 100_000}',
    "deep nesting": json.dumps({"name": tell.name, "args": nested(40)}),
    "args as an object": f'{{"name": {NAME}, "args": {{}}}}',
    "args as a text": f'{{"name": {NAME}, "args": "abc"}}',
    "args as null": f'{{"name": {NAME}, "args": null}}',
    "kwargs as a list": f'{{"name": {NAME}, "kwargs": [["a", 1]]}}',
    "arguments beyond the limit": json.dumps({"name": tell.name, "args": ["x" * 65_537]}),
    "arguments beyond the limit together": json.dumps(
        {"name": tell.name, "args": ["x" * 40_000], "kwargs": {"a": "x" * 40_000}}
    ),
    "a naive moment": f'{{"name": {NAME}, "run_after": "2030-01-01T00:00:00"}}',
    "a day": f'{{"name": {NAME}, "run_after": "2030-01-01"}}',
    "beyond year 9999": f'{{"name": {NAME}, "run_after": "10000-01-01T00:00:00Z"}}',
    "beyond year 9999 in UTC": f'{{"name": {NAME}, "deadline": "9999-12-31T23:59:59-05:00"}}',
    "the 30th of February": f'{{"name": {NAME}, "run_after": "2030-02-30T00:00:00Z"}}',
    "a policy of no kind": f'{{"name": {NAME}, "backoff": {{"policy": "magic"}}}}',
    "a policy with a number too many": (
        f'{{"name": {NAME}, "backoff": {{"policy": "fixed", "secs": 5}}}}'
    ),
    "a policy that waits for ever": (
        f'{{"name": {NAME}, "backoff": {{"policy": "fixed", "seconds": 1e12}}}}'
    ),
    "a policy that does not wait": (
        f'{{"name": {NAME}, "backoff": {{"policy": "exponential", "factor": 0.1}}}}'
    ),
    "a policy as text": f'{{"name": {NAME}, "backoff": "fixed"}}',
    "a policy of lists": f'{{"name": {NAME}, "backoff": {{"policy": ["fixed"]}}}}',
}  # fmt: skip


@NEVER_STORED
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_body_that_cannot_be_is_refused(body: str | bytes, root: ApiClient) -> None:
    refused(root.act("tasks/", body))


@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_other_content_is_not_read(method: str, root: ApiClient) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "application/xml", ""):
        answer = root.generic(method, "/api/v1/tasks/", "name=x", content_type=kind)
        problem(answer, 415 if method == "POST" else 405, answer.json()["code"])
    assert not Task.objects.exists()


@override_settings(DATA_UPLOAD_MAX_MEMORY_SIZE=1000)
@pytest.mark.parametrize("act", ["tasks/", "tasks/bulk/"])
def test_a_body_beyond_the_limit_is_413(act: str, root: ApiClient) -> None:
    problem(root.act(act, {"name": "x" * 1000}), 413, "body_too_large")


def test_the_largest_options_that_may_be_are_taken(root: ApiClient) -> None:
    body = {
        "name": tell.name, "max_attempts": 1000, "max_crashes": 100, "lease_duration": 86400,
        "ping_interval": 28800, "retention": YEAR, "workers": 100, "crash_delay": DAY,
        "timeout": 7 * DAY, "run_after": YEAR, "deadline": YEAR, "expires_after": YEAR,
        "unique_key": "k", "unique_for": YEAR,
        "backoff": {"policy": "fixed", "seconds": 1},
    }  # fmt: skip
    assert root.act("tasks/", body).status_code == 201


@pytest.mark.parametrize("option", [{"retry_for": ["os.system"] * 2}, {"unique_for": "ended"}])
def test_a_mistake_in_an_option_is_reported_once_and_points_to_the_option(
    option: dict[str, Any], root: ApiClient
) -> None:
    (name,) = option
    refusal = problem(root.act("tasks/", {"name": tell.name, **option}), 422, "invalid")
    places = [(mistake["pointer"], mistake["code"]) for mistake in refusal["errors"]]
    assert places == [(f"/{name}", "invalid")]


def test_python_code_is_not_bounded() -> None:
    huge = tell.using(
        max_attempts=2**31 - 1, lease_duration=1e9, backoff=Fixed(0), workers=1000, timeout=3e9,
        crash_delay=3e9, deadline=3e9, expires_after=3e9, unique_key="k", unique_for="kept",
    )  # fmt: skip
    assert huge.enqueue().status == "ready"


@pytest.mark.parametrize(
    "options",
    [{"max_attempts": 1001}, {"lease_duration": 1e9}, {"retention": YEAR + 1},
     {"crash_delay": 3e9}, {"timeout": 3e9},
     {"backoff": {"policy": "fixed", "seconds": 0}}, {"retry_for": ["os.system"]}],
    ids=str,
)  # fmt: skip
def test_schedules_and_changes_have_the_same_bounds(
    options: dict[str, Any], root: ApiClient
) -> None:
    rule = {"kind": "every", "interval": 60}
    body = {"name": "s", "task": tell.name, "rule": rule, "options": options}
    refusal = problem(root.act("schedules/", body), 422, "invalid")
    assert refusal["errors"][0]["pointer"].startswith(f"/options/{next(iter(options))}")
    task = tell.enqueue()
    answer = root.ask("PATCH", f"tasks/{task.id}/", options)
    assert answer.status_code == 422
    operation = {"verb": "update", "everything": True, "arguments": {"changes": options}}
    assert root.act("operations/", operation).status_code == 422
    assert Task.objects.get().max_attempts == 1


KEPT = {"unique_key": "k", "unique_for": "kept"}


def test_a_key_is_kept_where_the_definition_declares_it(root: ApiClient) -> None:
    body = {"name": register.name, "args": [1], "unique_key": "k"}
    first = root.act("tasks/", {**body, "unique_for": "kept"})
    assert first.status_code == 201
    assert root.act("tasks/", {**body, "restart": "all"}).json()["id"] == first.json()["id"]
    told = refused_kept(root.act("tasks/", {"name": tell.name, **KEPT}))
    assert told["pointer"] == "/unique_for"
    assert "@task(unique_for='kept')" in told["detail"]


def test_a_schedule_keeps_keys_where_the_definition_declares_it(root: ApiClient) -> None:
    rule = {"kind": "every", "interval": 60}
    body = {"name": "s", "rule": rule, "task": register.name, "args": [1], "options": KEPT}
    assert root.act("schedules/", body).status_code == 201
    other = {"task": tell.name, "args": [1]}
    for answer in (
        root.act("schedules/", {**body, **other, "name": "t"}),
        root.ask("PATCH", "schedules/s/", {**other, "options": KEPT}),
        root.ask("PATCH", "schedules/s/", other),
    ):
        assert refused_kept(answer)["pointer"] == "/options/unique_for"
    assert root.ask("PATCH", "schedules/s/", {**other, "options": {}}).status_code == 200


def refused_kept(answer: Any) -> dict[str, Any]:
    """The mistake that it tells."""
    [told] = problem(answer, 422, "invalid_option")["errors"]
    return dict(told)


@pytest.mark.parametrize("when", [3e9, "9999-01-01T00:00:00Z"])
def test_an_operation_reschedules_at_most_a_year_ahead(when: Any, root: ApiClient) -> None:
    body = {"verb": "reschedule", "everything": True, "arguments": {"run_after": when}}
    told = problem(root.act("operations/", body), 422, "invalid")
    assert told["errors"][0]["pointer"].startswith("/arguments/run_after")
