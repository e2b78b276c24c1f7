"""Render every page under one theme: `python -m tests.themes.look settings_unfold [folder]`.

Each is rendered by Django, and shown in a real browser, wide and as on a phone; with a folder,
pictures are kept there, and with `--rendered` there is no browser. With `--turn=0/3` Django renders
the first of three and every third after it. What is wrong is printed, a line each; the exit code is
1 then.

Themes have inline scripts and styles of their own: no Content-Security-Policy is sent here.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.browser.serving import served, set_up

SIZES = {"wide": {"width": 1400, "height": 900}, "narrow": {"width": 360, "height": 740}}
SEEN = {
    "dashboard": (".taskqueue-counts", ".taskqueue-tabs", "[data-refresh=taskqueue-charts] svg"),
    "task": ("#searchbar", ".taskqueue-tabs", "#result_list"),
    "task-failed": ("[data-refresh=taskqueue-head]", "#taskqueue-leases"),
    "task-retry": ("[id^=id_arg]", "#id_reason"),
    "failure": (".taskqueue-table",),
    "performance": (".taskqueue-table",),
    "queue": (".taskqueue-table",),
    "worker": (".taskqueue-table",),
    "schedule-one": (".taskqueue-acts",),
    "schedule-add": ("#id_name",),
    "operation-running": (".taskqueue-progress",),
}
"""What must be visible, by the name of the page."""
DJANGOS_OWN = ("/admin/auth/group/add/", "/admin/auth/user/")
MOST_OVERFLOW = 100
"""Pixels that a page of ours may stick out further on a phone than the theme lets Django's own."""


def rendered(addresses: dict[str, str]) -> Iterator[str]:
    """By Django alone."""
    from django.contrib.auth.models import User
    from django.test import Client

    client = Client(raise_request_exception=False)
    client.force_login(User.objects.get(username="admin"))
    for name, address in addresses.items():
        answer = client.get(address)
        if answer.status_code != 200:
            yield f"{name}: {answer.status_code}"


def shown(addresses: dict[str, str], cookie: dict[str, str], folder: Path | None) -> Iterator[str]:
    """By a browser."""
    from tests.browser.chromium import open_browser

    with served() as base, open_browser() as browser:
        for size, viewport in SIZES.items():
            context = browser.new_context(base_url=base, viewport=viewport)
            context.add_cookies([{**cookie, "url": base}])
            page = context.new_page()
            page.on("pageerror", lambda error, page=page: print(page.url, error.stack))
            allowed = MOST_OVERFLOW + max(_overflow(page, address) for address in DJANGOS_OWN)
            for name, seen in SEEN.items():
                sticks_out = _overflow(page, addresses[name])
                if size == "narrow" and sticks_out > allowed:
                    yield f"{name}: {sticks_out} pixels stick out, more than {allowed}"
                if size == "wide":
                    yield from (
                        f"{name}: {selector} is not seen" for selector in _unseen(page, seen)
                    )
                yield from (f"{name}: the button {text!r} is cut off" for text in _cut_off(page))
                yield from (f"{name}: the button {text!r} is pale" for text in _pale(page))
                if folder:
                    page.screenshot(path=folder / f"{name}-{size}.png", full_page=True)
            context.close()


def _overflow(page: Any, address: str) -> int:
    page.goto(address)
    return int(page.evaluate("document.scrollingElement.scrollWidth - window.innerWidth"))


def _cut_off(page: Any) -> list[str]:
    """The texts of our buttons that have no room. Grappelli's own are as they are."""
    buttons = "button:not(.grp-button), .taskqueue-small"
    script = """(all) => all.filter((each) => each.scrollWidth > each.clientWidth + 1)
        .map((each) => each.textContent.trim())"""
    found: list[str] = page.locator("[class*=taskqueue]").locator(buttons).evaluate_all(script)
    return [text for text in found if text]


PALE = """(all) => {
    const channels = (color) => color.match(/[\\d.]+/g).map(Number);
    const luminance = (color) => channels(color).slice(0, 3)
        .map((each) => each / 255)
        .map((each) => (each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4))
        .reduce((sum, each, place) => sum + each * [0.2126, 0.7152, 0.0722][place], 0);
    return all.filter((each) => {
        const { color, backgroundColor, backgroundImage } = getComputedStyle(each);
        if ((channels(backgroundColor)[3] ?? 1) < 1 || backgroundImage !== "none") {
            return false;
        }
        const [light, dark] = [luminance(color), luminance(backgroundColor)].sort((a, b) => b - a);
        return (light + 0.05) / (dark + 0.05) < 3;
    }).map((each) => each.textContent.trim());
}"""


def _pale(page: Any) -> list[str]:
    """The texts of our forms' buttons that hardly stand out from their ground."""
    found: list[str] = page.locator(".taskqueue-form button").evaluate_all(PALE)
    return found


def _unseen(page: Any, seen: tuple[str, ...]) -> Iterator[str]:
    for selector in seen:
        if not page.locator(selector).first.is_visible():
            yield selector


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.themes.look", description=__doc__)
    parser.add_argument("theme", help="the settings, such as settings_unfold")
    parser.add_argument("folder", nargs="?", type=Path, help="where pictures are kept")
    parser.add_argument("--rendered", action="store_true", help="without a browser")
    parser.add_argument("--turn", default="0/1", help="such as 0/3")
    given = parser.parse_args()
    turn, of = map(int, given.turn.split("/"))
    with tempfile.TemporaryDirectory() as site:
        set_up(Path(site), f"tests.themes.{given.theme}")
        from django.conf import settings

        settings.MIDDLEWARE = [each for each in settings.MIDDLEWARE if "csp" not in each]
        from tests.browser.screenshots import filled

        cookie, addresses = filled(60)
        problems = [*rendered(dict([*addresses.items()][turn::of]))]
        if not given.rendered:
            problems += shown(addresses, cookie, given.folder)
    print(*problems, sep="\n")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
