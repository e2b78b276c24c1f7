"""Spans as tests read them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Seen:
    """One span, by whichever process."""

    name: str
    kind: str
    trace_id: str
    span_id: str
    parent_id: str | None
    attributes: dict[str, Any]
    events: list[dict[str, Any]]
    links: list[str]
    status: str
    pid: int = 0
    text: str = field(repr=False)

    @classmethod
    def of(cls, text: str, pid: int = 0) -> Seen:
        value = json.loads(text)
        context = value["context"]
        return cls(
            name=value["name"],
            kind=value["kind"].removeprefix("SpanKind."),
            trace_id=context["trace_id"].removeprefix("0x"),
            span_id=context["span_id"].removeprefix("0x"),
            parent_id=value["parent_id"] and value["parent_id"].removeprefix("0x"),
            attributes=value["attributes"],
            events=value["events"],
            links=[each["context"]["span_id"].removeprefix("0x") for each in value["links"]],
            status=value["status"]["status_code"],
            pid=pid,
            text=text,
        )


def read(folder: Path) -> list[Seen]:
    """The spans that processes have written."""
    return [
        Seen.of(line, int(file.stem))
        for file in folder.glob("*.jsonl")
        for line in file.read_text().splitlines()
    ]


def named(spans: Iterable[Seen], name: str) -> Seen:
    """The only span of this name."""
    (found,) = (span for span in spans if span.name == name)
    return found


def below(spans: Iterable[Seen], parent: Seen) -> list[Seen]:
    return [span for span in spans if span.parent_id == parent.span_id]
