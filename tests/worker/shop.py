"""A project of its own in a temporary folder, whose code a test can change or break."""

from __future__ import annotations

import os
from pathlib import Path

from tests.worker_process import ROOT

SETTINGS = """
from tests.settings import *

INSTALLED_APPS = [*INSTALLED_APPS, "shop"]
"""

TASKS = """
from taskqueue import task


@task
def price():
    return {price}
"""


class Shop:
    """An app `shop` with one task, `shop.tasks.price`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "shop").mkdir()
        (folder / "shop" / "__init__.py").touch()
        (folder / "shop_settings.py").write_text(SETTINGS)
        self.set_price(1)

    @property
    def environment(self) -> dict[str, str]:
        """The settings with which a worker runs this project."""
        return {
            "DJANGO_SETTINGS_MODULE": "shop_settings",
            "PYTHONPATH": f"{self._folder}{os.pathsep}{ROOT}",
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def deploy(self, text: str) -> None:
        """Deploy a module of tasks of that text."""
        self._write(text)

    def set_price(self, price: int) -> None:
        """Deploy code that works, and returns this."""
        self._write(TASKS.format(price=price))

    def break_it(self) -> None:
        """Deploy code that cannot be imported."""
        self._write("import a_module_that_nobody_has\n")

    def _write(self, text: str) -> None:
        path = self._folder / "shop" / "tasks.py"
        before = path.stat().st_mtime_ns if path.exists() else 0
        # At once: a child that starts meanwhile would import an empty module, or half of one, and
        # believe that it knows no task.
        new = path.with_suffix(".new")
        new.write_text(text)
        # However coarse the file system's clock: this is later.
        os.utime(new, ns=(before + 10**9, max(before + 10**9, new.stat().st_mtime_ns)))
        new.replace(path)
