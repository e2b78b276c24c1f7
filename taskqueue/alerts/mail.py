"""The mail about incidents: one digest for all recipients, from templates to override."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.core.mail.utils import DNS_NAME
from django.template.loader import render_to_string
from django.urls import NoReverseMatch, reverse
from django.utils import translation

from taskqueue.conf import get_settings
from taskqueue.core.alerts import MOST_RECIPIENTS
from taskqueue.engine.connections import database_alias
from taskqueue.models import AlertRule, Incident
from taskqueue.models.alert import LONGEST_TEXT
from taskqueue.monitoring.alerts.sentences import translated, translated_remedy

SUBJECT = "taskqueue/alerts/subject.txt"
TEXT, HTML = "taskqueue/alerts/mail.txt", "taskqueue/alerts/mail.html"
LONGEST_SUBJECT_LINE = 200


@dataclass(frozen=True)
class Line:
    """An incident, and its news: `raised`, `more`, `reminder`, `cleared` or `passed`."""

    incident: Incident
    what: str

    @property
    def summary(self) -> str:
        """The condition in the language of the mail, if it can be translated."""
        return translated(self.incident.words, self.incident.summary)[:LONGEST_TEXT]

    @property
    def remedy(self) -> str:
        """The remedy in the language of the mail, if it can be translated."""
        return translated_remedy(self.incident.words, self.incident.remedy)[:LONGEST_TEXT]

    @property
    def url(self) -> str:
        """The address of the alert in the admin; empty if the project does not set it."""
        site = get_settings().SITE_URL
        try:
            path = reverse("admin:taskqueue_incident_change", args=[self.incident.pk])
        except NoReverseMatch:
            return ""
        return f"{site}{path}" if site else ""


def send(rule: AlertRule, news: Sequence[Sequence[Any]], *, more: int = 0, message_id: str) -> int:
    """Send the news about a rule's incidents. Return the number of recipients.

    A repeated message has the same Message-ID. Raises sending errors.
    """
    found = Incident.objects.using(database_alias()).in_bulk([int(each[0]) for each in news])
    lines = [Line(found[int(id)], str(what)) for id, what in news if int(id) in found]
    with translation.override(settings.LANGUAGE_CODE):
        message = compose(rule, lines, more=more)
    message.extra_headers["Message-ID"] = f"<taskqueue.{message_id}@{DNS_NAME}>"
    message.send()
    return len(message.to)


def compose(rule: AlertRule, lines: Sequence[Line], *, more: int = 0) -> EmailMultiAlternatives:
    """Return the message; without lines, a test of the rule."""
    context = {
        "rule": rule,
        "lines": lines,
        "more": more,
        "count": len(lines) + more,
        "first": lines[0] if lines else None,
        # All the same, or a mixture.
        "what": lines[0].what if len({line.what for line in lines}) == 1 else "",
    }
    # Names chosen by users may contain line breaks, which a header must not.
    subject = " ".join(render_to_string(SUBJECT, context).split())[:LONGEST_SUBJECT_LINE]
    message = EmailMultiAlternatives(
        subject,
        render_to_string(TEXT, context).strip() + "\n",
        to=list(rule.channels.get("mail", ()))[:MOST_RECIPIENTS],
        headers={"Auto-Submitted": "auto-generated"},
    )
    message.attach_alternative(render_to_string(HTML, context), "text/html")
    return message
