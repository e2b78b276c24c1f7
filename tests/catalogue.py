"""The texts that the source marks for translation, and the catalogue that translates them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from django.utils.translation.template import templatize

PACKAGE = Path(__file__).resolve().parents[1] / "taskqueue"
FOLDER = PACKAGE / "locale" / "zh_Hans" / "LC_MESSAGES"
ONE = ("gettext", "gettext_lazy", "gettext_noop", "refusal")
MANY = ("ngettext", "ngettext_lazy")
WITH_CONTEXT = ("pgettext", "pgettext_lazy")
CALL = re.compile(r"\b(_|[np]?gettext)\(")
MARKING = (
    "django.utils.translation", "taskqueue.core.refusals", "taskqueue.declarations.option",
    "taskqueue.monitoring.doctor.words",
)  # fmt: skip
"""The modules whose functions mark texts."""
LINE = re.compile(r'(?:(msgctxt|msgid|msgid_plural|msgstr)(?:\[(\d+)\])? )?(".*")')


class Text(NamedTuple):
    """A text that is translated, with its context and its plural where it has them."""

    context: str
    singular: str
    plural: str


@dataclass
class Entry:
    """One text and its translation."""

    flags: str = ""
    msgctxt: str = ""
    msgid: str = ""
    msgid_plural: str = ""
    msgstr: dict[int, str] = field(default_factory=dict)

    @property
    def text(self) -> Text:
        """What is translated."""
        return Text(self.msgctxt, self.msgid, self.msgid_plural)


def entries(path: Path) -> list[Entry]:
    """The catalogue without its head. Raises ValueError for a line that is none of a catalogue."""
    found = [_entry(block) for block in path.read_text(encoding="utf-8").split("\n\n")]
    return [entry for entry in found if entry.msgid]


def _entry(block: str) -> Entry:
    entry, where, place = Entry(), "", 0
    for line in block.strip().splitlines():
        if line.startswith("#"):
            entry.flags += line + "\n"
            continue
        parts = LINE.fullmatch(line)
        if parts is None:
            raise ValueError(f"{line!r} is no line of a catalogue.")
        where, place = parts[1] or where, int(parts[2] or 0) if parts[1] else place
        text = ast.literal_eval(parts[3])
        if where == "msgstr":
            entry.msgstr[place] = entry.msgstr.get(place, "") + text
        else:
            setattr(entry, where, getattr(entry, where) + text)
    return entry


def marked_texts() -> set[Text]:
    """Return all texts that Python and the templates mark."""
    found: set[Text] = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        found |= set(_marked_in_python(ast.parse(path.read_text(encoding="utf-8"))))
    templates = (PACKAGE / "templates").rglob("*")
    for path in sorted(path for path in templates if path.suffix in (".html", ".txt")):
        found |= set(_marked_in_template(path.read_text(encoding="utf-8")))
    return found


def _marked_in_python(tree: ast.Module) -> Iterator[Text]:
    names = {
        alias.asname or alias.name: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module in MARKING
        for alias in node.names
    }
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == "_":
            names["_"] = "gettext_noop"  # Where Django is not imported.
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield from _texts(node, names.get(node.func.id, ""))


def _marked_in_template(text: str) -> Iterator[Text]:
    source = templatize(text)
    for begin in CALL.finditer(source):
        name = {"_": "gettext"}.get(begin[1], begin[1])
        yield from _texts(_call_at(source, begin.start()), name)


def _call_at(source: str, start: int) -> ast.Call:
    """The call that begins there, whatever follows behind it."""
    for close in re.finditer(r"\)", source[start:]):
        try:
            call = ast.parse(source[start : start + close.end()], mode="eval").body
        except SyntaxError:
            continue
        if isinstance(call, ast.Call):
            return call
    raise ValueError(f"No call begins at {source[start : start + 60]!r}.")


def _texts(call: ast.Call, name: str) -> Iterator[Text]:
    wanted = {
        **dict.fromkeys(ONE, 1), **dict.fromkeys(MANY, 2), **dict.fromkeys(WITH_CONTEXT, 2)
    }.get(name, 0)  # fmt: skip
    given = [str(part.value) for part in call.args[:wanted] if isinstance(part, ast.Constant)]
    if not wanted or len(given) != wanted:
        return
    if name in WITH_CONTEXT:
        yield Text(given[0], given[1], "")
    else:
        yield Text("", given[0], given[1] if name in MANY else "")
