"""Breadcrumbs use the same element as the pages and styles of this version of Django."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.test import Client
from django.urls import reverse

from tests.admin.everything import Everything
from tests.admin.matrix.table import LOOKING
from tests.admin.pages import text_of, variants

pytestmark = pytest.mark.django_db
BREADCRUMBS = re.compile(r'<(\w+) class="breadcrumbs">(.*?)</\1>', re.S)
DJANGOS_OWN = "/admin/auth/user/"


def element_and_titles(html: str) -> tuple[str, list[str]]:
    """The element that holds the breadcrumbs, and the title of each step."""
    ((element, inner),) = BREADCRUMBS.findall(html)
    steps = re.findall(r"<li(?: aria-current=\"page\")?>(.*?)</li>", inner, re.S)
    if element == "ol":
        assert [" aria-current" in each for each in re.findall(r"<li[^>]*>", inner)] == [
            *([False] * (len(steps) - 1)),
            True,
        ]
    else:
        steps = inner.split("&rsaquo;")
    return element, [unescape(re.sub(r"<[^>]+>", "", step)).strip() for step in steps]


@pytest.mark.parametrize("route", LOOKING)
def test_breadcrumbs_stand_as_on_a_page_of_djangos_own(route: str, plain: Everything) -> None:
    client: Client = plain.rows["root"]
    expected, _ = element_and_titles(text_of(client.get(DJANGOS_OWN)))
    for url, query in variants(route, plain):
        response = client.get(url, query)
        is_page = response.headers.get("Content-Type", "").startswith("text/html")
        if response.status_code == 200 and is_page and 'id="user-tools"' in text_of(response):
            element, titles = element_and_titles(text_of(response))
            assert element == expected, url
            assert titles[0] == "Home", url
            assert all(titles), (url, titles)


def test_breadcrumbs_name_the_way_to_a_page(plain: Everything) -> None:
    client: Client = plain.rows["root"]
    task, worker = plain.tasks["failed"], plain.rows["worker"]
    tasks = ["Home", "Task queue", "Tasks"]
    ways = {
        reverse("admin:taskqueue_dashboard_changelist"): ["Home", "Task queue", "Dashboard"],
        reverse("admin:taskqueue_failure_changelist"): ["Home", "Task queue", "Failures"],
        reverse("admin:taskqueue_task_change", args=[task.pk]): [*tasks, task.name],
        reverse("admin:taskqueue_task_delete", args=[task.pk]): [*tasks, task.name, "Delete"],
        reverse("admin:taskqueue_task_edit", args=[task.pk, "retry_with"]): [
            *tasks, task.name, "Retry with other arguments",
        ],
        reverse("admin:taskqueue_worker_change", args=[worker.pk]): [
            "Home", "Task queue", "Workers", worker.name,
        ],
    }  # fmt: skip
    found = {url: element_and_titles(text_of(client.get(url)))[1] for url in ways}
    assert found == ways
