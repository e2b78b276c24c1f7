"""`list` with a query, `why`, `stats`, `queues`, `workers`: their output."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import override_settings
from django.utils.translation import override

from taskqueue import control
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.management.cli.stats import pace
from taskqueue.models import Task
from tests.engine.steps import claim_one, end
from tests.management.test_taskqueue import exit_code, refused, run, run_json
from tests.monitoring.rows import HOUR, MINUTE, ago, make_rollup, make_task, make_worker
from tests.sample.tasks import add, noop

pytestmark = pytest.mark.django_db


def ids(*arguments: object) -> list[str]:
    """Of what is listed."""
    return [line["id"] for line in run_json("list", *arguments)]


# list


def test_tasks_are_searched_as_in_the_admin() -> None:
    mail = make_task("failed", name="mail.send", error_class="builtins.KeyError")
    make_task("failed", name="shop.send")
    make_task(name="mail.send")
    assert ids("status:failed name:mail.*") == [str(mail.pk)]
    assert ids("status:failed", "name:mail.*") == [str(mail.pk)]
    assert ids("error:KeyError", "--status", "failed") == [str(mail.pk)]
    assert ids("--query", "name:mail.*", "--error", "KeyError") == [str(mail.pk)]


@pytest.mark.parametrize(
    "arguments",
    [
        ["status:runing"],
        ["colour:red"],
        ["status:failed", "--status", "ready"],
        ["status:failed", "--query", "name:x"],
        ["--cursor", "nonsense"],
    ],
)
def test_a_search_that_is_none_exits_with_2(arguments: list[str]) -> None:
    assert exit_code(["list", *arguments]) == 2


def test_errors_of_searches_are_in_english_in_every_language() -> None:
    with override_settings(LANGUAGE_CODE="zh-hans"), override("zh-hans", deactivate=True):
        assert refused("list", "status:runing") == (
            2, "There is no status “runing”. Did you mean “running”?",
        )  # fmt: skip


def test_a_query_chooses_for_the_verbs_too() -> None:
    make_task(name="mail.send")
    make_task(name="shop.send")
    run("cancel", "--query", "name:mail.*", "--yes")
    assert Task.objects.get(status="cancelled").name == "mail.send"
    assert exit_code(["cancel", "--query", " ", "--yes"]) == 2


def test_a_list_goes_on_where_it_ended(capsys: pytest.CaptureFixture[str]) -> None:
    made = [str(noop.enqueue().id) for _ in range(5)][::-1]
    first = run_json("list", "--limit", "2", "--cursor", "")
    assert [task["id"] for task in first["tasks"]] == made[:2]
    second = run_json("list", "--limit", "2", "--cursor", first["next"])
    assert [task["id"] for task in second["tasks"]] == made[2:4]
    last = run_json("list", "--limit", "2", "--cursor", second["next"])
    assert ([task["id"] for task in last["tasks"]], last["next"]) == (made[4:], None)
    capsys.readouterr()
    run("list", "--limit", "2")
    assert f"More tasks match: --cursor {first['next']}\n" == capsys.readouterr().err
    run("list", "--limit", "5")
    assert capsys.readouterr().err == ""


def test_a_search_that_finds_little_goes_on_until_it_has_a_page() -> None:
    wanted = make_task(name="needle")
    make_task(name="hay")
    Task.objects.bulk_create(
        Task(name="hay", status="ready", crash_delay=MINUTE, run_after=ago(HOUR))
        for _ in range(1200)
    )
    assert ids("name:needle") == [str(wanted.pk)]


# why


def test_why_says_each_reason_in_a_line() -> None:
    result = noop.using(queue_name="mail").enqueue()
    control.pause("mail", by="anna", reason="no relay\x1b[2J")
    heading, *lines = run("why", result.id).splitlines()
    assert heading == f"{result.id}  {noop.name}  ready  queue mail"
    assert lines == [
        "  The queue mail is paused, by anna: no relay\N{REPLACEMENT CHARACTER}[2J",
        "  No running worker serves the queue mail.",
    ]
    told = run_json("why", result.id)
    assert (told["status"], told["queue_name"]) == ("ready", "mail")
    assert [reason["code"] for reason in told["reasons"]] == ["queue_paused", "unserved"]
    assert told["reasons"][1]["message"] == "No running worker serves the queue mail."


def test_why_of_no_task_exits_with_1() -> None:
    assert refused("why", "nonsense") == (1, "'nonsense' is not the id of a task: write a UUID.")


# stats, queues, workers


def test_stats_count_tasks_and_what_attempts_came_to() -> None:
    noop.enqueue()
    make_task("failed")
    make_rollup(ago(MINUTE), succeeded=50, failed=10, run=[0.2] * 60, wait=[2.0] * 60)
    told = run_json("stats")
    assert (told["tasks"]["ready"], told["tasks"]["failed"], told["more_than_that"]) == (1, 1, [])
    attempts = told["attempts"]
    assert (attempts["succeeded"], attempts["failed"], attempts["per_minute"]) == (50, 10, 1.0)
    assert attempts["run_p95"] == pytest.approx(0.2, rel=0.2)
    assert attempts["wait_p50"] == pytest.approx(2.0, rel=0.2)
    [name] = told["names"]
    assert (name["name"], name["count"], name["failed"]) == ("shop.tasks.send", 60, 10)
    text = run("stats")
    assert "50 succeeded, 10 failed, 0 lost, 0 stopped; 1 a minute" in text
    assert "shop.tasks.send" in text


@pytest.mark.parametrize(
    ("per_minute", "text"),
    [
        (0, "0 a minute"), (9.26e-05, "0.13 a day"), (0.0007, "1 a day"), (0.02, "1.2 an hour"),
        (1, "1 a minute"), (9.96, "10 a minute"), (123_456.7, "123,457 a minute"),
    ],
)  # fmt: skip
def test_a_pace_is_written_without_an_exponent(per_minute: float, text: str) -> None:
    assert pace(per_minute) == text


def test_stats_tell_no_slowest_where_no_body_ended() -> None:
    make_rollup(ago(MINUTE), lost=2, run=[], wait=[2.0])
    assert "0 ms" not in run("stats")


def test_stats_are_told_of_one_queue_and_by_steps() -> None:
    make_rollup(ago(MINUTE), succeeded=5, queue_name="mail", run=[0.2], wait=[0.2])
    make_rollup(ago(MINUTE), succeeded=7, queue_name="shop", run=[0.2], wait=[0.2])
    told = run_json("stats", "--queue", "mail", "--steps", "--span", "day")
    assert (told["attempts"]["succeeded"], told["names"], told["span"]) == (5, [], "day")
    assert (len(told["steps"]), sum(step["succeeded"] for step in told["steps"])) == (96, 5)
    assert len(run("stats", "--steps").splitlines()) > 60
    text = run("stats", "--queue", "mail", "--name", "shop.tasks.send")
    assert text.startswith("All tasks, of all queues and names:\n")
    assert "\nAttempts of the last hour on the queue mail of shop.tasks.send: 5 succeeded" in text


def test_queues_tell_what_waits_and_who_serves() -> None:
    make_worker(queues={"mail": 1}, concurrency=3)
    make_task(queue_name="mail", run_after=ago(HOUR))
    make_task(queue_name="shop")
    mail, shop = run_json("queues")
    assert (mail["name"], mail["waiting"], mail["slots"], mail["is_served"]) == ("mail", 1, 3, True)
    assert 3500 < mail["oldest_seconds"] < 3700
    assert (shop["name"], shop["is_served"]) == ("shop", False)
    header, line, _ = run("queues").splitlines()
    assert header.split()[:3] == ["name", "waiting", "oldest"]
    assert "60 min" in line


def test_workers_tell_their_memory_version_and_trouble() -> None:
    make_worker(memory_bytes=50 * 1024 * 1024, trouble="no module named shop")
    [line] = run_json("workers")
    assert (line["memory_bytes"], line["version"]) == (50 * 1024 * 1024, "1.2")
    assert "50 MB" in run("workers")
    assert "no module named shop" in run("workers")


def test_workers_are_chosen_by_host_and_queue() -> None:
    make_worker("w1", host="paris")
    make_worker("w2", host="rome", queues={"mail": 1})
    make_worker("w3", host="rome", queues={"shop": 1})
    assert [line["name"] for line in run_json("workers", "--queue", "mail")] == ["w1", "w2"]
    assert [line["name"] for line in run_json("workers", "--host", "rome")] == ["w2", "w3"]


# Ends


def test_a_task_that_ended_says_how() -> None:
    result = add.enqueue(1)
    end(claim_one(), OutcomeKind.FAILED, error_class="builtins.KeyError", error_message="'x'\nline")
    text: Any = run("why", result.id)
    assert "with builtins.KeyError: 'x' line" in text


def test_a_list_is_sorted_by_a_key() -> None:
    found = [noop.using(priority=priority).enqueue().id for priority in (3, 9, 5)]
    third, first, second = map(str, found)
    assert ids("--sort=-priority") == [first, second, third]
    assert ids("--sort", "priority", "--limit", "1") == [third]
    assert exit_code(["list", "--sort", "args"]) == 2
