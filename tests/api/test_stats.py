"""Figures over REST, and what machines ask."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import override_settings
from django.utils import timezone

from taskqueue.models import Rollup
from taskqueue.monitoring import health
from tests.admin.everything import everything
from tests.api.conftest import ApiClient
from tests.api.test_operations import make_task

pytestmark = pytest.mark.django_db
TOKEN = "a token for Prometheus"
WITH_TOKEN = override_settings(TASKQUEUE={"METRICS_TOKEN": TOKEN})


def test_statistics_count_tasks_queues_workers_and_the_last_hour(root: ApiClient) -> None:
    everything("plain")
    told = root.look("stats/").json()
    assert told["tasks"]["failed"] == {"count": 1, "is_capped": False}
    assert (told["queues"]["total"], told["queues"]["paused"]) == (3, 1)
    assert (told["workers"]["alive"], told["workers"]["slots"]) == (2, 5)
    hour = told["last_hour"]
    assert (hour["succeeded"], hour["failed"], hour["failure_rate"]) == (4, 2, pytest.approx(1 / 3))
    assert hour["run_p95"] >= hour["run_p50"] > 0


def test_of_an_empty_queue_the_rates_are_none(root: ApiClient) -> None:
    told = root.look("stats/").json()
    assert (told["last_hour"]["failure_rate"], told["last_hour"]["run_p50"]) == (None, None)
    assert told["queues"]["oldest_seconds"] is None


def test_queues_and_workers_are_for_those_who_may_view_them(
    member: Callable[..., ApiClient],
) -> None:
    told = member("view_task", "view_rollup", "view_queue").look("stats/").json()
    assert told["workers"] is None
    assert told["queues"]["total"] == 0


@pytest.mark.parametrize(("span", "steps"), [("hour", 60), ("day", 96), ("week", 84)])
def test_a_series_has_a_value_for_each_step(span: str, steps: int, root: ApiClient) -> None:
    everything("plain")
    told = root.look(f"stats/series/?span={span}").json()
    assert told.pop("span") == span
    assert told.pop("step_seconds") > 0
    assert {len(each) for each in told.values()} == {steps}
    assert sum(told["succeeded"]) == 4
    of_one = root.look(f"stats/series/?span={span}&queue_name=plain&name=plain").json()
    assert sum(of_one["succeeded"]) == 2
    assert sum(root.look("stats/series/?queue_name=other").json()["succeeded"]) == 0


@pytest.mark.parametrize("query", ["span=year", "span=", "queue_name=%00", "name=a&name=b", "x=1"])
def test_a_series_that_there_is_not_is_refused(query: str, root: ApiClient) -> None:
    assert root.look(f"stats/series/?{query}").status_code == 400


def test_failures_are_grouped_and_a_group_is_what_its_search_finds(root: ApiClient) -> None:
    everything("plain")
    told = root.look("stats/failures/").json()
    assert (told["looked_at"], told["is_capped"], told["retrying_looked_at"]) == (1, False, 1)
    for status, kind in (("failed", "groups"), ("retrying", "retrying")):
        [group] = told[kind]
        found = root.look("tasks/?" + urlencode({"q": group["q"]})).json()["results"]
        assert [each["id"] for each in found] == [group["example_id"]]
        assert (found[0]["status"], found[0]["name"]) == (status, group["name"])
    assert told["groups"][0]["example_message"]


def test_errors_of_attempts_are_for_those_who_may_view_attempts(
    member: Callable[..., ApiClient],
) -> None:
    everything("plain")
    for permissions, is_told in ((["view_task"], False), (["view_task", "view_lease"], True)):
        [group] = member(*permissions).look("stats/failures/").json()["retrying"]
        assert (group["example_error"] is not None) == is_told
        assert (group["example_message"] is not None) == is_told


def test_omitted_groups_are_reported(root: ApiClient) -> None:
    for name in ("a", "b"):
        make_task(name, status="failed", error_class="builtins.ValueError")
        make_task(name, status="retrying", attempt=1)
    for limit, is_capped in ((1, True), (2, False)):
        told = root.look(f"stats/failures/?limit={limit}").json()
        assert (len(told["groups"]), len(told["retrying"])) == (limit, limit)
        assert (told["is_capped"], told["retrying_is_capped"]) == (is_capped, is_capped)


def test_a_group_of_failures_is_retried_by_an_operation(root: ApiClient) -> None:
    everything("plain")
    [group] = root.look("stats/failures/?limit=1").json()["groups"]
    body = {"verb": "retry", "q": group["q"], "dry_run": True}
    assert root.act("operations/", body).json()["doable"] == 1


def test_each_name_has_its_figures(root: ApiClient) -> None:
    everything("plain")
    told = root.look("stats/performance/?span=hour").json()
    assert told["names"][0]["name"] == "plain"
    assert sum(each["count"] for each in told["names"]) == 6
    assert told["names"][0]["run_p95"] >= told["names"][0]["run_p50"] > 0
    one = root.look("stats/performance/?span=hour&limit=1").json()
    assert (len(one["names"]), one["is_capped"]) == (1, True)


@pytest.mark.parametrize("query", ["span=year", "limit=0", "limit=1001", "name=x"])
def test_figures_of_names_that_there_are_not_are_refused(query: str, root: ApiClient) -> None:
    assert root.look(f"stats/performance/?{query}").status_code == 400
    assert root.look(f"stats/failures/?{query}").status_code == 400


# Health


def test_anybody_may_read_the_health_which_is_only_a_status(anonymous: ApiClient) -> None:
    for path in ("healthz/live", "healthz/ready"):
        answer = anonymous.look(path)
        assert (answer.status_code, answer.json()) == (200, {"status": "ok"}), path
        assert "no-cache" in answer["Cache-Control"]


def test_not_to_be_ready_is_503_and_the_reason_is_not_for_strangers(
    anonymous: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = health.Check(name="database", is_ok=False, detail="password of bob is wrong")
    monkeypatch.setattr(health, "ready", lambda: health.Health(checks=(check,)))
    answer = anonymous.look("healthz/ready")
    assert (answer.status_code, answer.json()) == (503, {"status": "unavailable"})


@override_settings(TASKQUEUE={"API_THROTTLE_RATES": {"read": "1/hour"}})
def test_probes_are_not_counted_and_need_no_login(anonymous: ApiClient) -> None:
    for _ in range(3):
        answer = anonymous.look("healthz/live", authorization="Basic bm9ib2R5Onh4")
        assert answer.status_code == 200


def test_to_be_live_asks_no_database(anonymous: ApiClient, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(0):
        anonymous.look("healthz/live")


# Metrics


def test_metrics_are_for_those_with_the_permission(
    anonymous: ApiClient, member: Callable[..., ApiClient]
) -> None:
    assert anonymous.look("metrics").status_code == 401
    assert member("view_task").look("metrics").status_code == 403
    answer = member("view_rollup").look("metrics")
    assert (answer.status_code, answer["Content-Type"].partition(";")[0]) == (200, "text/plain")
    assert b"taskqueue_tasks" in answer.content


@WITH_TOKEN
def test_metrics_are_for_those_with_the_token(anonymous: ApiClient) -> None:
    assert anonymous.look("metrics", authorization=f"Bearer {TOKEN}").status_code == 200
    for wrong in (f"Bearer {TOKEN}x", "Bearer ", f"Basic {TOKEN}", TOKEN):
        assert anonymous.look("metrics", authorization=wrong).status_code == 401, wrong
    assert anonymous.look("stats/", authorization=f"Bearer {TOKEN}").status_code == 401


def test_without_a_token_in_the_settings_none_is_right(anonymous: ApiClient) -> None:
    for given in ("Bearer ", "Bearer None"):
        assert anonymous.look("metrics", authorization=given).status_code == 401


def test_without_its_package_the_extra_is_named(
    root: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    for name in [name for name in sys.modules if name.startswith("prometheus_client.")]:
        monkeypatch.setitem(sys.modules, name, None)
    answer = root.look("metrics")
    assert (answer.status_code, answer.json()["code"]) == (501, "metrics_not_installed")
    assert "django-taskqueue[metrics]" in answer.json()["detail"]


def test_performance_tells_changes_and_takes_a_moment(root: ApiClient) -> None:
    here = timezone.now()
    for minutes, count in ((3, 10), (30, 10)):
        Rollup.objects.create(
            starts_at=here - timedelta(minutes=minutes), queue_name="default", name="shop.send",
            succeeded=count, failed=10 if minutes == 3 else 0,
        )  # fmt: skip
    since = (here - timedelta(minutes=20)).isoformat().replace("+", "%2B")
    told = root.look(f"stats/performance/?since={since}").json()
    (name,) = told["names"]
    assert (told["span"], name["count"], name["before_count"]) == (None, 20, 10)
    assert name["failure_change"] == 0.5
    assert root.look("stats/performance/").json()["names"][0]["before_count"] == 0
