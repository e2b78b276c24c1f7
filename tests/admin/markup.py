"""What stands in a page, as a browser would read it, and what a strict policy forbids there."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urlsplit

ADDRESSES = ("href", "src", "action", "formaction", "data", "poster", "xlink:href", "srcset")
FOREIGN = ("iframe", "object", "embed", "base", "meta-refresh", "portal")
DATA_ONLY = ("application/json", "application/ld+json")


@dataclass
class Form:
    """One form: where it leads, how, and the names of its fields."""

    attributes: dict[str, str]
    fields: dict[str, str] = field(default_factory=dict)

    @property
    def is_post(self) -> bool:
        """Whether it changes something."""
        return self.attributes.get("method", "get").lower() == "post"


class Markup(HTMLParser):
    """Violations, links and forms of a page or a fragment of one."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.violations: list[str] = []
        self.links: list[str] = []
        self.assets: list[str] = []
        self.forms: list[Form] = []
        self.names: set[str] = set()
        """Of all fields and buttons, wherever they stand."""
        self.text: list[str] = []
        self._is_in_form = False
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self._check(tag, attributes)
        if tag == "a" and "href" in attributes:
            self.links.append(attributes["href"])
        if tag == "form":
            self._is_in_form = True
            self.forms.append(Form(attributes))
        if tag in ("input", "button", "select", "textarea"):
            self.names.add(attributes.get("name", ""))
            if self._is_in_form:
                self.forms[-1].fields[attributes.get("name", "")] = attributes.get("value", "")
        if tag in ("link", "script", "img") and (
            at := attributes.get("href", attributes.get("src"))
        ):
            self.assets.append(at)

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._is_in_form = False

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def _check(self, tag: str, attributes: dict[str, str]) -> None:
        shown = f"<{tag} {attributes}>"
        is_inline = "src" not in attributes and attributes.get("type", "") not in DATA_ONLY
        if tag == "script" and is_inline:
            self.violations.append(f"inline script: {shown}")
        if tag == "style" or tag in FOREIGN:
            self.violations.append(f"{tag}: {shown}")
        if tag == "meta" and attributes.get("http-equiv", "").lower() == "refresh":
            self.violations.append(f"refresh: {shown}")
        for name, value in attributes.items():
            if name.startswith("on") or name in ("style", "srcdoc", "background"):
                self.violations.append(f"attribute {name}: {shown}")
            if name in ADDRESSES and _is_foreign(value):
                self.violations.append(f"leads elsewhere: {shown}")


def _is_foreign(address: str) -> bool:
    bare = re.sub(r"[\x00-\x20]", "", address)
    try:
        parts = urlsplit(bare)
    except ValueError:
        return True
    is_data = parts.scheme == "data" and bare.startswith("data:image/")
    return bool(parts.scheme or bare.startswith(("//", "\\", "/\\"))) and not is_data
