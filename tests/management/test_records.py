"""`audit` and `failures`: what people did, and which errors tasks ended with."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from taskqueue import control
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.models import Audit
from tests.engine.steps import claim_one, end
from tests.management.test_taskqueue import exit_code, run, run_json
from tests.monitoring.rows import make_task
from tests.sample.tasks import noop

pytestmark = pytest.mark.django_db


def test_the_audit_tells_who_did_what_the_newest_first() -> None:
    control.pause("mail", by="ada", reason="flood")
    control.resume("mail", by="bob")
    resumed, paused = run_json("audit")
    assert [paused[key] for key in ("actor", "verb", "noun", "subject", "reason")] == [
        "ada", "pause", "queue", "mail", "flood",
    ]  # fmt: skip
    assert resumed["actor"] == "bob"
    heading, first, second = run("audit").splitlines()
    assert heading.split()[:3] == ["at", "actor", "verb"]
    assert "bob" in first
    assert "flood" in second


def test_the_audit_is_narrowed() -> None:
    control.pause("mail", by="ada")
    control.pause("web", by="bob")
    Audit.objects.filter(subject="mail").update(at=timezone.now() - timedelta(hours=3))
    for flags, subjects in (
        (("--subject", "mail"), ["mail"]),
        (("--by", "bob"), ["web"]),
        (("--verb", "resume"), []),
        (("--since", "1h"), ["web"]),
        (("--verb", "pause", "--limit", "1"), ["web"]),
    ):
        assert [entry["subject"] for entry in run_json("audit", *flags)] == subjects
    assert exit_code(["audit", "--subject", ""]) == 2


def test_failures_are_grouped_by_error_and_name_the_largest_first() -> None:
    for name in ("mail.send", "mail.send", "shop.buy"):
        make_task("failed", name=name, error_class="builtins.KeyError", finished_at=timezone.now())
    noop.using(max_attempts=2).enqueue()
    end(claim_one(), OutcomeKind.FAILED, error_class="builtins.OSError")
    found = run_json("failures")
    assert [(group["count"], group["name"]) for group in found["groups"]] == [
        (2, "mail.send"), (1, "shop.buy"),
    ]  # fmt: skip
    assert found["looked_at"] == 3
    [waiting] = found["retrying"]
    assert (waiting["name"], waiting["example_error"]) == (noop.name, "builtins.OSError")
    # The text has a query, which other subcommands take.
    text = run("failures")
    assert "status:failed class:builtins.KeyError name:mail.send" in text
    assert "To be tried again:" in text
    query = found["groups"][0]["q"]
    assert len(run_json("list", "--query", query)) == 2


def test_failures_since_a_time_of_day_are_those_since_it_was_last_reached() -> None:
    now = timezone.now()
    for hours in (2, 4, 20):
        ended = now - timedelta(hours=hours)
        make_task("failed", name=f"{hours} hours ago", error_class="E", finished_at=ended)
    for away, names in (
        (timedelta(hours=-3), {"2 hours ago"}),
        (timedelta(hours=1), {"2 hours ago", "4 hours ago", "20 hours ago"}),
    ):
        since = timezone.localtime(now + away).strftime("%H:%M")
        groups = run_json("failures", "--since", since)["groups"]
        assert {group["name"] for group in groups} == names


def test_a_time_of_day_that_does_not_exist_is_refused_by_its_value(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert exit_code(["failures", "--since", "25:00"]) == 2
    assert "'25:00' is not a time of day: write one from 00:00 to 23:59." in capsys.readouterr().err


def test_no_failures_are_an_empty_table() -> None:
    heading = "count error_class name in_workflows last_seen first_seen example_id q"
    assert " ".join(run("failures").split()) == heading
