"""Check the fields of an alert rule, and convert them to the columns of its row."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.alerts import KINDS, AlertKind, AlertScope, KindDetails
from taskqueue.core.naming import shown
from taskqueue.core.refusals import refusal as _
from taskqueue.core.refusals import why
from taskqueue.core.suggestions import did_you_mean
from taskqueue.core.webhook_targets import InvalidURL, target_of
from taskqueue.declarations.notify import addresses, texts
from taskqueue.declarations.payload import storable
from taskqueue.engine.webhooks.checking import allowed_targets
from taskqueue.exceptions import InvalidAlertRule, InvalidTask
from taskqueue.models import AlertRule, Endpoint
from taskqueue.models.alert import LONGEST_RULE_NAME, LONGEST_SUBJECT, LONGEST_URL

# The fields that may be given in addition to the name.
FIELDS = (
    "kind", "scope", "pattern", "threshold", "window", "wait", "repeat", "mail", "endpoints",
    "url", "enabled",
)  # fmt: skip
DAY = 86_400
# The bounds of durations, in seconds.
BOUNDS = {"window": (60, DAY), "wait": (0, DAY), "repeat": (300, 30 * DAY)}
COLUMNS = {"window": "window_seconds", "wait": "for_seconds", "repeat": "repeat_seconds"}
MOST_ENDPOINTS = 20
ENDPOINT = re.compile(r"[1-9][0-9]{0,17}")
# Problems that are cleared from a rule when it is changed.
WELL: dict[str, Any] = {"trouble": "", "failing_since": None, "failure": ""}
# What is edited, in the words of the audit; a URL may hold a secret.
# Whom a rule tells, and what reads the field.
READ = {"mail": addresses, "endpoints": texts}
SHOWN = ("kind", "scope", "pattern", "threshold", "window_seconds", "for_seconds",
         "repeat_seconds", "channels", "is_enabled")  # fmt: skip


def check_name(name: object) -> str:
    """Return a valid name of a rule. Raises `InvalidAlertRule`."""
    # Without characters that have a meaning in an address, or that are invisible.
    is_text = isinstance(name, str) and name.isprintable() and name == name.strip()
    if not is_text or "/" in str(name) or not 0 < len(str(name)) <= LONGEST_RULE_NAME:
        raise InvalidAlertRule(_(
            "The name of a rule is 1 to {longest_rule_name} printable characters without '/', and "
            "without spaces around them, not {shown}.",
            longest_rule_name=LONGEST_RULE_NAME, shown=shown(name),
        ), path=("name",))  # fmt: skip
    return str(name)


def columns_of(given: Mapping[str, Any], row: AlertRule | None = None) -> dict[str, Any]:
    """Return the columns for the given fields, for a new rule or an edited one.

    Fields that are not given stay as they are. Raises `InvalidAlertRule`.
    """
    for name in given:
        if name not in FIELDS:
            hint = did_you_mean(name, FIELDS)
            raise InvalidAlertRule(_("A rule has no field {name!r}.{hint}", name=name, hint=hint))
    row = AlertRule() if row is None else row
    kind = _word(AlertKind, "kind", given.get("kind", row.kind or None))
    details = KINDS[kind]
    scope = _word(AlertScope, "scope", given.get("scope", row.scope))
    if scope != AlertScope.ALL and scope not in details.scopes:
        known = ", ".join(["all", *details.scopes])
        raise InvalidAlertRule(_(
            "A rule of the kind {kind} has one of the scopes {known}.", kind=kind, known=known
        ), path=("scope",))  # fmt: skip
    pattern = _text("pattern", given.get("pattern", row.pattern), LONGEST_SUBJECT)
    if bool(pattern) != (scope != AlertScope.ALL):
        raise InvalidAlertRule(_(
            "A pattern needs a scope, and a scope a pattern, such as 'mail*'."
        ), path=("pattern",))  # fmt: skip
    threshold = given.get("threshold", row.threshold)
    if "threshold" not in given and details.threshold is None:
        threshold = None  # The old threshold belonged to another kind.
    channels = dict(row.channels)
    try:
        for field, read in READ.items():
            if field in given:
                channels[field] = list(read(field, given[field] or ()))
    except InvalidTask as error:
        raise InvalidAlertRule(why(error), path=(field,)) from None
    endpoints = channels.get("endpoints", ())
    if len(endpoints) > MOST_ENDPOINTS or not all(map(ENDPOINT.fullmatch, endpoints)):
        raise InvalidAlertRule(_(
            "endpoints are the ids of at most {most_endpoints} webhook endpoints, such as '3'.",
            most_endpoints=MOST_ENDPOINTS,
        ), path=("endpoints",))  # fmt: skip
    if kind == AlertKind.HEARTBEAT and any(channels.values()):
        raise InvalidAlertRule(_(
            "A heartbeat only calls its url: it has no mail and no endpoints."
        ), path=(next(name for name in READ if channels.get(name)),))  # fmt: skip
    enabled = given.get("enabled", row.is_enabled)
    if not isinstance(enabled, bool):
        raise InvalidAlertRule(_(
            "enabled must be True or False, not {shown}.", shown=shown(enabled)
        ), path=("enabled",))  # fmt: skip
    return {
        "kind": kind.value,
        "scope": scope.value,
        "pattern": pattern,
        "threshold": None if threshold is None else _threshold(threshold, details),
        **{COLUMNS[name]: _seconds(name, given, row) for name in COLUMNS},
        "channels": {name: found for name, found in channels.items() if found},
        "url": _url(kind, given.get("url", row.url)),
        "is_enabled": enabled,
    }


def require_endpoints(
    connection: BaseDatabaseWrapper,
    channels: Mapping[str, Any],
    *,
    known: Mapping[str, Any] | None = None,
) -> None:
    """Raise `InvalidAlertRule` if a newly named endpoint does not exist."""
    before = {} if known is None else known
    wanted = [id for id in channels.get("endpoints", ()) if id not in before.get("endpoints", ())]
    rows = Endpoint.objects.using(connection.alias).filter(id__in=wanted)
    found = set(map(str, rows.values_list("id", flat=True)))
    if missing := [id for id in wanted if id not in found]:
        raise InvalidAlertRule(_(
            "There is no webhook endpoint {missing}. manage.py taskqueue webhooks lists them.",
            missing=missing[0],
        ), path=("endpoints",))  # fmt: skip


def differing(row: AlertRule, columns: Mapping[str, Any]) -> list[str]:
    """Return the names of the columns in which the row differs."""
    return [name for name, value in columns.items() if getattr(row, name) != value]


def told(columns: Mapping[str, Any]) -> str:
    """Return the changes as the audit describes them."""
    found = [f"{name}={columns[name]}" for name in SHOWN if name in columns]
    return ", ".join([*found, *(["url"] if "url" in columns else [])])


def next_of(columns: Mapping[str, Any], now: datetime) -> datetime | None:
    """Return when a rule with these columns is next checked."""
    return now if columns["is_enabled"] else None


def _word(words: Any, name: str, value: object) -> Any:
    try:
        return words(value)
    except ValueError:
        known = [word.value for word in words]
        name_given = value if isinstance(value, str) else ""
        hint = did_you_mean(
            name_given, known, otherwise=_("They are {names}.", names=", ".join(known))
        )
        raise InvalidAlertRule(_(
            "There is no {name} {shown}.{hint}",
            name=name, shown=shown(value), hint=hint,
        ), path=(name,)) from None  # fmt: skip


def _text(name: str, value: object, limit: int) -> str:
    if not isinstance(value, str) or len(value) > limit or value != storable(value, limit=limit):
        raise InvalidAlertRule(_(
            "{name} must be text of up to {limit} characters, not {shown}.",
            name=name, limit=limit, shown=shown(value),
        ), path=(name,))  # fmt: skip
    return value


def _threshold(value: object, details: KindDetails) -> float:
    if details.threshold is None:
        raise InvalidAlertRule(_("A rule of this kind has no threshold."), path=("threshold",))
    if isinstance(value, timedelta):
        if details.unit != "seconds":
            told = _("The threshold of this kind is a number, not a duration.")
            raise InvalidAlertRule(told, path=("threshold",))
        value = value.total_seconds()
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not details.least <= value <= details.most:  # type: ignore[operator]
        raise InvalidAlertRule(_(
            "threshold must be a number from {least:,.10g} to {most:,.10g}, not {shown}.",
            least=details.least, most=details.most, shown=shown(value),
        ), path=("threshold",))  # fmt: skip
    return float(value)  # type: ignore[arg-type]


def _seconds(name: str, given: Mapping[str, Any], row: AlertRule) -> int | None:
    if name not in given:
        known: int | None = getattr(row, COLUMNS[name])
        return known
    value, (least, most) = given[name], BOUNDS[name]
    if value is None:
        return None
    seconds = value.total_seconds() if hasattr(value, "total_seconds") else value
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not is_number or not least <= seconds <= most:
        raise InvalidAlertRule(_(
            "{name} must be {least:,} to {most:,} seconds or a timedelta, not {shown}.",
            name=name, least=least, most=most, shown=shown(value),
        ), path=(name,))  # fmt: skip
    return round(float(seconds))


def _url(kind: AlertKind, value: object) -> str:
    if kind != AlertKind.HEARTBEAT:
        if value:
            raise InvalidAlertRule(_("Only a heartbeat has a url."), path=("url",))
        return ""
    text = _text("url", value, LONGEST_URL)
    try:
        parts = urlsplit(text)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        is_url = False
    if not is_url:
        told = _("A heartbeat needs a url, such as https://watcher.example/ping.")
        raise InvalidAlertRule(told, path=("url",))
    try:
        target_of(text, allowed_targets())
    except InvalidURL as error:
        raise InvalidAlertRule(_(
            "The url of a heartbeat cannot be called: {error}", error=why(error)
        ), path=("url",)) from None  # fmt: skip
    return text
