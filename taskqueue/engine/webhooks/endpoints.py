"""The verbs on endpoints of webhooks: create, edit, enable, disable, rotate, delete."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import atomic

from taskqueue.core.naming import row_id, shown
from taskqueue.core.refusals import refusal as _
from taskqueue.core.webhook_signatures import new_secret
from taskqueue.engine.connections import database_alias, project_connection
from taskqueue.engine.control.audit import Act, Person, audit, person
from taskqueue.engine.control.locking import Seen, require_seen
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.sessions import take_write_lock
from taskqueue.engine.webhooks.checking import checked, origin_of
from taskqueue.engine.webhooks.subscribing import subscribe, unsubscribe
from taskqueue.exceptions import EndpointDoesNotExist, InvalidWebhook, TransitionRefused
from taskqueue.models import Delivery, Endpoint
from taskqueue.models.webhook import (
    DeliveryStatus,
    DisabledFor,
)

TEST = "webhook.test"
# How long the old secret still signs after a rotation.
ROTATION = timedelta(days=1)
MOST_ENDPOINTS = 1_000
# What an empty list means, for the audit.
NONE_GIVEN = {"kinds": "all", "names": "all", "queues": "all", "include": "nothing"}


class Secret(NamedTuple):
    """An endpoint with its newly made secret, which is not shown again."""

    endpoint: Endpoint
    secret: str

    def __repr__(self) -> str:
        # Without the secret, because logs and error reports show this.
        return f"Secret(endpoint={self.endpoint!r}, secret=[redacted])"


def create_endpoint(
    url: str,
    *,
    kinds: Iterable[str] = (),
    names: Iterable[str] = (),
    queues: Iterable[str] = (),
    include: Iterable[str] = (),
    description: str = "",
    by: object = "",
    reason: str = "",
) -> Secret:
    """Create an endpoint; it receives events from the second after this commits.

    `kinds` are patterns of kinds of events, `names` and `queues` are patterns for the tasks they
    are about; an empty collection means all. Raises `InvalidWebhook`.
    """
    given = {
        "url": url, "kinds": kinds, "names": names, "queues": queues, "include": include,
        "description": description,
    }  # fmt: skip
    values = checked(given)
    connection = project_connection()
    who = person(by, reason)
    secret = new_secret()
    with atomic(using=connection.alias):
        take_write_lock(connection)
        rows = Endpoint.objects.using(connection.alias)
        if rows.count() >= MOST_ENDPOINTS:
            raise InvalidWebhook(_(
                "There are {most_endpoints:,} endpoints, and no more may be.",
                most_endpoints=MOST_ENDPOINTS,
            ))  # fmt: skip
        row = rows.create(secret=secret, created_by=who.by, **values)
        row.refresh_from_db()
        subscribe(connection, row)
        given = {name: value for name, value in values.items() if value}
        audit(connection, "webhook", "create", [Act(row.name, detail=_words(given))], person=who)
    return Secret(row, secret)


def edit_endpoint(
    endpoint: int | str, *, by: object = "", reason: str = "", seen: Seen = None, **changes: Any
) -> Endpoint:
    """Change the given fields of an endpoint; the others are kept.

    Raises `EndpointDoesNotExist` and `InvalidWebhook`.
    """
    values = checked(changes)
    connection = project_connection()
    with atomic(using=connection.alias):
        row = locked_endpoint(connection, endpoint, seen)
        changed = {name: value for name, value in values.items() if getattr(row, name) != value}
        if changed:
            # Failures of the old address do not count for the new one.
            further = {"failing_since": None} if "url" in changed else {}
            _save(connection, row, **changed, **further)
            subscribe(connection, row)
            act = Act(row.name, detail=_words(changed))
            audit(connection, "webhook", "edit", [act], person=person(by, reason))
    return row


def enable_endpoint(
    endpoint: int | str, *, by: object = "", reason: str = "", seen: Seen = None
) -> Endpoint:
    """Let an endpoint receive events again from now on; `replay` sends earlier ones.

    Raises `EndpointDoesNotExist`, and `TransitionRefused` if it is enabled.
    """
    connection = project_connection()
    with atomic(using=connection.alias):
        row = locked_endpoint(connection, endpoint, seen)
        if row.is_enabled:
            raise TransitionRefused(_("Endpoint {endpoint} is enabled.", endpoint=row.pk))
        before = row.disabled_for
        _save(
            connection,
            row,
            is_enabled=True,
            disabled_for=DisabledFor.NOTHING.value,
            failing_since=None,
        )
        subscribe(connection, row)
        audit(connection, "webhook", "enable", [Act(row.name, before)], person=person(by, reason))
    return row


def disable_endpoint(
    endpoint: int | str, *, by: object = "", reason: str = "", seen: Seen = None
) -> Endpoint:
    """Disable an endpoint: it receives no more events, and waiting deliveries are cancelled.

    Raises `EndpointDoesNotExist`, and `TransitionRefused` if it is disabled.
    """
    connection = project_connection()
    with atomic(using=connection.alias):
        row = locked_endpoint(connection, endpoint, seen)
        require_enabled(row)
        disable(connection, row, DisabledFor.PERSON, person=person(by, reason))
    return row


def rotate_secret(
    endpoint: int | str, *, by: object = "", reason: str = "", seen: Seen = None
) -> Secret:
    """Give an endpoint a new secret; the old one still signs for a day.

    Raises `EndpointDoesNotExist`.
    """
    connection = project_connection()
    secret = new_secret()
    with atomic(using=connection.alias):
        row = locked_endpoint(connection, endpoint, seen)
        until = dialect_for(connection).now(connection) + ROTATION
        _save(
            connection, row, secret=secret, previous_secret=row.secret, previous_until=until
        )  # fmt: skip
        audit(connection, "webhook", "rotate", [Act(row.name)], person=person(by, reason))
    return Secret(row, secret)


def delete_endpoint(
    endpoint: int | str, *, by: object = "", reason: str = "", seen: Seen = None
) -> None:
    """Delete an endpoint with its deliveries. Raises `EndpointDoesNotExist`."""
    connection = project_connection()
    with atomic(using=connection.alias):
        row = locked_endpoint(connection, endpoint, seen)
        unsubscribe(connection, row)
        name, words = row.name, _words({"url": row.url})
        Delivery.objects.using(connection.alias).filter(endpoint_id=row.pk).delete()
        Endpoint.objects.using(connection.alias).filter(id=row.pk).delete()
        act = Act(name, detail=words)
        audit(connection, "webhook", "delete", [act], person=person(by, reason))


def disable(
    connection: BaseDatabaseWrapper, row: Endpoint, why: DisabledFor, *, person: Person
) -> None:
    """Disable a locked endpoint, and cancel the deliveries that wait to be sent to it.

    It stays subscribed: `replay` later sends the events of that time, if they are still kept.
    """
    _save(connection, row, is_enabled=False, disabled_for=why.value)
    waiting = Delivery.objects.using(connection.alias).filter(
        endpoint_id=row.pk, status=DeliveryStatus.WAITING
    )
    waiting.update(status=DeliveryStatus.CANCELLED)
    audit(connection, "webhook", "disable", [Act(row.name, detail=why.value)], person=person)


def locked_endpoint(
    connection: BaseDatabaseWrapper, endpoint: int | str, seen: Seen = None
) -> Endpoint:
    """Lock an endpoint, and require that it is as the caller saw it.

    Raises `EndpointDoesNotExist`.
    """
    take_write_lock(connection)
    rows = Endpoint.objects.using(connection.alias)
    row = rows.select_for_update().filter(id=row_id(endpoint)).first()
    if row is None:
        raise _missing(endpoint)
    require_seen(row, seen, _("Endpoint {endpoint}", endpoint=row.pk))
    return row


def get_endpoint(endpoint: int | str) -> Endpoint:
    """Return an endpoint. Raises `EndpointDoesNotExist`."""
    row = Endpoint.objects.using(database_alias()).filter(id=row_id(endpoint)).first()
    if row is None:
        raise _missing(endpoint)
    return row


def require_enabled(row: Endpoint) -> None:
    """Raise `TransitionRefused` if an endpoint is disabled."""
    if not row.is_enabled:
        raise TransitionRefused(_("Endpoint {endpoint} is disabled.", endpoint=row.pk))


def _save(connection: BaseDatabaseWrapper, row: Endpoint, **values: Any) -> None:
    values["changed_at"] = dialect_for(connection).now(connection)
    for name, value in values.items():
        setattr(row, name, value)
    row.save(using=connection.alias, update_fields=list(values))


def _words(values: dict[str, Any]) -> str:
    """Describe an endpoint for the audit: the host of its URL, and no text of its description."""
    shown = {name: value for name, value in values.items() if name != "description"}
    if "url" in shown:
        shown["url"] = origin_of(shown["url"])
    parts = [
        f"{name} {value if isinstance(value, str) else ','.join(value) or NONE_GIVEN[name]}"
        for name, value in shown.items()
    ]
    return "; ".join([*parts, *(["description"] if "description" in values else [])])


def _missing(endpoint: int | str) -> EndpointDoesNotExist:
    return EndpointDoesNotExist(_(
        "There is no endpoint {endpoint}. manage.py taskqueue webhooks list shows them.",
        endpoint=row_id(endpoint) or shown(endpoint),
    ))  # fmt: skip
