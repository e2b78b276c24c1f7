"""The system's Chromium, driven by Playwright."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.conftest import require_tool

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextmanager
def open_page() -> Iterator[Any]:
    """A page of a browser of its own. Within, the main thread belongs to Playwright's event loop:
    what the test asks of the database it asks before or after.
    """
    path = require_tool("chromium")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        try:
            page = browser.new_page(viewport={"width": 1400, "height": 1000})
            page.set_default_timeout(60_000)
            yield page
        finally:
            browser.close()


def await_rows(page: Any, selector: str, count: int) -> None:
    """Wait until so many elements are there."""
    from playwright.sync_api import expect

    expect(page.locator(selector)).to_have_count(count, timeout=60_000)
