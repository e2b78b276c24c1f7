"""Python in the guides runs, page by page, in a project that has what the guides speak of."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest
from django.contrib import admin

import taskqueue.admin
from taskqueue import conf, definitions
from taskqueue.declarations import handlers
from taskqueue.declarations.workflows.workflow import workflows
from taskqueue.models import Dashboard
from tests.documents import PAGES, README, Block, page

pytestmark = pytest.mark.django_db
RUN_BY = {
    "README.md": "test_examples.py", "arguments.md": "tests/test_typed_arguments.py",
    "enqueue-limits.md": "tests/test_enqueue_limits_document.py",
    "migrate-from-celery.md": "test_migrations.py",
    "migrate-from-django-q2.md": "test_migrations.py",
    "migrate-from-django-tasks-db.md": "test_migrations.py",
    "migrate-from-huey.md": "test_migrations.py", "migrate-from-rq.md": "test_migrations.py",
    "testing.md": "tests/testing/test_documentation.py", "tutorial.md": "tests/test_tutorial.py",
}  # fmt: skip
"""Pages whose blocks other tests run."""
SHOP = "\n\n".join([README.blocks("python")[0], page("bodies.md").blocks("python")[0]])
PREPARED = {
    "api.md": "from django.urls import include, path",
    "async.md": "from taskqueue import task",
    "bodies.md": (
        "from unittest.mock import create_autospec\n"
        "from taskqueue import Context\n"
        "context = create_autospec(Context, instance=True)\n"
    ),
    "deployment.md": "import os, pathlib; BASE_DIR = pathlib.Path()",
    "enqueue.md": (
        "from unittest.mock import Mock\n"
        "from taskqueue import task\n"
        "order = Mock(pk=42)\n"
        "build_report = task(lambda month: month, name='shop.build_report')\n"
    ),
    "events.md": "seq = 0",
    "limits.md": "from taskqueue import Concurrency, Rate, task",
    "metrics.md": "import os; from django.http import HttpResponse",
    "operations.md": 'DATABASES = {"default": {"OPTIONS": {}}}',
    "progress.md": (
        "from django.urls import include, path\n"
        "from django.http import HttpResponse\n"
        "from taskqueue import task\n"
        "def export_orders(user_id): ...\n"
        "export_orders = task(export_orders)\n"
        "def render(request, template, context): return context\n"
    ),
    "workflows.md": (
        "from shop.tasks import send_receipt\n"
        "from taskqueue import task\n"
        "def made(name, *names):\n"
        "    body = eval(f'lambda {chr(44).join(names)}: None')\n"
        "    body.__name__ = body.__qualname__ = name\n"
        "    body.__module__ = 'shop.steps'\n"
        "    return task(body)\n"
        "load_day = made('load_day', 'day', 'token')\n"
        "clean, summarise, publish, page_owner, process, reduce = (\n"
        "    made(name, 'value')\n"
        "    for name in ('clean', 'summarise', 'publish', 'page_owner', 'process', 'reduce')\n"
        ")\n"
        "def files(day): return []\n"
    ),
}
"""Code that a page takes for granted, by the name of its file."""
THEN = {
    "control.md": (
        "from unittest.mock import create_autospec\n"
        "from taskqueue.results import TaskResult\n"
        "from tests.admin.test_dashboard import make_worker\n"
        "make_worker('paris-1')\n"
        "on_call(create_autospec(TaskResult, instance=True))\n"
    ),
    "logging.md": (
        "from django.utils.module_loading import import_string\n"
        "for part in (*LOGGING['filters'].values(), *LOGGING['formatters'].values()):\n"
        "    import_string(part['()'])()\n"
    ),
    "metrics.md": (
        "from django.test import RequestFactory\n"
        "assert metrics(RequestFactory().get('/')).status_code == 200\n"
    ),
    "progress.md": (
        "from django.contrib.auth.models import User\n"
        "from django.test import RequestFactory\n"
        "request = RequestFactory().get('/')\n"
        "request.user = User.objects.create_user('ada')\n"
        "assert export(request)['progress']\n"
    ),
}
"""Code that uses what a page has made, by the name of its file."""


def blocks_by_page() -> dict[str, list[Block]]:
    found: dict[str, list[Block]] = {}
    for each in PAGES:
        for block in each.all_blocks:
            is_run = block.language == "python" and not block.reason and ".wait(" not in block.text
            if is_run and "sums" not in block.text and each.path.name not in RUN_BY:
                found.setdefault(each.path.name, []).append(block)
    return found


FOUND = blocks_by_page()


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The modules `shop.tasks` and `shop.steps`; all definitions are forgotten afterwards."""
    for registry in (definitions.registry, workflows):
        monkeypatch.setattr(registry, "_definitions", dict(registry._definitions))
    monkeypatch.setattr(handlers, "_handlers", dict(handlers._handlers))
    monkeypatch.setenv("TASKQUEUE_METRICS_TOKEN", "t" * 32)
    monkeypatch.setenv("SECRET_KEY", "k" * 50)
    for name in ("shop", "shop.tasks", "shop.steps"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    exec(SHOP, vars(sys.modules["shop.tasks"]))
    return vars(sys.modules["shop.tasks"])


@pytest.mark.parametrize("name", FOUND)
def test_the_python_of_a_page_runs(name: str, shop: dict[str, Any]) -> None:
    names: dict[str, Any] = {"__name__": "shop.tasks"}
    exec(PREPARED.get(name, ""), names)
    try:
        for block in FOUND[name]:
            code = compile(block.text, str(block), "exec")
            exec(code, names)
            check_settings(names.pop("TASKQUEUE", {}))
        exec(THEN.get(name, ""), names)
    finally:
        if not admin.site.is_registered(Dashboard):
            taskqueue.admin.register(admin.site)


def check_settings(settings: dict[str, Any]) -> None:
    mistakes = conf.parse(settings)[1]
    assert [str(mistake) for mistake in mistakes] == []
