"""Schedules over REST."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from taskqueue import Every, schedules
from taskqueue.models import Audit, Occurrence, Schedule, Task
from tests.api.conftest import ApiClient
from tests.sample.rest_tasks import sign_in
from tests.sample.tasks import add, greet, log_in

pytestmark = pytest.mark.django_db
MINUTELY = {"kind": "every", "interval": 60}
RARELY = {"kind": "every", "interval": 365 * 86_400}
"""Not due while a test runs, so that no run is open but those that the test asks for."""
RULES: dict[str, Any] = {
    "cron": {"kind": "cron", "expression": "0 6 * * mon-fri", "tz": "Europe/Berlin"},
    "every": MINUTELY,
    "after_end": {"kind": "after_end", "interval": 1.5, "end": "2999-01-01T00:00:00+00:00"},
    "daily_window": {
        "kind": "daily_window", "first": "09:00", "last": "17:30", "every": 1800, "days": "mon-fri",
    },
    "once": {"kind": "once", "at": "2999-01-01T00:00:00Z"},
}  # fmt: skip


def created(root: ApiClient, **more: Any) -> Any:
    """The answer to what makes a schedule."""
    body = {"name": "reports", "task": greet.name, "rule": RARELY, "args": ["Ann"], **more}
    return root.act("schedules/", body)


@pytest.mark.parametrize("kind", RULES)
def test_a_schedule_of_each_kind_is_created_shown_and_deleted(kind: str, root: ApiClient) -> None:
    answer = created(root, rule=RULES[kind], reason="asked for")
    assert (answer.status_code, answer["Location"]) == (201, "/api/v1/schedules/reports/")
    told = answer.json()
    assert told["rule"]["kind"] == kind
    assert told["rule_text"]
    assert (told["args"], told["conditions"], told["last_runs"]) == (["Ann"], [], [])
    assert len(told["next_times"]) == (5 if kind not in ("once", "after_end") else 1)
    assert root.look("schedules/reports/").json()["rule"] == told["rule"]
    assert root.ask("DELETE", "schedules/reports/?reason=enough").status_code == 204
    assert not Schedule.objects.exists()
    assert list(Audit.objects.order_by("id").values_list("verb", "reason")) == [
        ("create", "asked for"), ("delete", "enough"),
    ]  # fmt: skip


def test_a_paused_schedule_has_no_next_time(root: ApiClient) -> None:
    created(root)
    paused = root.act("schedules/reports/pause/", {}).json()
    assert (paused["next_at"], paused["next_times"]) == (None, [])
    resumed = root.act("schedules/reports/resume/", {}).json()
    assert resumed["next_at"] in resumed["next_times"]


def test_the_rule_that_is_shown_makes_the_same_schedule_again(root: ApiClient) -> None:
    for number, rule in enumerate(RULES.values()):
        shown = created(root, name=f"first {number}", rule=rule).json()["rule"]
        again = created(root, name=f"second {number}", rule=shown).json()["rule"]
        assert again == shown


WRONG: list[tuple[dict[str, Any], int, str]] = [
    ({"rule": {"kind": "crom"}}, 422, "/rule"),
    ({"rule": {"kind": "every", "interval": 0.01}}, 422, "/rule"),
    ({"rule": {"kind": "cron", "expression": "0 0 30 2 *"}}, 422, "/rule"),
    ({"rule": "reports"}, 422, "/rule"),
    ({"rule": {"kind": "once", "at": "2001-01-01T00:00:00Z"}}, 422, "no future time"),
    ({"task": "tests.sample.tasks.greed"}, 422, "Did you mean 'tests.sample.tasks.greet'"),
    ({"task": add.name, "args": [1]}, 403, "api=True"),
    ({"args": [1, 2, 3, 4, 5]}, 422, "cannot be called"),
    ({"options": {"queue": "x"}}, 422, "Did you mean 'queue_name'"),
    ({"options": {"run_after": 5}}, 422, "run_after"),
    ({"missed": "window"}, 422, "missed_window"),
    ({"name": "a/b"}, 422, "name"),
    ({"name": "a\x00"}, 422, "NUL"),
    ({"nmae": "x"}, 422, "Did you mean 'name'"),
    ({"enabled": "yes"}, 422, "/enabled"),
    ({"task": sign_in.name, "args": ["ann", "[redacted]"]}, 422, "again"),
]


@pytest.mark.parametrize(("wrong", "status", "words"), WRONG)
def test_an_invalid_schedule_is_refused_and_writes_nothing(
    wrong: dict[str, Any], status: int, words: str, root: ApiClient
) -> None:
    answer = created(root, **wrong)
    assert answer.status_code == status, answer.content
    assert words in answer.content.decode()
    assert not Schedule.objects.exists()
    assert not Audit.objects.exists()


def test_a_name_that_is_taken_is_a_conflict(root: ApiClient) -> None:
    assert created(root).status_code == 201
    answer = created(root)
    assert (answer.status_code, answer.json()["code"]) == (409, "schedule_exists")


def test_a_secret_of_a_schedule_is_not_sent_elsewhere(root: ApiClient) -> None:
    created(root, task=sign_in.name, args=["ann"], kwargs={"password": "very secret"})
    for method, address in (("PATCH", "schedules/reports/"), ("POST", "schedules/reports/run/")):
        for guess in ("eve", "ann"):  # Whether it is what is stored is told to nobody.
            answer = root.ask(method, address, {"args": [guess]})
            assert (answer.status_code, answer.json()["code"]) == (422, "redacted_value")
    assert root.ask("PATCH", "schedules/reports/", {"overlap": "allow"}).status_code == 200
    assert Schedule.objects.get().kwargs == {"password": "very secret"}


def test_an_edit_changes_what_it_names(root: ApiClient) -> None:
    created(root, overlap="queue_one")
    body = {"rule": RULES["cron"], "missed": "window", "missed_window": 3600}
    answer = root.ask("PATCH", "schedules/reports/", body)
    told = answer.json()
    assert (answer.status_code, told["rule"]["kind"], told["missed_window"]) == (200, "cron", 3600)
    assert (told["overlap"], told["args"]) == ("queue_one", ["Ann"])


def test_who_was_slower_edits_and_deletes_nothing(root: ApiClient) -> None:
    seen = created(root)["ETag"]
    body = {"enabled": False}
    answer = root.ask("PATCH", "schedules/reports/", body, if_match=seen)
    assert answer.status_code == 200
    for method in ("PATCH", "DELETE"):
        answer = root.ask(method, "schedules/reports/", None if method == "DELETE" else {},
                          if_match=seen)  # fmt: skip
        assert (answer.status_code, answer.json()["code"]) == (412, "precondition_failed")
    fresh = root.look("schedules/reports/")["ETag"]
    assert root.ask("DELETE", "schedules/reports/", if_match=fresh).status_code == 204


def test_a_run_is_no_change_that_an_edit_must_have_seen(root: ApiClient) -> None:
    seen = created(root)["ETag"]
    root.act("schedules/reports/run/")
    changed = root.look("schedules/reports/")["ETag"]
    assert changed != seen
    answer = root.ask("PATCH", "schedules/reports/", {"enabled": False}, if_match=seen)
    assert answer.status_code == 200


def test_who_has_seen_it_otherwise_neither_runs_pauses_nor_resumes_it(root: ApiClient) -> None:
    seen = created(root)["ETag"]
    paused = root.act("schedules/reports/pause/", if_match=seen)
    assert paused.status_code == 200
    for verb in ("run", "pause", "resume"):
        answer = root.act(f"schedules/reports/{verb}/", if_match=seen)
        assert (answer.status_code, answer.json()["code"]) == (412, "precondition_failed"), verb
    assert not Occurrence.objects.exists()
    resumed = root.act("schedules/reports/resume/", if_match=paused["ETag"])
    assert resumed.status_code == 200
    assert root.act("schedules/reports/run/", if_match=resumed["ETag"]).status_code == 202


def test_a_run_by_hand_is_told_and_its_overlap_holds(root: ApiClient) -> None:
    created(root)
    answer = root.act("schedules/reports/run/", {"reason": "now"})
    told = answer.json()
    assert (answer.status_code, told["status"], told["requested_by"]) == (202, "enqueued", "root")
    assert Task.objects.get().id.hex == told["task_id"].replace("-", "")
    answer = root.act("schedules/reports/run/")
    assert (answer.status_code, answer.json()["code"]) == (409, "transition_refused")
    assert Occurrence.objects.count() == 1
    assert root.look("schedules/reports/").json()["last_runs"] == [told]


def test_it_is_paused_and_resumed(root: ApiClient) -> None:
    created(root)
    told = root.act("schedules/reports/pause/", {"reason": "a fire"}).json()
    assert (told["conditions"], told["pause_reason"]) == (["paused"], "a fire")
    assert root.act("schedules/reports/resume/").json()["conditions"] == []
    assert root.act("schedules/reports/resume/").status_code == 409


def test_its_times_are_previewed(root: ApiClient) -> None:
    created(root, rule=MINUTELY)
    told = root.look("schedules/reports/preview/?count=3").json()
    assert (told["rule_text"], len(told["times"])) == ("Every minute", 3)
    for wrong in ("0", "21", "1.0", "x", "%D9%A3"):
        assert root.look(f"schedules/reports/preview/?count={wrong}").status_code == 400


def test_a_rule_is_previewed_that_no_schedule_has(root: ApiClient) -> None:
    body = {"rule": RULES["daily_window"], "count": 2, "after": "2026-12-04T17:00:00Z"}
    answer = root.act("rules/preview/", body)
    assert answer.json()["times"] == ["2026-12-04T17:30:00Z", "2026-12-07T09:00:00Z"]
    assert answer.json()["rule_text"].startswith("Every 30 minutes from 09:00 to 17:30")
    assert root.act("rules/preview/", {**body, "count": 21}).status_code == 422
    answer = root.act("rules/preview/", {"rule": {"kind": "cron", "expression": "x"}})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/rule")


def test_a_declared_schedule_can_only_be_paused_resumed_and_run(root: ApiClient) -> None:
    created(root)
    Schedule.objects.update(source="code")
    for method, body in (("PATCH", {"enabled": False}), ("DELETE", None)):
        answer = root.ask(method, "schedules/reports/", body)
        assert (answer.status_code, answer.json()["code"]) == (409, "transition_refused")
    for verb, status in (("pause", 200), ("resume", 200), ("run", 202)):
        assert root.act(f"schedules/reports/{verb}/").status_code == status


def test_arguments_are_shown_as_far_as_somebody_may_see_them(
    root: ApiClient, member: Callable[..., ApiClient]
) -> None:
    schedules.create("secret", log_in, Every(hours=1), args=["bob", "hunter2"])
    assert root.look("schedules/secret/").json()["args"] == ["bob", "[redacted]"]
    Schedule.objects.update(task_name="gone")
    assert root.look("schedules/secret/").json()["args"] == ["bob", "hunter2"]
    told = member("view_schedule").look("schedules/secret/").json()
    assert (told["args"], told["kwargs"], told["last_runs"]) == (None, None, None)


def test_the_status_of_a_task_is_shown_to_those_who_may_see_tasks(
    root: ApiClient, member: Callable[..., ApiClient]
) -> None:
    created(root)
    schedules.run_now("reports")
    seen = ("view_schedule", "view_occurrence")
    for client, status in ((member(*seen), ""), (member(*seen, "view_task"), "ready")):
        shown = client.look("schedules/reports/").json()
        (listed,) = client.look("schedules/").json()["results"]
        (run,) = client.look("schedules/reports/runs/").json()["results"]
        assert (shown["last_task_status"], listed["last_task_status"]) == (status, status)
        assert (shown["last_runs"][0]["task_status"], run["task_status"]) == (status, status)
    Task.objects.all().delete()
    Schedule.objects.update(last_status="succeeded")
    Occurrence.objects.update(status="ended", task_status="succeeded")
    client = member(*seen)
    (run,) = client.look("schedules/reports/runs/").json()["results"]
    assert run["task_status"] == "succeeded"
    assert client.look("schedules/").json()["results"][0]["last_task_status"] == ""


def test_schedules_are_listed_by_pages(root: ApiClient) -> None:
    for name in ("c", "a", "b & d"):
        created(root, name=name)
    first = root.look("schedules/?limit=2").json()
    assert [each["name"] for each in first["results"]] == ["a", "b & d"]
    path = first["next"].partition("/api/v1/")[2]
    second = root.look(path).json()
    assert ([each["name"] for each in second["results"]], second["next"]) == (["c"], None)
    assert root.look(f"schedules/?task={add.name}").json()["results"] == []
    assert root.look("schedules/?source=cod").status_code == 400


def test_sent_again_a_creation_is_answered_as_at_first(root: ApiClient) -> None:
    first = root.act("schedules/", {"name": "x", "task": greet.name, "rule": MINUTELY,
                                    "args": ["Ann"]}, idempotency_key="k")  # fmt: skip
    again = root.act("schedules/", {"name": "x", "task": greet.name, "rule": MINUTELY,
                                    "args": ["Ann"]}, idempotency_key="k")  # fmt: skip
    assert (first.status_code, again.status_code) == (201, 201)
    assert (again.json(), again["ETag"]) == (first.json(), first["ETag"])
    assert Schedule.objects.count() == 1


def test_a_matching_etag_of_a_schedule_is_answered_without_a_body(root: ApiClient) -> None:
    created(root, rule=RULES["once"])
    seen = root.look("schedules/reports/")["ETag"]
    answer = root.look("schedules/reports/", if_none_match=seen)
    assert (answer.status_code, answer.content, answer["ETag"]) == (304, b"", seen)
    root.act("schedules/reports/pause/")
    assert root.look("schedules/reports/", if_none_match=seen).status_code == 200


def test_a_schedule_is_copied_with_changes(root: ApiClient) -> None:
    created(root, missed="all")
    answer = root.act("schedules/reports/copy/", {"name": "others", "args": ["Bob"]})
    assert (answer.status_code, answer["Location"]) == (201, "/api/v1/schedules/others/")
    told = answer.json()
    assert (told["args"], told["missed"], told["rule"]["interval"]) == (["Bob"], "all", 365 * 86400)
    taken = root.act("schedules/reports/copy/", {"name": "others"})
    assert (taken.status_code, taken.json()["code"]) == (409, "schedule_exists")
    assert root.act("schedules/none/copy/", {"name": "x"}).status_code == 404
    hidden = root.act("schedules/reports/copy/", {"name": "x", "task": add.name, "args": [1]})
    assert hidden.status_code == 403


def test_a_copy_gives_no_secret_other_arguments_beside_it(root: ApiClient) -> None:
    schedules.create("login", sign_in, Every(days=9), args=["ann", "s3cret"])
    same = root.act("schedules/login/copy/", {"name": "same"})
    assert same.status_code == 201, same.content
    assert "s3cret" not in same.content.decode()
    assert Schedule.objects.get(name="same").args == ["ann", "s3cret"]
    refused = root.act("schedules/login/copy/", {"name": "x", "kwargs": {"extra": 1}})
    assert refused.status_code == 422
    assert not Schedule.objects.filter(name="x").exists()
