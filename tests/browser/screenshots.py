"""Pictures of every page: `python -m tests.browser.screenshots [folder]`.

A shop's rows are shown, under a strict Content-Security-Policy: every page in light and dark, on a
screen and on a phone. `--only dashboard` takes those whose names begin so, `--language zh-hans`
speaks that language; `--readme` writes the two of the README to docs/screenshots besides. The exit
code is 1 when a page complained of anything or is too wide.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.browser.serving import served, set_up

DOCS = Path(__file__).resolve().parents[2] / "docs" / "screenshots"
LOOKS: dict[str, dict[str, Any]] = {
    "light": {"viewport": {"width": 1400, "height": 900}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1400, "height": 900}, "color_scheme": "dark"},
    "narrow": {"viewport": {"width": 360, "height": 740}, "color_scheme": "light"},
    "narrow-dark": {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"},
}
CHOSEN = {"dashboard": ("dashboard-day", "light"), "task": ("task-running", "dark")}
"""For the README: by the name of the file, which page in which look."""


def take(base: str, addresses: dict[str, str], cookie: dict[str, str], folder: Path) -> list[str]:
    """Save the pictures; return what is wrong with the pages."""
    from tests.browser.chromium import Watch, open_browser

    problems: list[str] = []
    with open_browser() as browser:
        for look, options in LOOKS.items():
            context = browser.new_context(base_url=base, **options)
            context.add_cookies([{**cookie, "url": base}])
            page = context.new_page()
            watch = Watch(page)
            for name, address in addresses.items():
                page.goto(address)
                page.screenshot(path=folder / f"{name}-{look}.png", full_page=True)
                problems += _too_wide(page, f"{name}, {look}", options["viewport"]["width"])
            problems += watch.problems
            context.close()
    return problems


def _too_wide(page: Any, where: str, widest: int) -> list[str]:
    width = page.evaluate("document.scrollingElement.scrollWidth")
    return [f"{where}: {width} wide"] if width > widest else []


def take_for_readme(base: str, addresses: dict[str, str], cookie: dict[str, str]) -> None:
    """The two that stand in the README: what a screen shows of them."""
    from tests.browser.chromium import open_browser

    DOCS.mkdir(parents=True, exist_ok=True)
    with open_browser() as browser:
        for name, (page_name, look) in CHOSEN.items():
            context = browser.new_context(base_url=base, **LOOKS[look])
            context.add_cookies([{**cookie, "url": base}])
            page = context.new_page()
            page.set_viewport_size({"width": 1400, "height": 1180})
            page.goto(addresses[page_name])
            page.screenshot(path=DOCS / f"{name}.png")
            context.close()


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.browser.screenshots", description=__doc__
    )
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--only", default="", help="the beginning of the names of pages")
    parser.add_argument("--language", default="en", help="of the pages")
    parser.add_argument("--readme", action="store_true", help="also write docs/screenshots")
    given = parser.parse_args(arguments)
    folder = given.folder or Path(tempfile.mkdtemp(prefix="taskqueue-screenshots-"))
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as site:
        set_up(Path(site), language=given.language)
        cookie, addresses = filled()
        with served() as base:
            if given.readme:
                take_for_readme(base, addresses, cookie)
            wanted = {k: v for k, v in addresses.items() if k.startswith(given.only)}
            problems = take(base, wanted, cookie, folder)
    print(f"{len(wanted) * len(LOOKS)} pictures in {folder}", *problems, sep="\n")
    return int(bool(problems))


def filled(count: int = 900) -> tuple[dict[str, str], dict[str, str]]:
    """The session of somebody who may do anything, and the addresses of the pages."""
    from django.contrib.auth.models import User

    from tests.browser.lively.site import fill
    from tests.browser.pages import pages
    from tests.browser.sessions import session_of

    shop = fill(count)
    return session_of(User.objects.create_superuser("admin")), pages(shop)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
