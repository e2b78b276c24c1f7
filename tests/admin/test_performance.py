"""Performance is read from the rollups, a line a name, sorted by any column."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from taskqueue.admin.performance import COLUMNS, in_order
from taskqueue.display import change, points, share
from taskqueue.models import Rollup, Task, Worker
from taskqueue.monitoring.performance import NamePerformance
from tests.admin.conftest import LogIn
from tests.admin.markup import Markup
from tests.admin.rows import EVIL

pytestmark = pytest.mark.django_db
PAGE = "/admin/taskqueue/performance/"
MOST_QUERIES = 15


def roll_up(name: str, **counts: Any) -> Rollup:
    """What attempts at a name came to, a minute ago."""
    values: dict[str, Any] = {
        "starts_at": timezone.now() - timedelta(minutes=1),
        "succeeded": 1, "run_times": {"20": 1}, "wait_times": {"3": 1},
    }  # fmt: skip
    return Rollup.objects.create(queue_name="default", name=name, **(values | counts))


def names(client: Client, **asked: str) -> list[str]:
    """The names on the page, in its order."""
    answer = client.get(PAGE, asked)
    assert answer.status_code == 200
    return [row.name for row in answer.context["rows"]]


def test_a_name_that_no_task_can_have_leads_to_all(log_in_as: LogIn) -> None:
    roll_up("shop.tasks.send")
    assert names(log_in_as("superuser"), name="a\0b") == ["shop.tasks.send"]


def figures(name: str, **known: Any) -> NamePerformance:
    """The figures of a name; of what is not given, nothing is known."""
    unknown: dict[str, Any] = {
        "count": 1, "failed": 0, "failure_rate": 0.0, "run_p50": None, "run_p95": None,
        "wait_p50": None, "wait_p95": None, "slowest_seconds": 0.0, "slowest_task_id": None,
    }  # fmt: skip
    return NamePerformance(name=name, **(unknown | known))


def test_the_names_that_ran_most_come_first(log_in_as: LogIn) -> None:
    roll_up("shop.tasks.send", succeeded=3)
    roll_up("shop.tasks.bill", succeeded=5, failed=1)
    client = log_in_as("viewer", "view_rollup", "view_task")
    assert names(client) == ["shop.tasks.bill", "shop.tasks.send"]
    assert names(client, sort="count") == ["shop.tasks.send", "shop.tasks.bill"]
    assert names(client, sort="name", span="week") == ["shop.tasks.bill", "shop.tasks.send"]


@pytest.mark.parametrize(
    "asked", [{"span": "year"}, {"sort": "args"}, {"sort": "-"}, {"sort": EVIL}]
)
def test_an_address_that_means_nothing_shows_the_usual_page(
    asked: dict[str, str], log_in_as: LogIn
) -> None:
    roll_up("shop.tasks.send")
    assert names(log_in_as("superuser"), **asked) == ["shop.tasks.send"]


def test_unknown_figures_come_last_in_either_order() -> None:
    found = [figures("c"), figures("a", run_p95=1.0), figures("b", run_p95=2.0)]
    assert [each.name for each in in_order(found, "run_p95")] == ["a", "b", "c"]
    assert [each.name for each in in_order(found, "-run_p95")] == ["b", "a", "c"]


def test_a_control_sorts_where_there_are_no_heads(log_in_as: LogIn) -> None:
    roll_up("shop.tasks.send")
    client = log_in_as("superuser")
    page = client.get(PAGE, {"span": "day", "sort": "run_p95_change"})
    choices = page.context["sort_choices"]
    assert len(choices) == 2 * len(COLUMNS)
    assert ("run_p95_change", "Run time p95, its change ▲", True) in choices
    assert choices[0] == ("name", "Task ▲", False)
    assert '<input type="hidden" name="span" value="day">' in page.content.decode()
    assert [value for value, _text, is_current in choices if is_current] == ["run_p95_change"]


def test_a_click_on_a_head_sorts_by_it_and_a_second_click_turns_it_round(log_in_as: LogIn) -> None:
    roll_up("shop.tasks.send")
    client = log_in_as("superuser")
    heads = client.get(PAGE).context["heads"]
    assert [head["url"] for head in heads] == [
        "?span=hour&sort=name", "?span=hour&sort=count",
        *(f"?span=hour&sort=-{column}" for column in list(COLUMNS)[2:]),
    ]  # fmt: skip
    assert [head["direction"] for head in heads][:2] == ["", "descending"]
    assert client.get(PAGE, {"sort": "count"}).context["heads"][1]["direction"] == "ascending"


def test_the_slowest_task_is_linked_as_long_as_it_is_kept(log_in_as: LogIn) -> None:
    task = Task.objects.create(name="shop.tasks.send", crash_delay=timedelta(seconds=1))
    roll_up("shop.tasks.send", slowest_seconds=9.0, slowest_task_id=task.id)
    roll_up("shop.tasks.bill", slowest_seconds=8.0, slowest_task_id=UUID(int=7))
    page = log_in_as("superuser").get(PAGE).content.decode()
    assert f"/task/{task.id}/change/" in page
    assert str(UUID(int=7)) not in page
    assert "8 s" in page


def test_a_name_has_a_page_with_its_charts(log_in_as: LogIn) -> None:
    roll_up("shop.tasks.send")
    answer = log_in_as("viewer", "view_rollup", "view_task").get(PAGE, {"name": "shop.tasks.send"})
    assert answer.context["row"].count == 1
    page = answer.content.decode()
    assert page.count("<svg") >= 2
    assert "q=name%3Ashop.tasks.send" in page


def test_an_unknown_name_has_an_empty_page(log_in_as: LogIn) -> None:
    page = log_in_as("superuser").get(PAGE, {"name": EVIL, "span": "day"}).content.decode()
    assert "No attempts of this task finished" in page
    assert EVIL not in page


def test_a_hostile_name_is_text(log_in_as: LogIn) -> None:
    roll_up(EVIL)
    client = log_in_as("superuser")
    for asked in ({}, {"name": EVIL}):
        page = client.get(PAGE, asked).content.decode()
        assert EVIL not in page
        assert "&lt;script&gt;alert(" in page


@pytest.mark.parametrize(
    ("role", "status"),
    [("anonymous", 302), ("user", 302), ("staff", 403), ("viewer", 200), ("superuser", 200)],
)
def test_the_page_is_for_users_who_may_view_figures(
    role: str, status: int, log_in_as: LogIn
) -> None:
    client = log_in_as(role)
    for asked in ({}, {"name": "x"}):
        assert client.get(PAGE, asked).status_code == status
    assert client.post(PAGE).status_code == (405 if status == 200 else status)


def test_the_page_links_to_tasks_only_for_users_who_may_view_them(
    client: Client,
) -> None:
    task = Task.objects.create(name="shop.tasks.send", crash_delay=timedelta(seconds=1))
    roll_up("shop.tasks.send", slowest_seconds=9.0, slowest_task_id=task.id)
    user = User.objects.create_user("staff", is_staff=True)
    client.force_login(user)
    for codenames, status, is_linked in (
        (["view_task"], 403, False),
        (["view_rollup"], 200, False),
        (["view_rollup", "view_task"], 200, True),
    ):
        user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
        for asked in ({}, {"name": "shop.tasks.send"}):
            answer = client.get(PAGE, asked)
            assert answer.status_code == status, (codenames, asked)
            page = answer.content.decode()
            if status == 200:  # The page of a refusal leads to what they may view.
                assert ("/taskqueue/task/" in page) == is_linked, (codenames, asked)


def test_the_page_costs_few_queries(log_in_as: LogIn, django_assert_max_num_queries: Any) -> None:
    for number in range(30):
        roll_up(f"shop.tasks.t{number}")
    client = log_in_as("viewer", "view_rollup", "view_task")
    with django_assert_max_num_queries(MOST_QUERIES):
        assert len(names(client)) == 30
    with django_assert_max_num_queries(MOST_QUERIES):
        client.get(PAGE, {"name": "shop.tasks.t7"})


@pytest.mark.parametrize(
    ("rate", "shown"), [(0, "0 %"), (0.00001, "0.1 %"), (0.125, "12.5 %"), (1, "100 %")]
)
def test_a_few_failures_are_never_shown_as_none(rate: float, shown: str) -> None:
    assert share(rate) == shown


def test_names_that_got_slower_since_a_moment_come_first(log_in_as: LogIn) -> None:
    now = timezone.now()
    for name, before, after in (("a.same", 4, 4), ("b.slower", 4, 12), ("c.faster", 12, 4)):
        for minutes, bucket in ((40, before), (10, after)):
            roll_up(
                name, starts_at=now - timedelta(minutes=minutes), succeeded=10,
                run_times={str(bucket): 10},
            )  # fmt: skip
    client = log_in_as("viewer", "view_rollup", "view_task")
    since = (now - timedelta(minutes=25)).isoformat()
    assert names(client, since=since) == ["b.slower", "a.same", "c.faster"]
    page = client.get(PAGE, {"since": since}).content.decode()
    assert '<span class="taskqueue-change taskqueue-change--worse">+300 %</span>' in page
    assert "“later” is not a time" in client.get(PAGE, {"since": "later"}).content.decode()


def test_deploys_are_offered_and_marked(log_in_as: LogIn) -> None:
    roll_up("shop.tasks.send")
    at = timezone.now() - timedelta(minutes=20)
    Worker.objects.create(
        name="w", host="h", pid=1, versions={"project": "1.4.2"}, started_at=at, seen_at=at
    )
    client = log_in_as("viewer", "view_rollup", "view_task")
    tabs = [str(tab["title"]) for tab in client.get(PAGE).context["spans"]]
    assert tabs[-1] == "Since 1.4.2"
    page = client.get(PAGE, {"name": "shop.tasks.send"}).content.decode()
    assert page.count('class="taskqueue-deploy"') == 2


def test_a_step_of_a_chart_leads_to_what_finished_in_it(log_in_as: LogIn) -> None:
    roll_up("shop.tasks.send", starts_at=timezone.now())
    ended = timezone.now()
    task = Task.objects.create(
        name="shop.tasks.send", status="failed", finished_at=ended, crash_delay=timedelta(1)
    )
    client = log_in_as("viewer", "view_rollup", "view_task")
    page = client.get(PAGE, {"name": "shop.tasks.send"}).content.decode()
    [url] = {url for url in Markup(page).links if "finished_after" in url}
    assert [each.pk for each in client.get(url).context["cl"].result_list] == [task.pk]


def test_a_heat_map_tells_how_many_attempts_took_how_long_when(log_in_as: LogIn) -> None:
    now = timezone.now()
    roll_up("a", starts_at=now - timedelta(minutes=30), run_times={"0": 9, "8": 1})
    roll_up("a", starts_at=now - timedelta(minutes=5), run_times={"8": 4})
    answer = log_in_as("viewer", "view_rollup", "view_task").get(PAGE, {"name": "a"})
    assert answer.context["heat"].count('class="taskqueue-heat"') == 3
    assert answer.context["heat"].count('fill-opacity="1"') == 1
    assert [(part["longest"], part["count"]) for part in answer.context["distribution"]] == [
        (1.0, 9), (2.0, 0), (4.0, 5),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("ratio", "shown"), [(0.0, "0 %"), (-0.004, "0 %"), (0.5, "+50 %"), (-12.0, "-1,200 %")]
)
def test_a_change_has_a_sign_unless_it_is_none(ratio: float, shown: str) -> None:
    assert f">{shown}<" in change(ratio)


@pytest.mark.parametrize(
    ("difference", "shown"),
    [(-0.0001, "0 points"), (0.017, "+1.7 points"), (-0.118, "-11.8 points")],
)
def test_a_difference_of_rates_has_a_sign_unless_it_is_none(difference: float, shown: str) -> None:
    assert f">{shown}<" in points(difference)
