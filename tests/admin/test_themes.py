"""Every page renders under other themes of the admin, and shows in a browser what it is for."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import metadata

import django
import pytest

from tests.sharing_out import IS_FULL

pytestmark = pytest.mark.slow
PACKAGES = {
    "unfold": "django-unfold",
    "jazzmin": "django-jazzmin",
    "grappelli": "django-grappelli",
}
IN_A_BROWSER = PACKAGES if IS_FULL else ("unfold",)
"""The one that changes most; with TASKQUEUE_FULL=1 all."""


@pytest.mark.parametrize("theme", sorted(PACKAGES))
def test_no_page_breaks_under(theme: str) -> None:
    """Django renders each page under one theme, by turns, or with TASKQUEUE_FULL=1 under all."""
    _require_support(PACKAGES[theme])
    command = [sys.executable, "-m", "tests.themes.look", f"settings_{theme}"]
    if theme not in IN_A_BROWSER:
        command.append("--rendered")
    if not IS_FULL:
        command.append(f"--turn={sorted(PACKAGES).index(theme)}/{len(PACKAGES)}")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TASKQUEUE_TEST_")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-4000:]}"


def _require_support(package: str) -> None:
    """A theme names the versions of Django that it is made for."""
    known = metadata(package).get_all("Classifier") or []
    version = f"{django.VERSION[0]}.{django.VERSION[1]}"
    if f"Framework :: Django :: {version}" not in known:
        pytest.skip(f"{package} does not say that it supports Django {version}")
