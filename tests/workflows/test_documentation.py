"""docs/workflows.md: what it says to people who know Celery's canvas is true, and runs here."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from taskqueue import definitions
from taskqueue.declarations.workflows.workflow import workflows
from tests.conftest import StartWorker
from tests.worker_process import ROOT

pytestmark = pytest.mark.slow
TEXT = (ROOT / "docs" / "workflows.md").read_text()
SETTINGS = "from tests.settings import *\nINSTALLED_APPS = [*INSTALLED_APPS, 'sums']\n"


def blocks(heading: str) -> list[str]:
    """The code of a section."""
    [section] = [part for part in re.split(r"^## ", TEXT, flags=re.MULTILINE) if heading in part]
    return re.findall(r"^```python\n(.*?)^```", section, re.MULTILINE | re.DOTALL)


@pytest.fixture
def sums(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """An app with the tasks of that section; the environment in which a worker finds it."""
    (tmp_path / "sums").mkdir()
    (tmp_path / "sums" / "__init__.py").touch()
    (tmp_path / "sums" / "tasks.py").write_text(blocks("Coming from Celery")[0])
    (tmp_path / "sums_settings.py").write_text(SETTINGS)
    monkeypatch.syspath_prepend(tmp_path)
    for registry in (definitions.registry, workflows):
        monkeypatch.setattr(registry, "_definitions", dict(registry._definitions))
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    return {"PYTHONPATH": path, "DJANGO_SETTINGS_MODULE": "sums_settings"}


def test_the_examples_for_celery_users_are_true(
    sums: dict[str, str], start_worker: StartWorker
) -> None:
    start_worker(env=sums)
    _, *examples = blocks("Coming from Celery")
    assert len(examples) == 2
    for example in examples:
        assert "assert" in example
        exec(example, {})
