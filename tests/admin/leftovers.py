"""English that is left in a page which is to be in another language."""

from __future__ import annotations

import re
from html.parser import HTMLParser

SILENT = ("script", "style", "code", "pre")
"""Elements for machines, or in nobody's language; elements with lang="en" are passed over too."""
SPOKEN = ("title", "aria-label", "placeholder", "alt", "data-label", "data-ask")
WORD = re.compile(r"[A-Za-z]{2,}")
NAMES = re.compile(
    r"甲( [a-z]+\b(?!\.))?|plain( too| sound)?|echo|unseen|tests\.sample\.\w+\.\w+"
    r"|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|https://[\w./%-]+|task\.(failed|\*)|shop\.\*|mail\*"
    r"|queue:mail status:failed|in 5 minutes|manage\.py runworker|\d{4}-\d\d-\d\dT[\d:.+]+"
)
"""What rows are called, and what is written in searches and commands."""
TERMS = {
    "ID", "CSV", "JSON", "Lines", "Esc", "KB", "MB", "UTC", "cron", "URL", "https", "ms",
    "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL",
}  # fmt: skip
VALUES = {"finished", "process", "update", "note"}
"""Of options, and names of rows in breadcrumbs: code, which nobody translates."""
DJANGOS_OWN = {
    "Django", "Add link", "Change or view list link", "Model name", "Search", "True",
    "- Select an option -",
}  # fmt: skip
"""What some version of Django does not translate itself."""


class Spoken(HTMLParser):
    """Every text that people read or hear."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.texts: list[str] = []
        self._silent: list[str] = []
        self._goes_on = False
        """Whether a word goes on that may break here."""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in SILENT or given.get("lang") == "en":
            self._silent.append(tag)
        self._goes_on = tag == "wbr"
        spoken = [*SPOKEN, *(name for name in given if name.startswith("data-text"))]
        if tag == "input" and given.get("type") in ("submit", "button"):
            spoken.append("value")
        self.texts += [given[name] or "" for name in spoken if name in given]

    def handle_endtag(self, tag: str) -> None:
        if self._silent and self._silent[-1] == tag:
            self._silent.pop()

    def handle_data(self, data: str) -> None:
        if self._silent:
            return
        if self._goes_on:
            self.texts[-1] += data
        else:
            self.texts.append(data)
        self._goes_on = False


def english_in(html: str) -> set[str]:
    """The texts with words that are neither names nor terms."""
    left = set()
    for text in Spoken(html).texts:
        shown = " ".join(text.split())
        words = set(WORD.findall(NAMES.sub("", re.sub(r"\{\w+\}", "", shown))))
        if shown not in DJANGOS_OWN and words - TERMS - VALUES - DJANGOS_OWN:
            left.add(shown)
    return left
