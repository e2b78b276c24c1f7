"""Our pages link to each other, and have shortcuts, for the pages that the user may view."""

from __future__ import annotations

import re

import pytest

from tests.admin.conftest import LogIn
from tests.admin.rows import Rows

NAMES = ("dashboard", "task", "failure", "queue", "worker", "schedule", "audit")
UNDER = {"lease": "task", "tasklog": "task", "occurrence": "schedule", "alertrule": "incident"}
"""Lists without a tab of their own, and the tab under which they stand."""


def tabs(page: str) -> list[str]:
    """The models whose pages the tabs lead to."""
    [nav] = re.findall(
        r'<nav class="taskqueue-tabs" aria-label="Task queue pages.*?</nav>', page, re.DOTALL
    )
    return re.findall(r'href="/admin/taskqueue/(\w+)/"', nav)


@pytest.mark.parametrize("name", [*NAMES, *UNDER])
def test_every_list_leads_to_the_dashboard_and_tells_where_one_is(
    name: str, rows: Rows, log_in_as: LogIn
) -> None:
    page = log_in_as("superuser").get(f"/admin/taskqueue/{name}/").content.decode()
    assert tabs(page)[:3] == ["dashboard", "task", "workflow"]
    assert "taskqueue/keyboard.js" in page
    assert "taskqueue/look.css" in page
    current = f'href="/admin/taskqueue/{name}/" data-taskqueue-key="'
    assert (current in page) == (name in NAMES)
    marked = r'href="/admin/taskqueue/(\w+)/" data-taskqueue-key="\w" aria-current="page"'
    assert re.findall(marked, page) == [UNDER.get(name, name)]


def test_the_index_of_the_app_leads_to_the_dashboard(log_in_as: LogIn) -> None:
    page = log_in_as("superuser").get("/admin/taskqueue/").content.decode()
    assert tabs(page)[0] == "dashboard"
    assert "aria-current" not in page.split("taskqueue-tabs")[1].split("</nav>")[0]


def test_tabs_lead_only_to_what_one_may_view(log_in_as: LogIn) -> None:
    client = log_in_as("viewer", "view_task", "view_queue")
    page = client.get("/admin/taskqueue/dashboard/").content.decode()
    assert tabs(page) == ["dashboard", "task", "failure", "queue"]


def test_the_help_of_the_keys_names_each_page(log_in_as: LogIn) -> None:
    page = log_in_as("superuser").get("/admin/taskqueue/dashboard/").content.decode()
    [dialog] = re.findall(r'<dialog [^>]*id="taskqueue-keyboard".*?</dialog>', page, re.DOTALL)
    keys = re.findall(r"<kbd>g</kbd> <kbd>(\w)</kbd>", dialog)
    assert keys == re.findall(r'data-taskqueue-key="(\w)"', page)
    assert {"d", "t", "w", "q", "s", "f"} <= set(keys)
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("permission", ["enqueue", "operate"])
def test_the_dashboard_leads_to_the_form_that_enqueues_for_those_who_may(
    permission: str, log_in_as: LogIn
) -> None:
    client = log_in_as("staff", "view_task", permission)
    page = client.get("/admin/taskqueue/dashboard/").content.decode()
    assert ("/admin/taskqueue/task/add/" in page) == (permission == "enqueue")
