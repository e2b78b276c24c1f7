"""The body of a webhook, which is short on purpose: a receiver fetches what it may see."""

from __future__ import annotations

from typing import Any

from django.urls import NoReverseMatch, reverse

from taskqueue.conf import get_settings
from taskqueue.declarations.definition import registry
from taskqueue.declarations.redaction import REDACTED
from taskqueue.engine.connections import database_alias
from taskqueue.models import Delivery, Endpoint, Lease
from taskqueue.models.webhook import Include

LONGEST_MESSAGE = 2000
# The address of an event's subject, by its noun, and the parameter of the address.
ADDRESSES = {"task": ("task", "task_id"), "workflow": ("workflow", "workflow_id")}


def body_of(delivery: Delivery, endpoint: Endpoint) -> dict[str, Any]:
    """Return the body as JSON, with the parts that the endpoint includes in addition."""
    stored = delivery.payload
    data = {**stored["data"], "url": _url(stored)}
    if Include.ERROR in endpoint.include and (error := _error(stored)):
        data["error"] = error
    return {**stored, "data": data}


def _error(stored: dict[str, Any]) -> dict[str, str] | None:
    """Return the class and the message of an attempt's error, if it had one.

    A message may contain arguments, so it is included only for definitions that are known here to
    have no sensitive ones.
    """
    data = stored["data"]
    if not stored["type"].startswith("task.") or data.get("attempt") is None:
        return None
    leases = Lease.objects.using(database_alias()).filter(
        task_id=data["id"], attempt=data["attempt"]
    )
    found = leases.values_list("error_class", "error_message").first()
    if found is None or not found[0]:
        return None
    definition = registry.find(data.get("name", ""))
    is_open = definition is not None and not definition.options.sensitive
    return {"class": found[0], "message": found[1][:LONGEST_MESSAGE] if is_open else REDACTED}


def _url(stored: dict[str, Any]) -> str | None:
    """Return the address in the REST API; None if the project does not offer it."""
    noun = stored["type"].partition(".")[0]
    if noun not in ADDRESSES or not stored["data"].get("id"):
        return None
    name, parameter = ADDRESSES[noun]
    try:
        path = reverse(f"taskqueue-api:{name}", kwargs={parameter: stored["data"]["id"]})
    except NoReverseMatch:
        return None
    return f"{get_settings().SITE_URL}{path}"
