"""Limits, collected events, alert rules with what they found, and endpoints of webhooks."""

from __future__ import annotations

from datetime import datetime
from uuid import uuid4

from taskqueue import alerts, control, webhooks
from taskqueue.engine.making_specs import spec_of
from taskqueue.models import Collected, Incident, Lease, Limit, Limiter, Slot
from taskqueue.monitoring.alerts.judging import judge
from taskqueue.monitoring.alerts.situation import AlertSituation
from tests.browser.lively import shop
from tests.browser.lively.moments import ago


def fill_limits() -> None:
    """One for all, one by key that people have lowered, one of a host, one of a queue."""
    crm = Limit.objects.create(name="crm", concurrency=4, rate=600, seconds=60)
    feeds = Limit.objects.create(name="feeds:supplier", concurrency=3, concurrency_override=1)
    Limit.objects.create(name="transcode", per="host", concurrency=2)
    running = Lease.objects.filter(status="running")
    for limit, key, name in (
        (crm, "", "shop.accounts.sync_crm"),
        (feeds, "nordwind", "shop.imports.fetch_feed"),
        (feeds, "acme", ""),
    ):
        limiter = Limiter.objects.create(id=uuid4(), limit=limit, key=key)
        for lease in running.filter(task__name=name)[: limit.concurrency]:
            Slot.objects.create(limiter=limiter, lease=lease)
    control.limit_queue("images", concurrency=20, rate="100/m", by="lee")
    control.pause_definition(
        "shop.mail.send_newsletter", by="lee", reason="the issue has a wrong date"
    )


def fill_groups(now: datetime) -> None:
    """Events of two groups, which are due within hours."""
    for group, count in (("customer:1204", 14), ("customer:88", 3)):
        for number in range(count):
            Collected.objects.create(
                name="shop.mail.send_digest", group=group, event=f'{{"order": {number}}}', size=12,
                collected_at=ago(now, minutes=5 + number), max_size=100, max_bytes=10_000,
                grace=7200, max_delay=14_400, spec=spec_of(shop.send_receipt).as_json(),
            )  # fmt: skip


def fill_alerts(now: datetime) -> None:
    """A rule that holds for a queue, with an alert that is over, and one that is silenced."""
    rule = alerts.create(
        "queues without workers",
        kind="queue_unserved",
        scope="queue",
        pattern="*",
        mail=["ops@shop.example"],
        by="ann",
    )
    alerts.create("failures of the shop", kind="failure", scope="name", pattern="shop.*",
                  mail=["ops@shop.example"])  # fmt: skip
    alerts.silence("failures of the shop", by="lee", reason="the payment provider is down")
    for found in judge(rule, AlertSituation()):
        told = {"rule": rule, "subject": found.subject, "summary": found.summary,
                "words": found.words, "remedy": found.remedy, "value": found.value}  # fmt: skip
        past, raised = ago(now, hours=5), ago(now, minutes=12)
        Incident.objects.create(
            status="ended", is_settled=True, began_at=past, raised_at=past,
            ended_at=ago(now, hours=4), acknowledged_at=past, acknowledged_by="ann",
            acknowledge_reason="the encoder restarts", **told,
        )  # fmt: skip
        Incident.objects.create(status="firing", began_at=raised, raised_at=raised,
                                notified_at=raised, **told)  # fmt: skip


def fill_webhooks() -> None:
    """An endpoint with a delivery that waits, and one that somebody disabled."""
    endpoint = webhooks.create("https://hooks.shop.example/in", by="lee").endpoint
    webhooks.test(endpoint.pk)
    other = webhooks.create("https://hooks.shop.example/old", description="the old shop").endpoint
    webhooks.disable(other.pk, by="ann")
