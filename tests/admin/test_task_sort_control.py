"""The control that sorts the list of tasks where it has no headings: a form without JavaScript."""

from __future__ import annotations

import re

import pytest

from tests.admin.conftest import LogIn
from tests.sample.tasks import greet

pytestmark = pytest.mark.django_db
LIST = "/admin/taskqueue/task/"


def test_the_control_sorts_and_keeps_the_search(log_in_as: LogIn) -> None:
    for name, priority in (("Ann", 1), ("Bob", 9)):
        greet.using(priority=priority).enqueue(name)
    client = log_in_as("superuser")
    page = client.get(f"{LIST}?q=status:ready").content.decode()
    [form] = re.findall(r'<form method="get" class="taskqueue-sorting">.*?</form>', page, re.DOTALL)
    assert 'name="q" value="status:ready"' in form
    values = [value for value in re.findall(r'<option value="([^"]*)"', form) if value]
    assert len(values) == 12
    for value in values:
        shown = client.get(LIST, {"q": "status:ready", "sort": value}).content.decode()
        assert re.search(rf'<option value="{value}" selected>', shown)
        if "priority" in value:
            places = [shown.index("Ann"), shown.index("Bob")]
            assert (places == sorted(places)) != value.startswith("-")
