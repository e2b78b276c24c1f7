"""The examples of the README and of the guides run, with a real worker."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from taskqueue import definitions
from taskqueue.declarations.checks import check_settings
from taskqueue.declarations.workflows.workflow import workflows
from taskqueue.models import Schedule
from tests.conftest import StartWorker
from tests.documents import PAGES, README, Page, page
from tests.worker_process import wait_until

DEFINITION, CALL, *_ = README.blocks("python")
BODIES = (page("bodies.md"), page("schedules.md"), page("workflows.md"))
"""The pages that declare tasks of the shop, each in its first block."""
SETTINGS = "from tests.settings import *\nINSTALLED_APPS = [*INSTALLED_APPS, 'shop']\n"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """An app with the tasks of the examples; the environment in which a worker finds it."""
    bodies = "\n\n".join(each.blocks("python")[0] for each in BODIES)
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").touch()
    counting = README.block("python", "def count_receipts")
    (tmp_path / "shop" / "tasks.py").write_text(f"{DEFINITION}\n\n{bodies}\n\n{counting}")
    (tmp_path / "shop_settings.py").write_text(SETTINGS)
    monkeypatch.syspath_prepend(tmp_path)
    registered = dict(definitions.registry._definitions)
    monkeypatch.setattr(definitions.registry, "_definitions", registered)
    monkeypatch.setattr(workflows, "_definitions", dict(workflows._definitions))
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    return {"PYTHONPATH": path, "DJANGO_SETTINGS_MODULE": "shop_settings"}


@pytest.mark.slow
def test_the_examples_run(shop: dict[str, str], start_worker: StartWorker) -> None:
    start_worker(env=shop)
    names: dict[str, object] = {}
    exec(CALL, names)
    exec(README.block("python", "send_receipt.map"), names)
    exec(page("enqueue.md").block("python", "enqueue_many"), names)
    exec(page("workflows.md").block("python", "close_day.enqueue"), names)
    from shop.tasks import (  # type: ignore[import-not-found]
        import_rows,
        send_receipt,
    )

    result = send_receipt.get_result(names["result"].id)  # type: ignore[attr-defined]
    assert result.progress == (100.0, "rendered")
    imported = import_rows.enqueue("stock.csv", rows=3).wait(timeout=60)
    assert imported.return_value == 3
    assert imported.progress == (100.0, "row 3 of stock.csv")
    wait_until(lambda: Schedule.objects.count() == 3, what="the declared schedules")
    exec(page("schedules.md").block("python", "schedules.create"), {})
    names_of_rows = Schedule.objects.order_by("name").values_list("name", flat=True)
    assert list(names_of_rows) == ["shop.tasks.open_shop", "stock-eu", "stock-us"]


def test_the_sqlite_options_satisfy_the_checks() -> None:
    names: dict[str, object] = {}
    exec(page("installation.md").block("python", "sqlite3"), names)
    from django.db import connections

    options = names["DATABASES"]["default"]["OPTIONS"]  # type: ignore[index]
    before = connections["default"].settings_dict
    connections["default"].settings_dict = {**before, "OPTIONS": options}
    try:
        assert check_settings() == []
    finally:
        connections["default"].settings_dict = before


@pytest.mark.parametrize("document", PAGES, ids=lambda page: page.path.stem)
def test_every_block_of_python_is_python(document: Page) -> None:
    for block in document.blocks("python"):
        compile(block, document.path.name, "exec")
