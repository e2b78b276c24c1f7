"""The placement of a call: its limits as data, and the partition that follows from them.

The data hold everything that a claim needs, so that an enqueue need not look anything up, and a
deleted partition can be made again from any of its tasks:

    {"limits": [{"name": "shop.export:account", "key": "7", "per": "key", "concurrency": 2}],
     "tenant": {"key": "7", "weight": 1.0}, "sequence": {"name": "…", "key": "7", "halts": true},
     "tags": ["gpu"], "cost": 3}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple
from uuid import UUID, uuid5

from taskqueue.declarations.limit_keys import key_of_call
from taskqueue.declarations.limits import (
    Concurrency,
    Limits,
    Rate,
    check_weight,
    check_whole,
)
from taskqueue.declarations.rates import rate_text
from taskqueue.declarations.signature import Signature
from taskqueue.exceptions import InvalidTask

# Of digests that name partitions and limiters.
NAMESPACE = UUID("5f1c8f4e-9a3b-4c0a-8a35-6b1f0d0a7c11")
# The lane of partitions without anything that not every worker has.
PLAIN_LANE = ""

Data = dict[str, Any]


class Placement(NamedTuple):
    """The partition of a task, as 32 hexadecimal digits, and its limits, as JSON text."""

    partition: str
    limits: str


def place(
    limits: Limits,
    signature: Signature,
    args: Any,
    kwargs: Mapping[str, Any],
    *,
    name: str,
    queue_name: str,
    stored: tuple[str, str],
) -> Placement | None:
    """Return the placement of a call; None without limits.

    `stored` are the arguments as JSON text. Raises `InvalidTask`, and what a callable raises.
    """

    def key_of(what: str, key: Any) -> str | None:
        made = key_of_call(
            what, key, signature, args, kwargs, stored=stored, sensitive=limits.sensitive
        )
        return None if made is None else made.text or ""

    data: Data = {}
    found: list[Data] = []
    own: list[Concurrency | Rate] = [*limits.concurrency, *limits.rate]
    for limit in own:
        key = key_of(f"{type(limit).__name__}(key=...)", limit.key)
        if key is not None:
            found.append({**declared(limit, name), "key": key})
    if found:
        data["limits"] = sorted(found, key=lambda each: (each["name"], each["key"]))
    if limits.fair is not None:
        tenant = key_of("Fair(key)", limits.fair.key)
        if tenant is not None:
            weight = limits.fair.weight
            made = weight(*args, **kwargs) if callable(weight) else weight
            data["tenant"] = {"key": tenant, "weight": check_weight(made)}
    if limits.sequence is not None:
        key = key_of("Sequence(key)", limits.sequence.key)
        if key is not None:
            data["sequence"] = {
                "name": limits.sequence.name or name,
                "key": key,
                "halts": limits.sequence.on_failure == "halt",
            }
    if limits.requires:
        data["tags"] = list(limits.requires)
    if not data:
        return None
    cost = limits.cost(*args, **kwargs) if callable(limits.cost) else limits.cost
    most = min((limit.parsed.number for limit in limits.rate), default=10**9)
    if cost != 1:
        data["cost"] = check_whole(f"The cost of {name}", cost, most=most)
    text = json.dumps(data, separators=(",", ":"))
    return Placement(partition_of(queue_name, data).hex, text)


def declared(limit: Concurrency | Rate, definition: str) -> Data:
    """Return a limit as it is declared, without a key."""
    name = limit.name or _name_of(limit, definition)
    if isinstance(limit, Concurrency):
        return {"name": name, "per": limit.per or "key", "concurrency": limit.limit}
    number, seconds = limit.parsed
    return {
        "name": name, "per": "key", "rate": number, "seconds": seconds, "smooth": limit.smooth,
    }  # fmt: skip


def declared_limits(limits: Limits | None, definition: str) -> list[Data]:
    """Return all limits of a definition that have a name, without keys."""
    if limits is None:
        return []
    own: list[Concurrency | Rate] = [*limits.concurrency, *limits.rate]
    return [declared(limit, definition) for limit in own]


def numbers_of(limit: Mapping[str, Any]) -> str:
    """Return the numbers of a declared limit in words."""
    if "rate" not in limit:
        per = "" if limit["per"] == "key" else f" per {limit['per']}"
        return f"concurrency {limit['concurrency']}{per}"
    smooth = ", evenly spaced" if limit["smooth"] else ""
    return f"rate {rate_text(limit['rate'], limit['seconds'])}{smooth}"


def _name_of(limit: Concurrency | Rate, definition: str) -> str:
    """Return the default name of a limit."""
    key = limit.key
    parts = [definition]
    if callable(key):
        parts.append(getattr(key, "__name__", "callable"))
    elif key is not None:
        parts += [key] if isinstance(key, str) else key
    if isinstance(limit, Rate):
        parts.append("rate")
    elif limit.per is not None:
        parts.append(limit.per)
    name = ":".join(parts)
    if len(name) > 255:
        raise InvalidTask(f"Name the limits of {definition}: {name!r} is too long for a name.")
    return name


def partition_of(queue_name: str, data: Mapping[str, Any] | None) -> UUID:
    """Return the id of a partition: a digest of its queue and of its tasks' common limits.

    Without data: of all ordinary tasks of a limited queue.
    """
    own = None
    if data is not None:
        own = [
            [[each["name"], each["key"]] for each in data.get("limits", ())],
            data.get("tenant", {}).get("key"),
            [data["sequence"]["name"], data["sequence"]["key"]] if "sequence" in data else None,
            data.get("tags"),
        ]
    return uuid5(NAMESPACE, json.dumps([queue_name, own]))


def limiter_of(name: str, key: str) -> UUID:
    """Return the id of a limiter: a digest of its limit and its key, host or worker."""
    return uuid5(NAMESPACE, json.dumps([name, key]))


def lane_of(data: Mapping[str, Any]) -> str:
    """Return the lane of a partition as text: the tags a worker needs, separately for tenants."""
    parts: Data = {}
    if tags := data.get("tags"):
        parts["tags"] = tags
    if per := [
        [each["name"], each["per"]] for each in data.get("limits", ()) if each["per"] != "key"
    ]:
        parts["per"] = per
    if "tenant" in data:
        parts["fair"] = True
    return json.dumps(parts, separators=(",", ":")) if parts else PLAIN_LANE


def is_ahead_allowed(data: Mapping[str, Any] | None) -> bool:
    """Return whether its tasks may be claimed before a slot is free for them.

    Not where a start counts, nor where the others of a sequence or a host wait for it.
    """
    if data is None:
        return True
    if "sequence" in data:
        return False
    return all("rate" not in each and each["per"] == "key" for each in data.get("limits", ()))
