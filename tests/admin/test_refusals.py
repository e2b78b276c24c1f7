"""Refusals are shown in the reader's language; logs and REST stay English."""

from __future__ import annotations

import inspect
import re
from datetime import timedelta
from typing import Any

import pytest
from django.utils.translation import override

from taskqueue import alerts, control, schedules, webhooks
from taskqueue.admin.refusals import refused
from taskqueue.admin.tasks.declared import OWN_DOCS, documented
from taskqueue.builtin import TASKS
from taskqueue.declarations.definition import registry
from taskqueue.declarations.options import OPTIONS
from taskqueue.display import labelled
from taskqueue.exceptions import TaskQueueError
from taskqueue.models import Audit, Examination, Incident, Operation, Worker
from taskqueue.rules import Cron, from_json
from taskqueue.worker.bodies.examining import run
from tests.admin.conftest import LogIn
from tests.admin.schedule_rows import messages_of
from tests.admin.test_admin import read, url
from tests.alerts.steps import look_now, make_rule
from tests.catalogue import PACKAGE
from tests.monitoring.rows import HOUR, ago, make_running, make_task, make_worker
from tests.sample.tasks import noop

pytestmark = pytest.mark.django_db
CHINESE = re.compile(r"[\u4e00-\u9fff]")
ENGLISH = re.compile(r"\b(is|has|must|not|be|the|such|of|cannot|There)\b")


def is_chinese(text: str) -> bool:
    """Whether it has Chinese words, and none of the small English ones."""
    return bool(CHINESE.search(text)) and not ENGLISH.search(text)


@pytest.fixture
def in_chinese(settings: Any) -> None:
    settings.LANGUAGE_CODE = "zh-hans"


def ended_operation() -> tuple[str, dict[str, str]]:
    row = Operation.objects.create(verb="retry", status="finished")
    return url("operation", "cancel", row.pk), {}


def busy_queue() -> tuple[str, dict[str, str]]:
    noop.enqueue()
    return url("queue", "act", "default"), {"verb": "delete", "confirmed": "1"}


def paused_queue() -> tuple[str, dict[str, str]]:
    return url("queue", "act", "default"), {"verb": "resume"}


def lively_worker() -> tuple[str, dict[str, str]]:
    make_worker("w1")
    return url("worker", "act", Worker.objects.get().pk), {"verb": "resume"}


def acknowledged_alert() -> tuple[str, dict[str, str]]:
    make_worker("w1", trouble="no disk")
    make_rule("disks")
    look_now()
    incident = Incident.objects.get()
    alerts.acknowledge(incident.pk, by="ann")
    return url("incident", "act", incident.pk), {}


def rule_without_a_channel() -> tuple[str, dict[str, str]]:
    rule = make_rule("disks", mail=[])
    return url("alertrule", "act", rule.pk), {"verb": "test"}


def enabled_endpoint() -> tuple[str, dict[str, str]]:
    made = webhooks.create("https://a.example/hook")
    return url("endpoint", "act", made.endpoint), {"verb": "enable"}


@pytest.mark.usefixtures("in_chinese")
@pytest.mark.parametrize(
    "asked",
    [ended_operation, busy_queue, paused_queue, lively_worker, acknowledged_alert,
     rule_without_a_channel, enabled_endpoint],
)  # fmt: skip
def test_a_refused_button_tells_why_in_the_language_of_the_reader(
    asked: Any, log_in_as: LogIn
) -> None:
    address, body = asked()
    (told,) = messages_of(log_in_as("superuser"), address, body).splitlines()
    assert is_chinese(told), told


WRONG_OPTIONS = {
    "priority": "hihg", "queue_name": "a b", "timeout": "soon", "max_attempts": "0",
    "backoff": "now", "retry_for": "Nothing", "expires_after": "x", "requires": "GPU!",
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_OPTIONS)
def test_the_error_of_a_wrong_option_is_translated(name: str) -> None:
    option = OPTIONS[name]
    with pytest.raises(TaskQueueError) as caught:
        option.check(option.kind.parse(name, WRONG_OPTIONS[name]))
    with override("zh-hans"):
        told = refused(caught.value)
    assert is_chinese(told), told
    assert not CHINESE.search(str(caught.value))


RULES: list[dict[str, Any]] = [
    {"kind": "cron", "expression": "*/90 * * * *", "tz": "UTC"},
    {"kind": "cron", "expression": "0 0 6 * * mon-fri *", "tz": "UTC"},
    {"kind": "cron", "expression": "0 6 * * *", "tz": "Berlin"},
    {"kind": "cron", "expression": "0 6 * * *", "tz": "+01:00"},
    {"kind": "every", "interval": 0.001},
    {"kind": "evry", "interval": 5},
    {"kind": "once"},
    {"kind": "daily_window", "first": "25:00", "last": "26:00", "every": 60, "tz": "UTC"},
    {"kind": "every", "interval": 5, "start": "2026-02-01T00:00+00:00",
     "end": "2026-01-01T00:00+00:00"},
]  # fmt: skip


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_the_error_of_a_wrong_rule_is_translated(rule: dict[str, Any]) -> None:
    with pytest.raises(TaskQueueError) as caught:
        from_json(rule).check()
    with override("zh-hans"):
        told = refused(caught.value)
    assert is_chinese(told), told


def test_texts_within_a_refusal_are_translated_too() -> None:
    schedules.create("daily", noop, Cron("0 6 * * *"))
    with pytest.raises(TaskQueueError) as caught:
        schedules.pause("dialy")
    with override("zh-hans"):
        assert refused(caught.value) == "没有定时计划 'dialy'。您是不是要找 'daily'\uff1f"
    assert str(caught.value) == "There is no schedule 'dialy'. Did you mean 'daily'?"


def test_a_status_within_a_refusal_is_translated_too() -> None:
    task = noop.enqueue()
    task.cancel()
    with pytest.raises(TaskQueueError) as caught:
        control.run_now(task.id)
    with override("zh-hans"):
        assert refused(caught.value).startswith(f"任务 {task.id} 的状态为已取消。")
    assert f"Task {task.id} is cancelled. Only" in str(caught.value)


def test_the_conjunction_in_a_refusal_is_translated_too() -> None:
    task = make_running("w1").task
    changes = {"deadline": timedelta(hours=1), "metadata": {"a": 1}}
    with pytest.raises(TaskQueueError) as caught:
        control.update(task.id, changes)
    assert "Its deadline and metadata can only be changed" in str(caught.value)
    with override("zh-hans"):
        assert "其 deadline 和 metadata 只能在等待时更改。" in refused(caught.value)


def test_an_unknown_error_is_shown_unchanged() -> None:
    with override("zh-hans"):
        assert refused(ValueError("what the project raised")) == "what the project raised"


def test_the_docstrings_of_built_in_tasks_are_translated() -> None:
    own = [each for each in registry.all() if each.name.startswith("taskqueue.")]
    texts = {inspect.cleandoc(body.__doc__ or "") for body, _options in TASKS.values()}
    assert texts | {documented(each) for each in own} == set(OWN_DOCS)
    with override("zh-hans"):
        assert all(is_chinese(documented(each)) for each in own)


@pytest.mark.usefixtures("in_chinese")
def test_the_details_of_audit_entries_are_translated(
    log_in_as: LogIn,
) -> None:
    task = noop.enqueue()
    new = control.duplicate(task.id, by="ann")
    client = log_in_as("superuser")
    assert f"新任务 {new}" in read(client, url("task", "change", task.id))
    entry = Audit.objects.get(subject=str(task.id))
    assert entry.detail == f"as {new}"
    assert f"新任务 {new}" in read(client, url("audit", "change", entry.pk))


@pytest.mark.usefixtures("in_chinese")
def test_the_dashboard_tells_what_the_doctor_found_in_the_language_of_the_reader(
    log_in_as: LogIn,
) -> None:
    make_worker()
    make_task("scheduled", run_after=ago(HOUR))
    run("w1", host="web-1")
    (kept,) = (each for each in Examination.objects.get().findings if each["check"] == "duties")
    assert kept["seen"].startswith("A task has been due for")
    page = read(log_in_as("superuser"), url("dashboard", "changelist"))
    assert "A task has been due" not in page
    assert re.search("诊断发现\uff1a有任务已到期", page)


def test_a_colon_between_two_texts_is_that_of_the_language() -> None:
    with override("zh-hans"):
        assert labelled("已创建", "daily") == "已创建\uff1adaily"
    assert labelled("Created", "daily") == "Created: daily"


COLON = re.compile(r"(?:%\}|\}\}): ?(?:<q>|\{\{|\{%)")
NAMED = {"task/error.html"}
"""What joins an error class and its message, as Python does."""


def test_no_template_joins_texts_by_a_colon_of_its_own() -> None:
    folder = PACKAGE / "templates" / "admin" / "taskqueue"
    found = [
        str(path.relative_to(folder))
        for path in sorted(folder.rglob("*.html"))
        if COLON.search(path.read_text(encoding="utf-8"))
    ]
    assert set(found) - NAMED == set()
