"""The addresses of the REST API, from its OpenAPI document and its views."""

from __future__ import annotations

from typing import Any

from docs.generate.markdown import code, table
from taskqueue.api import documents
from taskqueue.api.urls import ADDRESSES


def addresses() -> str:
    """Return the operations by tag: method, address, permissions, what it does."""
    document: Any = documents.generated(are_warnings_told=False)
    needs = {
        str(each.pattern).replace("<path:", "{").replace("<str:", "{").replace(">", "}"): (
            each.callback.cls.needs
        )
        for each in ADDRESSES
    }
    parts = []
    for tag, about in documents.TAGS.items():
        rows = [
            (
                method.upper(),
                code(address.lstrip("/") or "./"),
                ", ".join(
                    code(need.removeprefix("taskqueue."))
                    for need in dict.fromkeys(needs[address.lstrip("/")].get(method.upper(), ()))
                ),
                _told(operation),
            )
            for address, operations in document["paths"].items()
            for method, operation in operations.items()
            if tag in operation["tags"]
        ]
        heads = ["method", "address", "permissions", "what it does"]
        parts += [f"## {tag.capitalize()}", about, table(heads, rows)]
    return "\n\n".join(parts)


def _told(operation: dict[str, Any]) -> str:
    return str(operation.get("description") or operation["summary"])
