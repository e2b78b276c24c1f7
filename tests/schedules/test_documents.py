"""Schedules as a document: exported, and imported by their names."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from taskqueue import Cron, schedules
from taskqueue.declarations.redaction import REDACTED
from taskqueue.exceptions import InvalidSchedule
from taskqueue.models import Audit, Schedule, Task
from tests.sample.tasks import add, log_in, noop
from tests.schedules.steps import HOURLY

pytestmark = pytest.mark.django_db
HOUR = {"kind": "every", "interval": 3600}


def entry(name: str = "s", **more: Any) -> dict[str, Any]:
    return {"name": name, "task": noop.name, "rule": HOUR, **more}


def imported(*entries: dict[str, Any], **more: Any) -> dict[str, str]:
    """The effects of an import, by name."""
    done = schedules.import_document({"version": 1, "schedules": list(entries)}, **more)
    return {each.name: each.action for each in done}


def make_both() -> None:
    schedules.create("a", add, Cron("0 6 * * *", tz="Asia/Shanghai"), args=[1], kwargs={"b": 2},
                     options={"queue_name": "low", "timeout": timedelta(minutes=5)},
                     missed="window", missed_window=600, jitter=30, max_runs=7)  # fmt: skip
    schedules.create("b", noop, HOURLY, overlap="queue_all", pause_after_failures=3, enabled=False)


def test_an_export_that_is_imported_again_changes_nothing() -> None:
    make_both()
    document = json.loads(json.dumps(schedules.export_document()))
    assert [each["name"] for each in document["schedules"]] == ["a", "b"]
    audited = Audit.objects.count()
    done = schedules.import_document(document)
    assert [(each.name, each.action) for each in done] == [("a", "none"), ("b", "none")]
    assert Audit.objects.count() == audited


def test_an_import_makes_the_same_schedules_elsewhere() -> None:
    make_both()
    document = json.loads(json.dumps(schedules.export_document()))
    Schedule.objects.all().delete()
    schedules.import_document(document, by="ada", reason="moved")
    assert json.loads(json.dumps(schedules.export_document())) == document
    entry = Audit.objects.order_by("id").last()
    assert entry is not None
    assert (entry.verb, entry.actor, entry.reason) == ("create", "ada", "moved")


def test_an_import_changes_and_lists_the_differences() -> None:
    make_both()
    document = schedules.export_document(["b"])
    (b,) = document["schedules"]
    b |= {"overlap": "skip", "max_runs": 5}
    (done,) = schedules.import_document(document)
    assert done.action == "change"
    assert done.changes == {"overlap": ["queue_all", "skip"], "max_runs": [None, 5]}
    row = Schedule.objects.get(name="b")
    assert (row.overlap, row.max_runs) == ("skip", 5)
    assert imported(b) == {"b": "none"}


def test_a_field_that_is_left_out_has_its_default() -> None:
    make_both()
    assert imported(entry("b")) == {"b": "change"}
    row = Schedule.objects.get(name="b")
    assert (row.overlap, row.pause_after_failures, row.is_enabled) == ("skip", None, True)


def test_a_dry_run_tells_all_and_writes_nothing() -> None:
    make_both()
    before = list(Schedule.objects.order_by("name").values())
    audited = Audit.objects.count()
    assert imported(entry("b"), entry("c"), dry_run=True) == {"b": "change", "c": "create"}
    assert list(Schedule.objects.order_by("name").values()) == before
    assert (Audit.objects.count(), Task.objects.count()) == (audited, 0)


WRONG: list[tuple[Any, str]] = [
    (entry(overlapp="skip"), "Did you mean 'overlap'"),
    (entry(rule={"kind": "every"}), "needs interval"),
    (entry(rule={"kind": "once", "at": "2001-01-01T00:00:00Z"}), "no future time"),
    (entry(task="tests.sample.tasks.nop"), "Did you mean"),
    (entry(args=[1, 2, 3]), "cannot be called"),
    (entry(args="abc"), "args must be a list"),
    (entry(options={"queue": "x"}), "queue_name"),
    (entry(options=[]), "options must be an object"),
    (entry(missed="never"), "missed must be one of"),
    (entry(jitter=-1), "jitter"),
    (entry(enabled="yes"), "enabled must be True or False"),
    (entry(args=None, kwargs=None), "hidden from whoever exported"),
    (entry(""), "name"),
    ({"task": noop.name, "rule": HOUR}, "name is missing"),
    ("s", "no JSON object"),
]


@pytest.mark.parametrize(("wrong", "told"), WRONG)
def test_a_mistake_is_reported_and_nothing_is_written(wrong: Any, told: str) -> None:
    with pytest.raises(InvalidSchedule) as error:
        schedules.import_document({"schedules": [entry("right"), wrong]})
    assert told in str(error.value)
    assert not Schedule.objects.exists()


def test_all_errors_are_reported_together_by_name() -> None:
    with pytest.raises(InvalidSchedule) as error:
        imported(entry("x", missed="never"), entry("y", jitter=-1), entry("z"))
    assert [line.split(":")[0] for line in str(error.value).splitlines()] == ["x", "y"]


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ([], "JSON object"),
        ({"version": 2, "schedules": []}, "version must be 1"),
        ({"schedules": {}}, "must be a list"),
        ({"schedule": []}, "Did you mean 'schedules'"),
        ({"schedules": [entry(), entry()]}, "two schedules of this name"),
    ],
)
def test_an_invalid_document_is_refused(document: Any, told: str) -> None:
    with pytest.raises(InvalidSchedule, match=told):
        schedules.import_document(document)


def test_a_schedule_that_is_declared_in_code_is_neither_exported_nor_changed() -> None:
    make_both()
    Schedule.objects.filter(name="a").update(source="code")
    assert [each["name"] for each in schedules.export_document()["schedules"]] == ["b"]
    with pytest.raises(InvalidSchedule, match="declared in code"):
        imported(entry("a"))
    with pytest.raises(InvalidSchedule, match="No schedule 'a' was created at run time"):
        schedules.export_document(["a"])


def test_arguments_that_were_hidden_or_redacted_stay_as_they_are() -> None:
    schedules.create("s", log_in, HOURLY, kwargs={"user": "ada", "password": "secret"})
    document = schedules.export_document(arguments_of=lambda row: None)
    (hidden,) = document["schedules"]
    assert (hidden["args"], hidden["kwargs"]) == (None, None)
    assert imported(hidden) == {"s": "none"}
    redacted = {**hidden, "args": [], "kwargs": {"user": "bob", "password": REDACTED}}
    with pytest.raises(InvalidSchedule, match="kept only while no argument changes"):
        imported(redacted)
    redacted["kwargs"]["user"], redacted["overlap"] = "ada", "allow"
    (done,) = schedules.import_document({"schedules": [redacted]})
    assert "secret" not in str(done.changes)
    assert Schedule.objects.get().kwargs == {"user": "ada", "password": "secret"}
    Schedule.objects.all().delete()
    with pytest.raises(InvalidSchedule):
        imported(redacted)


def test_arguments_of_an_unknown_task_are_not_shown() -> None:
    schedules.create("s", add, HOURLY, args=[1], kwargs={"b": 2})
    Schedule.objects.update(task_name="gone.send", args=["hidden words"])
    (done,) = schedules.import_document({"schedules": [entry()]}, dry_run=True)
    assert done.changes["task"] == ["gone.send", noop.name]
    assert done.changes["args"] == [None, []]
    assert "hidden words" not in str(done)
