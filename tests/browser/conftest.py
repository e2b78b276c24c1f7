"""The server that browsers are sent to, and the browser."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connections

from tests.browser.chromium import PATIENCE, Watch, open_browser
from tests.browser.sessions import session_of

ALLOW = "DJANGO_ALLOW_ASYNC_UNSAFE"


@pytest.fixture(scope="session")
def live_server(django_db_setup: None, live_server: Any) -> Any:
    """The live server, started after the test database.

    Started before, it would find SQLite in memory and share one connection among its threads.
    """
    return live_server


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One Chromium for the tests of a module.

    While it is there Playwright's event loop counts as running in this thread, where Django would
    refuse to ask the database, and keeps connections apart from those of before and after.
    """
    with open_browser() as opened, pytest.MonkeyPatch.context() as patch:
        patch.setitem(os.environ, ALLOW, "true")
        yield opened
        connections.close_all()
    # Workers' tests end every session but their own: the one from before is gone by now.
    connections.close_all()


@pytest.fixture
def complaints() -> list[str]:
    """What the page has complained of so far."""
    return []


@pytest.fixture
def page(browser: Any, live_server: Any, complaints: list[str]) -> Iterator[Any]:
    """A page in a session of its own; it has complained of nothing when the test is over."""
    with opened_page(browser, live_server, complaints) as page:
        yield page


@pytest.fixture
def admin_page(page: Any, live_server: Any, transactional_db: None) -> Any:
    """A page of somebody who may do anything, and has logged in already."""
    let_in(page, live_server)
    return page


@contextmanager
def opened_page(
    browser: Any, live_server: Any, complaints: list[str] | None = None
) -> Iterator[Any]:
    viewport = {"width": 1400, "height": 1000}
    context = browser.new_context(base_url=live_server.url, viewport=viewport)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    watch = Watch(page, complaints)
    yield page
    context.close()
    assert watch.problems == []


def let_in(page: Any, live_server: Any) -> None:
    user = User.objects.create_superuser("admin", password="admin")
    page.context.add_cookies([{**session_of(user), "url": live_server.url}])
