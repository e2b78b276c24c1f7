"""Check whether webhooks reach their endpoints, and what `WEBHOOK_ALLOW` allows."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.translation import gettext_lazy

from taskqueue.conf import get_settings
from taskqueue.core.webhook_targets import Allowed
from taskqueue.engine.webhooks.checking import origin_of
from taskqueue.models.webhook import DisabledFor
from taskqueue.monitoring.doctor.finding import INFO, Check, Finding
from taskqueue.monitoring.doctor.words import gettext as _
from taskqueue.monitoring.read_models.webhook import ShownEndpoint, read_endpoints
from taskqueue.monitoring.reading import now

WEBHOOKS = Check("webhooks")
# How long an endpoint fails before it is worth a warning.
LONG = timedelta(hours=1)
# Networks with a shorter prefix contain more than a project's own hosts.
SHORTEST_PREFIX = {4: 8, 6: 16}
DISABLED = {
    DisabledFor.GONE.value: gettext_lazy("it answered 410"),
    DisabledFor.FAILING.value: gettext_lazy("no delivery had succeeded for five days"),
}


def look_at_webhooks(connection: BaseDatabaseWrapper) -> Iterator[Finding]:
    """Yield endpoints that were disabled or fail, and a setting that allows nearly everything."""
    moment = now()
    endpoints = read_endpoints()
    findings = [
        *(found for each in endpoints if (found := _disabled(each)) is not None),
        *(
            _failing(each)
            for each in endpoints
            if each.is_enabled and each.failing_since and each.failing_since < moment - LONG
        ),
        *_allowed(),
    ]
    number = sum(each.is_enabled for each in endpoints)
    yield from findings or [
        WEBHOOKS.ok(_("Enabled endpoints of webhooks: {number}. None fails.").format(number=number))
    ]


def _disabled(endpoint: ShownEndpoint) -> Finding | None:
    if endpoint.disabled_for not in DISABLED:
        return None
    return WEBHOOKS.warning(
        subject=str(endpoint.id),
        seen=_("The webhook endpoint {id} at {origin} was disabled: {cause}.").format(
            id=endpoint.id, origin=origin_of(endpoint.url), cause=DISABLED[endpoint.disabled_for]
        ),
        remedy=_("Fix it, then manage.py taskqueue webhooks enable {id}; or delete it.").format(
            id=endpoint.id
        ),
    )


def _failing(endpoint: ShownEndpoint) -> Finding:
    return WEBHOOKS.warning(
        subject=str(endpoint.id),
        seen=_(
            "No delivery to the webhook endpoint {id} at {origin} has succeeded since "
            "{since}. Deliveries that wait: {count}."
        ).format(
            id=endpoint.id,
            origin=origin_of(endpoint.url),
            since=endpoint.since,
            count=endpoint.waiting_count,
        ),
        remedy=_("manage.py taskqueue webhooks deliveries {id} tells what it answers.").format(
            id=endpoint.id
        ),
    )


def _allowed() -> Iterator[Finding]:
    allowed = Allowed.of(get_settings().WEBHOOK_ALLOW)
    wide = [
        str(network)
        for network in allowed.networks
        if network.prefixlen < SHORTEST_PREFIX[network.version]
    ]
    wide += [pattern for pattern, _ in allowed.hosts if not pattern.strip("*?.")]
    if wide:
        yield WEBHOOKS.finding(
            INFO,
            _(
                "TASKQUEUE['WEBHOOK_ALLOW'] lets webhooks be sent to nearly any inner host: "
                "{names}."
            ).format(names=", ".join(wide)),
            _("Name the hosts or the networks of the receivers alone."),
        )
