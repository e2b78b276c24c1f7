"""What axe finds wrong with a page, without what Django's own pages bring along.

Rules of WCAG 2.0 and 2.1, A and AA, and axe's best practices.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

TAGS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice")
COLOURS = ("color-contrast", "link-in-text-block")
"""The rules whose answer another scheme of colours changes."""
DJANGOS_OWN = {
    # Links among text, told from it by their colour alone.
    "link-in-text-block": ".breadcrumbs > a",
    # The box of a list that has a help text: its label is a picture.
    "label-title-only": "#searchbar",
}
"""By rule: the elements of Django's admin that break it on Django's own pages too."""
RUN = """async ({ own, ...options }) => {
  const { violations } = await axe.run(document, options);
  const isDjangos = (rule, target) =>
    rule in own && target.length === 1 && document.querySelector(target[0])?.matches(own[rule]);
  return violations.map(({ id, impact, nodes }) => ({
    id, impact, nodes: nodes.filter((node) => !isDjangos(id, node.target)),
  }));
}"""


def violations(page: Any, rules: tuple[str, ...] = ()) -> list[str]:
    """What is wrong, a line for each element; of all rules, or of these."""
    return list(_lines(_found(page, rules, DJANGOS_OWN)))


def broken_rules(page: Any) -> dict[str, list[str]]:
    """The elements of the page that break a rule, by rule, Django's own among them."""
    return {
        each["id"]: [" ".join(map(str, node["target"])) for node in each["nodes"]]
        for each in _found(page, (), {})
    }


def violations_but_colours(page: Any) -> list[str]:
    """Of a page whose colours have been looked at already."""
    off = {rule: {"enabled": False} for rule in COLOURS}
    return list(_lines(_found(page, (), DJANGOS_OWN, rules=off)))


def _found(page: Any, chosen: tuple[str, ...], own: dict[str, str], **options: Any) -> Any:
    base = pytest.importorskip("axe_playwright_python.base")
    if not page.evaluate("typeof window.axe === 'object'"):
        page.evaluate(base.AXE_SCRIPT)
    only = {"type": "rule", "values": chosen} if chosen else {"type": "tag", "values": TAGS}
    asked = {"runOnly": only, "resultTypes": ["violations"], "own": own, **options}
    return page.evaluate(RUN, asked)


def _lines(found: Any) -> Iterator[str]:
    for violation in found:
        for node in violation["nodes"]:
            what = " ".join(node["failureSummary"].split())
            target = " ".join(map(str, node["target"]))
            yield f"{violation['id']} ({violation['impact']}): {target}: {what}"
