"""The measured addresses of the admin's pages, listed once Django is set up."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

if TYPE_CHECKING:
    from django.test import Client

STATUSES = (
    "blocked", "scheduled", "ready", "running", "retrying", "succeeded", "failed", "cancelled",
)  # fmt: skip
SEARCHES = (
    "name:shop.tasks.task_000",
    "name:shop.tasks.task_299",
    "name:shop.tasks.rarely",
    "name:shop.*",
    "name:shop.tasks.nowhere",
    "queue:queue-3",
    "queue:queue-3 status:ready",
    "status:failed error:shop.errors.Error7",
    'status:failed error:"was refused"',
    'error:"nowhere to be found"',
    "priority:>=5 status:ready",
    "schedule:schedule-3",
    "worker:worker-3",
    "worker:nobody",
    "key:nobody",
    "args.user.id:42",
    "args.user.id:42 name:shop.tasks.task_003 status:failed",
    "metadata.tenant:7 status:succeeded",
    "metadata.tenant:nobody",
    "after:2d before:1d",
    "nothing like it",
)
PAGES_BACK = 20
"""How often the link to older tasks is followed, to come to a deep page."""


def addresses(client: Client) -> Iterator[str]:
    """Every page: lists and forms as the admin's own table of addresses has them, and variants."""
    from django.urls import reverse

    yield reverse("admin:app_list", args=["taskqueue"])
    yield from _of_models()
    for page in ("dashboard", "performance"):
        for span in ("hour", "day", "week"):
            yield f"{reverse(f'admin:taskqueue_{page}_changelist')}?span={span}"
    tasks = reverse("admin:taskqueue_task_changelist")
    for text in (*(f"status:{status}" for status in STATUSES), *SEARCHES):
        yield f"{tasks}?{urlencode({'q': text})}"
    for text in ("", "status:succeeded", "args.user.id:42"):
        yield _deep(client, f"{tasks}?{urlencode({'q': text})}")
    start = reverse("admin:taskqueue_operation_start")
    for text in ("status:failed", "args.user.id:42"):
        yield f"{start}?{urlencode({'verb': 'retry', 'q': text})}"


def _of_models() -> Iterator[str]:
    """The list of each model, its form to add, the pages of a row; of a task of each status."""
    from django.apps import apps
    from django.contrib import admin
    from django.urls import NoReverseMatch, reverse
    from django.utils import timezone

    from taskqueue.monitoring.searching.finding import find
    from taskqueue.monitoring.searching.search import parse

    for model in apps.get_app_config("taskqueue").get_models():
        if not admin.site.is_registered(model):
            continue
        name = f"admin:taskqueue_{model._meta.model_name}"
        yield reverse(f"{name}_changelist")
        rows: Any = model._default_manager
        row = rows.order_by("-pk").first()
        for page in ("change", "history"):
            try:
                if row is not None and not model._meta.proxy:
                    yield reverse(f"{name}_{page}", args=[row.pk])
            except NoReverseMatch:
                continue
    for name in ("task_add", "schedule_add"):
        yield reverse(f"admin:taskqueue_{name}")
    for status in STATUSES:
        for task in find(parse(f"status:{status}", now=timezone.now()).which, limit=1).tasks:
            yield reverse("admin:taskqueue_task_change", args=[task.pk])


def _deep(client: Client, address: str) -> str:
    """The page that is so many pages further back."""
    for _ in range(PAGES_BACK):
        found = re.search(r'href="\?([^"]*before=[^"]*)"', client.get(address).content.decode())
        if found is None:
            break
        address = f"{address.partition('?')[0]}?{found[1].replace('&amp;', '&')}"
    return address
