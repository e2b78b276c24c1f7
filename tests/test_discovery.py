"""The `tasks` modules of installed apps are found, and found broken."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings

from taskqueue.declarations import discovery
from taskqueue.declarations.definition import Registry, registry

APP = """
from django.apps import AppConfig
class Config(AppConfig):
    name = {name!r}
"""


@pytest.fixture
def app_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Make an app with a `tasks` module of the given text."""
    made: list[str] = []

    def make(name: str, text: str) -> str:
        package = tmp_path / name
        package.mkdir()
        (package / "__init__.py").write_text("")
        (package / "apps.py").write_text(APP.format(name=name))
        (package / "tasks.py").write_text(text)
        made.append(name)
        return name

    monkeypatch.syspath_prepend(tmp_path)
    yield make
    for module in [name for name in sys.modules if name.partition(".")[0] in made]:
        del sys.modules[module]


def test_the_tasks_of_every_installed_app_are_discovered(
    app_named: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = app_named(
        "shop_of_test",
        "from taskqueue import task\n@task\ndef send() -> int:\n    return 5\n",
    )
    from django.conf import settings

    monkeypatch.setattr(discovery, "_is_complete", False)
    with override_settings(INSTALLED_APPS=[*settings.INSTALLED_APPS, name]):
        discovery.discover_tasks()
    assert registry.get("shop_of_test.tasks.send").call() == 5


def test_a_tasks_module_that_cannot_be_imported_says_so(
    app_named: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = app_named("broken_of_test", "import a_module_that_is_not_there\n")
    from django.conf import settings

    monkeypatch.setattr(discovery, "_is_complete", False)
    with override_settings(INSTALLED_APPS=[*settings.INSTALLED_APPS, name]):
        for _ in range(2):
            with pytest.raises(ModuleNotFoundError, match="a_module_that_is_not_there"):
                Registry().find("x")
