"""Every option has one form in JSON and in text, the same for every face; nothing is imported."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any

import pytest

from taskqueue import Every, Exponential, Fibonacci, Fixed, InvalidTask, Linear, schedules
from taskqueue.declarations.discovery import discover_tasks
from taskqueue.declarations.option_forms import option_to_json
from taskqueue.declarations.options import options_from_json
from taskqueue.exceptions import InvalidSchedule
from taskqueue.models import Schedule, Task
from tests.admin.conftest import LogIn, log_in_as  # noqa: F401  (a fixture)
from tests.admin.schedule_rows import filled
from tests.admin.test_admin import url
from tests.management.test_taskqueue import refused, run
from tests.sample.rest_tasks import tell

pytestmark = pytest.mark.django_db

UNLOADED = "antigravity"
"""A module of the standard library that opens a browser when it is imported."""


class Busy(Exception):
    """Of the tests."""

    class Still(Exception):
        """Nested."""


PATH = f"{__name__}.Busy"

READ: list[tuple[str, Any, Any]] = [
    ("timeout", "5m", timedelta(minutes=5)),
    ("timeout", 300, 300),
    ("retention", "1.5d", timedelta(days=1.5)),
    ("deadline", "2h", timedelta(hours=2)),
    ("deadline", "2999-01-01T00:00:00Z", datetime(2999, 1, 1, tzinfo=UTC)),
    ("unique_for", "10m", timedelta(minutes=10)),
    ("unique_for", "kept", "kept"),
    ("queue_name", "5m", "5m"),
    ("backoff", {"policy": "exponential", "base": 3, "cap": 600}, Exponential(3, cap=600)),
    ("backoff", "exponential(base=3, cap=10m)", Exponential(3, cap=600)),
    ("backoff", "fixed(5)", Fixed(5)),
    ("backoff", "Linear(base=2.0, jitter=0.5)", Linear(2, jitter=0.5)),
    ("backoff", "exponential(base=1m, factor=0.5)", Exponential(60, factor=0.5)),
    ("backoff", " fibonacci ", Fibonacci()),
    ("backoff", Fixed(7), Fixed(7)),
    ("backoff", None, None),
    ("retry_for", ["ConnectionError", PATH], (ConnectionError, Busy)),
    ("retry_for", f"ConnectionError, {PATH}.Still", (ConnectionError, Busy.Still)),
    ("retry_for", "builtins.OSError", (OSError,)),
    ("retry_for", [Busy], (Busy,)),
    ("retry_for", None, None),
]


def parsed(name: str, form: Any) -> Any:
    return options_from_json({name: form})[name]


@pytest.mark.parametrize(("name", "form", "value"), READ, ids=str)
def test_a_form_is_read_as_using_takes_it_and_written_again(
    name: str, form: Any, value: Any
) -> None:
    assert parsed(name, form) == value
    tell.using(**{name: parsed(name, form)})
    written = json.loads(json.dumps(option_to_json(parsed(name, form))))
    again = tell.using(**{name: parsed(name, written)})
    assert getattr(again.options, name) == getattr(tell.using(**{name: value}).options, name)


WRONG: list[tuple[str, Any, str]] = [
    ("timeout", "5 minutes", "write 90, 90s, 250ms, 10m"),
    ("deadline", "soon", "neither a duration"),
    ("backoff", "expnential(2)", "Did you mean 'exponential'"),
    ("backoff", {"policy": "magic"}, "must be one of fixed, linear, exponential, fibonacci"),
    ("backoff", {"policy": "fixed", "second": 5}, "Did you mean 'seconds'"),
    ("backoff", "fixed(seconds=x)", "is not a duration"),
    ("backoff", "fixed(5", "is not a policy"),
    ("backoff", "exponential(factor=5m)", "factor must be a number, not '5m'"),
    ("backoff", "fixed(5, jitter=50ms)", "jitter must be a number"),
    ("backoff", {"policy": "exponential", "factor": "5"}, "factor must be a number, not '5'."),
    ("debounce", {"wait": "1w", "max_wait": "2h"}, "max_wait=2h) must not be shorter than wait=1w"),
    ("backoff", 5, "not 5: write it as exponential(base=2, cap=600"),
    ("backoff", [5], "write it as exponential"),
    ("backoff", "__import__('os')", "is not a duration"),
    ("retry_for", "ConnectionEror", "'ConnectionEror' is not an exception class"),
    ("retry_for", "os.system", "not an exception class"),
    ("retry_for", "builtins.dict", "not an exception class"),
    ("retry_for", f"{UNLOADED}.Error", "Nothing is imported"),
    ("retry_for", [".", "", "..x"], "not an exception class"),
]


@pytest.mark.parametrize(("name", "form", "why"), WRONG, ids=str)
def test_an_invalid_form_of_an_option_is_refused_and_imports_nothing(
    name: str, form: Any, why: str
) -> None:
    discover_tasks()  # What the project has is imported anyway.
    before = set(sys.modules)
    with pytest.raises(InvalidTask, match=why.replace("(", r"\(").replace(")", r"\)")):
        parsed(name, form)
    assert UNLOADED not in sys.modules
    assert set(sys.modules) == before


def test_a_module_that_computes_its_attributes_is_not_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []
    monkeypatch.setattr(sys.modules[__name__], "__getattr__", asked.append, raising=False)
    with pytest.raises(InvalidTask):
        parsed("retry_for", f"{__name__}.lazy")
    assert asked == []


FIXED = {"policy": "fixed", "jitter": 0.0, "seconds": 60.0}


def check_task() -> None:
    """The one task has the options that the tests below give."""
    options = Task.objects.get().options
    assert options["backoff"] == FIXED
    assert options["retry_for"] == ["builtins.ConnectionError", PATH]
    assert options["timeout"] == 300


def test_the_command_line_takes_every_option() -> None:
    run(
        "enqueue", tell.name, "--set", "backoff=fixed(1m)", "--set", "timeout=5m",
        "--set", f"retry_for=ConnectionError,{PATH}",
    )  # fmt: skip
    check_task()
    task = Task.objects.get()
    run("update", str(task.id), "--set", "backoff=linear(2)", "--set", "timeout=1h")
    task.refresh_from_db()
    assert (task.options["backoff"]["policy"], task.options["timeout"]) == ("linear", 3600)
    code, told = refused("enqueue", tell.name, "--set", f"retry_for={UNLOADED}.Error")
    assert (code, "Nothing is imported" in told) == (2, True)


def test_a_schedule_takes_on_the_command_line_what_an_enqueue_takes() -> None:
    given = ["backoff=fixed(1m)", "timeout=5m", f"retry_for=ConnectionError,{PATH}"]
    flags = [part for each in given for part in ("--option", each)]
    run("schedules", "create", "s", "--task", tell.name, "--every", "1h", *flags)
    stored = Schedule.objects.get().options
    paths = ["builtins.ConnectionError", PATH]
    assert stored == {"backoff": FIXED, "timeout": 300, "retry_for": paths}
    schedules.run_now("s")
    check_task()
    run("schedules", "edit", "s", "--option", "timeout=10m")
    assert Schedule.objects.get().options == {**stored, "timeout": 600}


def test_the_admin_takes_them_in_its_field(log_in_as: LogIn) -> None:  # noqa: F811
    client = log_in_as("superuser")
    options = {"backoff": "fixed(60)", "retry_for": ["ConnectionError", PATH], "timeout": "5m"}
    own = {"timeout_0": "5", "timeout_1": "60"}
    given = {name: value for name, value in options.items() if name != "timeout"}
    call = {"arg_args": "[]", "arg_kwargs": "{}", **own}
    add_url = f"{url('task', 'add')}?name={tell.name}"
    answer = client.post(add_url, {**call, "options": json.dumps(given)})
    assert answer.status_code == 302
    check_task()
    Task.objects.all().delete()
    body = filled(task=tell.name, options=json.dumps(options))
    assert client.post(url("schedule", "add"), body).status_code == 302
    schedules.run_now("mornings")
    check_task()
    wrong = {**call, "options": json.dumps({"retry_for": [f"{UNLOADED}.Error"]})}
    told = client.post(add_url, wrong).content.decode()
    assert "Nothing is imported" in told


def test_the_admin_says_how_further_options_are_written(log_in_as: LogIn) -> None:  # noqa: F811
    add_url = url("schedule", "add")
    wrong = filled(task=tell.name, options="backoff=fixed(60)")
    told = unescape(log_in_as("superuser").post(add_url, wrong).content.decode())
    assert 'Enter JSON, such as {"backoff": "fixed(60)"}.' in told
    assert "Expecting value" not in told


def test_the_rest_api_takes_them(log_in_as: LogIn) -> None:  # noqa: F811
    client = log_in_as("superuser")
    options = {
        "backoff": {"policy": "fixed", "seconds": 60}, "timeout": 300,
        "retry_for": ["ConnectionError", PATH],
    }  # fmt: skip
    json_type = "application/json"
    answer = client.post("/api/v1/tasks/", {"name": tell.name, **options}, json_type)
    assert answer.status_code == 201, answer.content
    check_task()
    Task.objects.all().delete()
    rule = {"kind": "every", "interval": 3600}
    body = {"name": "s", "task": tell.name, "rule": rule, "options": options}
    answer = client.post("/api/v1/schedules/", body, json_type)
    assert answer.status_code == 201, answer.content
    schedules.run_now("s")
    check_task()


def test_python_code_may_give_a_schedule_the_same() -> None:
    options = {"backoff": Fixed(60), "retry_for": [ConnectionError, Busy], "timeout": "5m"}
    schedules.create("s", tell, Every(hours=1), options=options)
    schedules.run_now("s")
    check_task()
    with pytest.raises(InvalidSchedule, match="is no JSON value"):
        schedules.edit("s", options={"unique_key": lambda: "x"})
