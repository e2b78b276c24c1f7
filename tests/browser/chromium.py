"""The system's Chromium, driven by Playwright."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.conftest import require_tool

PATIENCE = 60_000
"""Milliseconds that a page may take to show what is awaited."""
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
def open_browser() -> Iterator[Any]:
    """Chromium, as long as the block lasts. Playwright's event loop lives in this thread then."""
    path = require_tool("chromium")
    playwright = pytest.importorskip("playwright.sync_api")
    playwright.expect.set_options(timeout=PATIENCE)
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


class Watch:
    """What a page complains of: errors, what its console says, answers that are none.

    A violation of the Content-Security-Policy is among what the console says.
    """

    def __init__(self, page: Any, problems: list[str] | None = None) -> None:
        self.problems = [] if problems is None else problems
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", lambda message: self.problems.append(f"{page.url}: {message.text}"))
        page.on("response", self._note)
        page.route("**/favicon.ico", lambda route: route.fulfill(status=204))

    def _note(self, answer: Any) -> None:
        if answer.status >= 400:
            self.problems.append(f"{answer.status} {answer.url}")


def expect(what: Any) -> Any:
    """Playwright's assertions, which wait for what they say."""
    from playwright.sync_api import expect as expected

    return expected(what)


def click_through(page: Any, selector: str) -> None:
    """Click on what leads to another page, and wait until that page is there.

    Playwright's click does not wait: what comes next would be looked for on the page that is left.
    """
    with page.expect_navigation():
        page.click(selector)


def await_rows(page: Any, selector: str, count: int) -> None:
    """Wait until so many elements are there."""
    expect(page.locator(selector)).to_have_count(count)


def log_in(page: Any, name: str = "admin", password: str = "admin") -> None:
    """By the form."""
    page.goto("/admin/")
    page.fill("#id_username", name)
    page.fill("#id_password", password)
    click_through(page, "text=Log in")
    page.wait_for_selector("#user-tools")
