"""The mail about incidents, as its readers get it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.test import override_settings
from django.utils import timezone

from taskqueue import alerts
from taskqueue.alerts.mail import send
from taskqueue.exceptions import InvalidAlertRule, TransitionRefused
from taskqueue.models import AlertRule, Incident, Task
from taskqueue.testing import run_due
from tests.alerts.steps import look_now, make_rule, pass_time
from tests.monitoring.rows import make_task, make_worker

pytestmark = pytest.mark.django_db


def sent() -> list[Any]:
    """Run the tasks that send; the mails."""
    mail.outbox.clear()
    run_due()
    return list(mail.outbox)


def test_a_mail_names_the_problem_its_start_and_the_remedy() -> None:
    make_worker("w1", trouble="no space left on device")
    make_rule("disks", mail=["ann@example.org", "bob@example.org"])
    look_now()
    (message,) = sent()
    assert message.to == ["ann@example.org", "bob@example.org"]
    assert message.subject == (
        "[taskqueue] Firing: The worker w1 is in trouble: no space left on device"
    )
    (incident,) = Incident.objects.all()
    assert "Alert rule: disks" in message.body
    assert "Firing: The worker w1 is in trouble: no space left on device" in message.body
    assert f"manage.py taskqueue alerts ack {incident.pk}" in message.body
    ((html, kind),) = message.alternatives
    assert kind == "text/html"
    assert "<p>The worker w1 is in trouble: no space left on device</p>" in html


def test_text_of_users_breaks_no_header_and_no_page() -> None:
    make_worker("w1", trouble="<script>\r\nBcc: eve@example.org")
    make_rule("a <b> & c")
    look_now()
    (message,) = sent()
    assert "\n" not in message.subject
    assert "Bcc" in message.subject
    assert message.bcc == []
    assert message.message()["Bcc"] is None
    html = message.alternatives[0][0]
    assert "<script>" not in html
    assert "a &lt;b&gt; &amp; c" in html
    assert "Alert rule: a <b> & c" in message.body


def test_a_mail_leads_to_the_admin_where_the_address_of_the_site_is_known(settings: Any) -> None:
    make_worker("w1", trouble="no disk")
    make_rule()
    look_now()
    rule, incident = AlertRule.objects.get(), Incident.objects.get()
    send(rule, [[incident.pk, "raised"]], message_id="1")
    settings.TASKQUEUE = {**settings.TASKQUEUE, "SITE_URL": "https://shop.example.org"}
    send(rule, [[incident.pk, "raised"]], message_id="2")
    before, after = mail.outbox
    path = f"/admin/taskqueue/incident/{incident.pk}/change/"
    assert path not in before.body
    assert f"\nhttps://shop.example.org{path}\n" in after.body
    assert f'href="https://shop.example.org{path}"' in after.alternatives[0][0]


def test_a_digest_tells_of_all_that_was_gathered() -> None:
    for name in ("w1", "w2", "w3"):
        make_worker(name, trouble=f"trouble of {name}")
    make_rule("fleet")
    look_now()
    (message,) = sent()
    assert message.subject == "[taskqueue] 3 changes of fleet"
    for name in ("w1", "w2", "w3"):
        assert f"trouble of {name}" in message.body


def test_the_end_is_reported_with_its_time() -> None:
    make_worker("w1", trouble="no disk")
    make_rule()
    look_now()
    sent()
    make_worker("w2")
    from taskqueue.models import Worker

    Worker.objects.filter(name="w1").update(trouble="")
    pass_time(300)
    look_now()
    look_now()
    (message,) = sent()
    assert message.subject.startswith("[taskqueue] Cleared: ")
    assert "Over since" in message.body
    assert "alerts ack" not in message.body


def test_a_mail_that_is_sent_again_has_the_same_id() -> None:
    make_worker("w1", trouble="no disk")
    rule = make_rule()
    look_now()
    incident = Incident.objects.get()
    for _ in range(2):
        send(rule, [[incident.pk, "raised"]], message_id="0198")
    first, second = (message.message()["Message-ID"] for message in mail.outbox)
    assert first == second
    assert first.startswith("<taskqueue.0198@")


@override_settings(LANGUAGE_CODE="zh-hans")
def test_a_mail_is_in_the_language_of_the_project() -> None:
    make_worker("w1", trouble="no disk")
    make_rule()
    look_now()
    (message,) = sent()
    assert "告警规则\uff1arule" in message.body
    assert message.subject == "[taskqueue] 触发中: 工作进程 w1 遇到问题\uff1ano disk"
    assert "工作进程 w1 遇到问题\uff1ano disk" in message.alternatives[0][0]
    assert Incident.objects.get().summary == "The worker w1 is in trouble: no disk"
    assert "Fix what it says" not in message.body + message.alternatives[0][0]


@override_settings(LANGUAGE_CODE="zh-hans")
def test_numbers_and_times_of_a_condition_are_in_its_translation() -> None:
    make_worker()
    for _ in range(2):
        make_task("failed", name="shop.{tasks}.send", finished_at=timezone.now())
    make_rule(kind="failure", window=600)
    look_now()
    (message,) = sent()
    assert "最近 10 分钟 内\uff0c名为 shop.{tasks}.send 的失败任务\uff1a2。" in message.body


def test_a_condition_without_stored_words_is_shown_as_it_was_found() -> None:
    make_worker("w1", trouble="no disk")
    make_rule()
    look_now()
    Incident.objects.update(words={})
    (message,) = sent()
    assert "The worker w1 is in trouble: no disk" in message.subject


def test_projects_override_the_templates(tmp_path: Any, settings: Any) -> None:
    folder = tmp_path / "taskqueue" / "alerts"
    folder.mkdir(parents=True)
    (folder / "subject.txt").write_text("ACME {{ rule.name }} {{ lines.0.what }}")
    first, *others = settings.TEMPLATES
    settings.TEMPLATES = [{**first, "DIRS": [str(tmp_path), *first.get("DIRS", [])]}, *others]
    make_worker("w1", trouble="no disk")
    make_rule()
    look_now()
    (message,) = sent()
    assert message.subject == "ACME rule raised"


def test_a_test_goes_to_each_channel_and_says_so() -> None:
    make_rule("disks")
    alerts.test("disks", by="ann")
    (message,) = sent()
    assert message.subject == "[taskqueue] Test of disks"
    assert "This is a test" in message.body
    make_rule("silent", mail=[])
    with pytest.raises(TransitionRefused, match="has no channel"):
        alerts.test("silent")


def test_a_mail_of_a_rule_that_is_deleted_meanwhile_is_not_sent() -> None:
    make_worker("w1", trouble="no disk")
    make_rule()
    look_now()
    alerts.delete("rule")
    assert sent() == []
    assert Task.objects.get().status == "cancelled"


def test_no_arguments_or_results_are_mailed() -> None:
    canary = "canary-7f3a"
    make_worker()
    make_task(
        "failed", args=[canary], kwargs={canary: canary}, return_value=canary,
        error_message=canary, metadata={canary: canary}, finished_at=timezone.now(),
    )  # fmt: skip
    make_rule(kind="failure")
    look_now()
    (message,) = sent()
    assert canary not in message.message().as_string()


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"kind": "late"}, "There is no kind 'late'"),
        ({"kind": "doctor", "threshold": 3}, "has no threshold"),
        ({"kind": "failure_rate", "threshold": 2}, "from 0 to 1"),
        ({"kind": "failure", "threshold": 0}, "from 1 to"),
        ({"kind": "doctor", "scope": "queue", "pattern": "a"}, "one of the scopes all"),
        ({"kind": "queue_depth", "scope": "queue"}, "A pattern needs a scope"),
        ({"kind": "queue_depth", "pattern": "a"}, "A pattern needs a scope"),
        ({"kind": "doctor", "mail": ["ops"]}, "must be addresses"),
        ({"kind": "doctor", "mail": [f"a{n}@b.org" for n in range(21)]}, "at most 20"),
        ({"kind": "doctor", "endpoints": ["pager"]}, "ids of at most 20"),
        ({"kind": "doctor", "window": 5}, "60 to 86,400 seconds"),
        ({"kind": "doctor", "repeat": 5}, "300 to"),
        ({"kind": "doctor", "repeat": timedelta(0)}, "or a timedelta, not 0"),
        ({"kind": "doctor", "wait": True}, "0 to 86,400"),
        ({"kind": "doctor", "url": "https://a.example"}, "Only a heartbeat"),
        ({"kind": "heartbeat"}, "needs a url"),
        ({"kind": "heartbeat", "url": "ftp://a.example"}, "needs a url"),
        ({"kind": "heartbeat", "url": "https://10.0.0.1/"}, "cannot be called: .*not public"),
        ({"kind": "heartbeat", "url": "http://a.example/"}, "cannot be called: .*https"),
        ({"kind": "doctor", "color": "red"}, "has no field 'color'"),
    ],
)
def test_a_rule_that_cannot_work_is_refused(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidAlertRule, match=why):
        alerts.create("rule", **fields)
    assert not Incident.objects.exists()
