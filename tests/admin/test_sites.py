"""On a project's own admin site every page works, and no link leads to another site."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.db.transaction import atomic, set_rollback
from django.test import Client

import taskqueue.admin
from taskqueue.admin.links import Links
from tests.admin.conftest import LogIn
from tests.admin.everything import Everything, everything
from tests.admin.matrix.cells import act_address, filled_in
from tests.admin.matrix.table import PAGES
from tests.admin.pages import some_variants, text_of

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.parametrize(
        "sites",
        [
            pytest.param("alone", marks=pytest.mark.urls("tests.admin.sites.alone")),
            pytest.param("beside", marks=pytest.mark.urls("tests.admin.sites.beside")),
        ],
    ),
]
DEFAULT = re.compile(r"""["'(=]/admin/""")
OURS = re.compile(r"""["']/ops/taskqueue/""")
TASKS = "/admin/taskqueue/task/"


def in_ops(url: str) -> str:
    return url.replace("/admin/", "/ops/", 1)


@pytest.mark.slow
def test_no_page_leads_out_of_the_site(sites: str, log_in_as: LogIn) -> None:
    made, client = everything("plain"), log_in_as("superuser")
    seen = 0
    for number, route in enumerate(PAGES):
        turn = number + (sites == "beside")  # What one site leaves out the other has.
        for url, query in some_variants(route, made, turn=turn, of=2):
            response = client.get(in_ops(url), query)
            assert response.status_code < 500, url
            assert not response.headers.get("Location", "").startswith("/admin/"), url
            if response.headers.get("Content-Type", "").startswith("text/html"):
                text = text_of(response)
                assert not DEFAULT.search(text), (url, DEFAULT.search(text))
                seen += bool(OURS.search(text))
    assert seen > 50


def test_no_act_leads_out_of_the_site(sites: str, log_in_as: LogIn) -> None:
    made, client = everything("plain"), log_in_as("superuser")
    acts = [(route, act) for route, page in PAGES.items() for act in page.acts]
    moved = [location for route, act in acts if (location := _location(client, route, act, made))]
    assert len(moved) > 20
    assert [location for location in moved if location.startswith("/admin/")] == []


def _location(client: Client, route: str, act: Any, made: Everything) -> str:
    """Where the act leads to; it is undone."""
    with atomic():
        response = client.post(in_ops(act_address(route, act, made)), filled_in(act.body, made))
        set_rollback(True)
    assert response.status_code == act.answers, (route, act.name)
    return str(response.headers.get("Location", ""))


def test_refreshed_content_stays_in_the_site(sites: str, log_in_as: LogIn) -> None:
    made, client = everything("plain"), log_in_as("superuser")
    running = f"task/{made.tasks['running'].pk}/change/"
    for page in ("dashboard/", running, f"operation/{made.rows['operation'].pk}/change/"):
        response = client.get(
            f"/ops/taskqueue/{page}", headers={"X-Requested-With": "taskqueue-refresh"}
        )
        assert response.status_code == 200, page
        assert not DEFAULT.search(text_of(response)), page


def test_both_sites_keep_to_themselves(sites: str, log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    assert client.get("/ops/taskqueue/task/").status_code == 200
    assert client.get("/ops/taskqueue/task/none/change/").status_code == 302
    assert Links("ops").url("task_changelist") == in_ops(TASKS)
    if sites == "beside":
        assert Links("admin").url("task_changelist") == TASKS
        assert "/ops/" not in client.get(TASKS).content.decode()


def test_no_page_asks_django_for_an_address_without_its_site(sites: str) -> None:
    own = Path(taskqueue.admin.__file__).parent
    asking = re.compile(r"^from django\.(urls|shortcuts) import .*\b(reverse\w*|redirect)\b", re.M)
    assert [each.name for each in own.rglob("*.py") if asking.search(each.read_text())] == [
        "links.py"
    ]
