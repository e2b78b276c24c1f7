"""What axe finds wrong with a page, without what Django's own pages bring along.

Rules of WCAG 2.0 and 2.1, A and AA, and axe's best practices.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

TAGS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice")
DJANGOS_OWN = {
    # Links among text, told from it by their colour alone; of a list, that to all rows.
    "link-in-text-block": ".breadcrumbs > a, #changelist-search .small > a",
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


def violations(page: Any) -> list[str]:
    """What is wrong, a line for each element."""
    return list(_lines(_found(page, DJANGOS_OWN)))


def broken_rules(page: Any) -> dict[str, list[str]]:
    """The elements of the page that break a rule, by rule, Django's own among them."""
    return {
        each["id"]: [" ".join(map(str, node["target"])) for node in each["nodes"]]
        for each in _found(page, {})
    }


def _found(page: Any, own: dict[str, str]) -> Any:
    base = pytest.importorskip("axe_playwright_python.base")
    page.evaluate(base.AXE_SCRIPT)
    tags = {"type": "tag", "values": TAGS}
    return page.evaluate(RUN, {"runOnly": tags, "resultTypes": ["violations"], "own": own})


def _lines(found: Any) -> Iterator[str]:
    for violation in found:
        for node in violation["nodes"]:
            what = " ".join(node["failureSummary"].split())
            target = " ".join(map(str, node["target"]))
            yield f"{violation['id']} ({violation['impact']}): {target}: {what}"
