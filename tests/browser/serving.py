"""A site of its own on SQLite, for programs that look at its pages outside of the tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import django


def set_up(folder: Path, settings: str = "tests.settings", language: str = "en") -> None:
    """Django, on a new SQLite database in that folder, speaking that language."""
    os.environ["DJANGO_SETTINGS_MODULE"] = settings
    os.environ["TASKQUEUE_TEST_DATABASE"] = "sqlite"
    from django.conf import settings as configured

    configured.DATABASES["default"]["NAME"] = str(folder / "site.sqlite3")
    configured.LANGUAGE_CODE = language
    # As the test runner does: the address of the server is not known beforehand.
    configured.ALLOWED_HOSTS = ["*"]
    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)


@contextmanager
def served() -> Iterator[str]:
    """The address of the site, as long as the block lasts."""
    from django.contrib.staticfiles.handlers import StaticFilesHandler
    from django.test.testcases import LiveServerThread

    server = LiveServerThread("127.0.0.1", StaticFilesHandler)
    server.daemon = True
    server.start()
    server.is_ready.wait()
    if server.error:
        raise server.error
    try:
        yield f"http://127.0.0.1:{server.port}"
    finally:
        server.terminate()
