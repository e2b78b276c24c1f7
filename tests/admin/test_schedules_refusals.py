"""The form of a schedule tells what is wrong beside the field, and never breaks."""

from __future__ import annotations

from typing import Any

import pytest

from taskqueue.models import Schedule
from tests.admin.conftest import LogIn
from tests.admin.rows import EVIL
from tests.admin.schedule_rows import errors_of, filled, simple_schedule
from tests.admin.test_admin import url
from tests.admin.test_refusals import is_chinese
from tests.sample.rest_workflows import deliver
from tests.sample.tasks import add, log_in

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
DEEP = "[" * 100_000
WRONG = [
    ("name", {"name": ""}),
    ("name", {"name": "taken"}),
    ("name", {"name": "a/b"}),
    ("name", {"name": " a"}),
    ("name", {"name": "x" * 300}),
    ("name", {"name": "a\x00"}),
    ("task", {"task": ""}),
    ("task", {"task": "shop.tasks.gone"}),
    ("kind", {"kind": "lunar"}),
    ("tz", {"tz": "Europe/Berlim"}),
    ("tz", {"tz": "+01:00"}),
    ("tz", {"tz": "../../etc/passwd"}),
    ("tz", {"tz": "a\x00"}),
    ("expression", {"expression": ""}),
    ("expression", {"expression": "61 * * * *"}),
    ("expression", {"expression": "0 0 30 2 *"}),
    ("expression", {"expression": "\x00"}),
    ("expression", {"expression": "9" * 5000}),
    ("interval", {"kind": "every"}),
    ("interval", {"kind": "every", "interval_0": "0.01"}),
    ("interval", {"kind": "every", "interval_0": "nan"}),
    ("interval", {"kind": "every", "interval_0": "1e400"}),
    ("interval", {"kind": "every", "interval_0": "999999999999", "interval_1": "86400"}),
    ("interval", {"kind": "after_end", "interval_0": "-1"}),
    ("interval", {"kind": "after_end", "interval_0": "1", "interval_1": "7"}),
    ("first", {"kind": "daily_window", "first": "25:00", "last": "10:00", "every_0": "1"}),
    ("last", {"kind": "daily_window", "first": "09:00", "last": "", "every_0": "1"}),
    ("last", {"kind": "daily_window", "first": "09:00", "last": "x", "every_0": "1"}),
    ("every", {"kind": "daily_window", "first": "09:00", "last": "10:00"}),
    ("every", {"kind": "daily_window", "first": "09:00", "last": "10:00", "every_0": "9999"}),
    ("days", {"kind": "daily_window", "first": "09:00", "last": "10:00", "every_0": "1",
              "days": []}),
    ("days", {"kind": "daily_window", "first": "09:00", "last": "10:00", "every_0": "1",
              "days": ["x"]}),
    ("at", {"kind": "once", "at": "soon"}),
    ("at", {"kind": "once", "at": "10000-01-01 00:00"}),
    ("at", {"kind": "once", "at": "9999-12-31 23:59-12:00"}),
    ("kind", {"kind": "once", "at": "2001-01-01 00:00"}),
    ("start", {"start": "99999-01-01"}),
    ("start", {"start": "2099-01-02", "end": "2099-01-01"}),
    ("kind", {"end": "2001-01-01"}),
    ("args", {"args": "[1"}),
    ("args", {"args": "{}"}),
    ("args", {"args": "[NaN]"}),
    ("args", {"args": "[1e999]"}),
    ("args", {"args": "[" + "9" * 30 + "]"}),
    ("args", {"args": "[" + "9" * 5000 + "]"}),
    ("args", {"args": '["\\u0000"]'}),
    ("args", {"args": '["\\ud800"]'}),
    ("args", {"args": DEEP}),
    ("args", {"args": "[" * 200 + "]" * 200}),
    ("args", {"args": '["too", "many"]'}),
    ("kwargs", {"kwargs": "[]"}),
    ("kwargs", {"kwargs": '{"a": \x00}'}),
    ("queue_name", {"queue_name": "x" * 1000}),
    ("priority", {"priority": "9" * 50}),
    ("priority", {"priority": "101010"}),
    ("options", {"options": "[]"}),
    ("options", {"options": '{"max_attemps": 1}'}),
    ("options", {"options": '{"run_after": 1}'}),
    ("options", {"options": '{"priority": 1}'}),
    ("options", {"options": '{"metadata": {"a": "\\u0000"}}'}),
    ("options", {"options": '{"deadline": 1e300}'}),
    ("missed", {"missed": "never"}),
    ("missed_window", {"missed": "window"}),
    ("missed_window", {"missed": "window", "missed_window_0": "0.1"}),
    ("missed_window", {"missed": "window", "missed_window_0": "x"}),
    ("overlap", {"overlap": "x"}),
    ("pause_after_failures", {"pause_after_failures": "0"}),
    ("pause_after_failures", {"pause_after_failures": "9" * 20}),
    ("reason", {"reason": "x" * 2000}),
    ("reason", {"reason": "a\x00"}),
]  # fmt: skip


# Of the tests' workflow, and options that only some tasks take.
ALSO_WRONG = [
    {"options": '{"unique_per": "day"}'},
    {"options": '{"a": 1, "a": 2}'},
    {"options": '{"backoff": "fixed(x)"}'},
    {"options": "{'a': 1}"},
    {"options": '{"a" 1}'},
    {"options": '{"a": 1 2}'},
    {"options": '{"a": 1} 2'},
    {"options": '{"a": "'},
    {"task": deliver.name},
    {"task": deliver.name, "args": "[1, 2, 3, 4]"},
    {"task": deliver.name, "options": '{"colour": 1}'},
    {"task": deliver.name, "options": '{"api": true}'},
    {"task": add.name, "args": '["a"]'},
    {"task": add.name, "args": "[1]", "kwargs": '{"a": 1}'},
    {"task": add.name, "kwargs": '{"a": 1, "c": 3}'},
]


def test_whatever_is_wrong_is_told_in_the_language_of_the_reader(
    log_in_as: LogIn, settings: Any
) -> None:
    simple_schedule("taken")
    client = log_in_as("superuser")
    settings.LANGUAGE_CODE = "zh-hans"
    english = [
        (changes, told)
        for changes in [*(changes for _field, changes in WRONG), *ALSO_WRONG]
        for each in errors_of(client, url("schedule", "add"), **changes).values()
        for told in each
        if not is_chinese(told)
    ]
    assert english == []


def test_pythons_errors_about_arguments_are_shown_in_chinese(
    log_in_as: LogIn, settings: Any
) -> None:
    settings.LANGUAGE_CODE = "zh-hans"
    client = log_in_as("superuser")
    wrong = {"args": "[1]", "kwargs": '{"a": 1}'}
    (told,) = errors_of(client, url("schedule", "add"), task=add.name, **wrong)["args"]
    assert told.endswith("参数 'a' 给出了多个值。")


@pytest.mark.parametrize(("field", "changes"), WRONG)
def test_errors_are_shown_beside_their_fields(
    field: str, changes: dict[str, Any], log_in_as: LogIn
) -> None:
    simple_schedule("taken")
    errors = errors_of(log_in_as("superuser"), url("schedule", "add"), **changes)
    assert list(errors) == [field], errors
    assert Schedule.objects.count() == 1


def test_fields_that_the_chosen_kind_does_not_use_are_ignored(log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    other = {"kind": "every", "interval_0": "60", "expression": "?", "at": "?", "first": "?",
             "every_0": "?", "days": ["?"], "missed_window_0": "?"}  # fmt: skip
    assert client.post(url("schedule", "add"), filled(**other)).status_code == 302
    again = {"kind": "once", "at": "2099-01-01", "start": "?", "end": "?", "name": "again"}
    assert client.post(url("schedule", "add"), filled(**again)).status_code == 302


def test_an_empty_post_shows_the_missing_fields(log_in_as: LogIn) -> None:
    answer = log_in_as("superuser").post(url("schedule", "add"), {})
    assert answer.status_code == 200
    errors = answer.context["form"].errors
    assert {"name", "task", "kind", "tz", "missed", "overlap"} == set(errors)


def test_a_refused_form_shows_its_values_escaped(
    log_in_as: LogIn,
) -> None:
    client = log_in_as("superuser")
    wrong = filled(**dict.fromkeys(("name", "expression", "args", "tz", "at", "reason"), EVIL))
    page = client.post(url("schedule", "add"), wrong).content.decode()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page


def test_refused_arguments_have_an_error_beside_them(
    log_in_as: LogIn,
) -> None:
    errors = errors_of(log_in_as("superuser"), url("schedule", "add"), task=log_in.name)
    assert list(errors) == ["args"]
    assert log_in.name in errors["args"][0]
