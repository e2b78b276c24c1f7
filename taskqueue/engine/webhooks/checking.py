"""Validation of endpoints: the URL, the patterns, and the permission to send errors."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from typing import Any

from taskqueue.conf import get_settings
from taskqueue.core.naming import shown
from taskqueue.core.refusals import refusal as _
from taskqueue.core.refusals import why
from taskqueue.core.webhook_targets import Allowed, InvalidURL, target_of
from taskqueue.engine.control.filters import is_storable
from taskqueue.engine.webhooks.subscribing import wanted_of
from taskqueue.exceptions import InvalidWebhook
from taskqueue.models import Endpoint
from taskqueue.models.webhook import LONGEST_DESCRIPTION, Include

MOST_PATTERNS = 100
LONGEST_PATTERN = 255
# The fields that `edit_endpoint` may change.
EDITABLE = ("url", "description", "kinds", "names", "queues", "include")


def allowed_targets() -> Allowed:
    """Return the hosts and networks of the setting `WEBHOOK_ALLOW`."""
    return Allowed.of(get_settings().WEBHOOK_ALLOW)


def secrets_at(row: Endpoint, now: datetime) -> list[str]:
    """Return the secrets that sign at that moment, the current one first."""
    previous = row.previous_until is not None and now < row.previous_until
    return [row.secret, row.previous_secret] if previous else [row.secret]


def origin_of(url: str) -> str:
    """Return the part of a URL that others may see: scheme, host and port."""
    with suppress(InvalidURL):
        return target_of(url, Allowed(hosts=(("*", None),))).origin
    return ""


def checked(given: dict[str, Any]) -> dict[str, Any]:
    """Return the given fields of an endpoint as columns. Raises `InvalidWebhook`."""
    values: dict[str, Any] = {}
    for name, value in given.items():
        if name == "url":
            try:
                target_of(value, allowed_targets())
            except InvalidURL as error:
                raise InvalidWebhook(why(error), path=(name,)) from None
            values[name] = value
        elif name == "description":
            if not is_storable(value) or len(value) > LONGEST_DESCRIPTION:
                raise InvalidWebhook(_(
                    "A description is text of up to {longest_description} characters.",
                    longest_description=LONGEST_DESCRIPTION,
                ), path=(name,))  # fmt: skip
            values[name] = value
        elif name in EDITABLE:
            values[name] = _texts(name, value)
        else:
            raise InvalidWebhook(_("An endpoint has no {name!r} that could be changed.", name=name))
    wanted_of(values)
    for word in values.get("include", ()):
        if word not in list(Include):
            raise InvalidWebhook(_(
                "include knows {names}, not {word!r}.", names=", ".join(Include), word=word
            ), path=("include",))  # fmt: skip
    return values


def reveals(changes: dict[str, Any], row: Endpoint | None = None) -> bool:
    """Return whether a change gives a receiver error messages that it did not get before.

    These may contain arguments, so this requires the permission to view arguments.
    """
    include = changes.get("include")
    if include is None and row is not None and changes.get("url", row.url) != row.url:
        include = row.include
    return bool(include) and (row is None or "url" in changes or include != row.include)


def _texts(name: str, given: Any) -> list[str]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidWebhook(_(
            "{name} must be a list of texts, not {shown}.", name=name, shown=shown(given)
        ), path=(name,))  # fmt: skip
    texts = list(given)
    for text in texts:
        if not is_storable(text) or not 0 < len(text) <= LONGEST_PATTERN:
            raise InvalidWebhook(_(
                "{name} must be texts of 1 to {longest_pattern} characters, not {shown}.",
                name=name, longest_pattern=LONGEST_PATTERN, shown=shown(text),
            ), path=(name,))  # fmt: skip
    texts = list(dict.fromkeys(texts))
    if len(texts) > MOST_PATTERNS:
        raise InvalidWebhook(_(
            "{name} has at most {most_patterns} texts, not {count:,}.",
            name=name, most_patterns=MOST_PATTERNS, count=len(texts),
        ), path=(name,))  # fmt: skip
    return texts
