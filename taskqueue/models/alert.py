"""Alert rules and their incidents: the subjects for which a rule's condition holds or held."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from taskqueue.core.alerts import AlertKind, AlertScope, IncidentStatus, RuleSource
from taskqueue.models.parts import VIEW_ONLY, DatabaseClock, choices, one_of

LONGEST_RULE_NAME = 255
LONGEST_SUBJECT = 255
LONGEST_TEXT = 1000
LONGEST_URL = 1000


class AlertRule(models.Model):
    """A condition to look for, and who is told of it.

    If a number is null, its kind's default applies.
    """

    id = models.BigAutoField(primary_key=True)
    name = models.CharField(max_length=LONGEST_RULE_NAME, unique=True)
    kind = models.CharField(max_length=20, choices=choices(AlertKind))
    scope = models.CharField(max_length=10, choices=choices(AlertScope), default=AlertScope.ALL)
    # Compared with the name of the subject, as by `fnmatch`; empty for any.
    pattern = models.CharField(max_length=LONGEST_SUBJECT, default="")
    threshold = models.FloatField(null=True)
    window_seconds = models.PositiveIntegerField(null=True)
    for_seconds = models.PositiveIntegerField(null=True)
    repeat_seconds = models.PositiveIntegerField(null=True)
    # `{"mail": [addresses], "endpoints": [names]}`.
    channels = models.JSONField(default=dict)
    # The URL that a heartbeat calls. It may contain a secret.
    url = models.CharField(max_length=LONGEST_URL, default="")
    is_enabled = models.BooleanField(default=True)

    silenced_until = models.DateTimeField(null=True)
    silenced_by = models.CharField(max_length=150, default="")
    silence_reason = models.CharField(max_length=1000, default="")

    source = models.CharField(max_length=10, choices=choices(RuleSource), default=RuleSource.ROW)
    # When code last declared it, and since when none does.
    declared_at = models.DateTimeField(null=True)
    removed_at = models.DateTimeField(null=True)
    created_by = models.CharField(max_length=150, default="")
    created_at = models.DateTimeField(db_default=DatabaseClock())
    changed_at = models.DateTimeField(db_default=DatabaseClock())

    # When it is next checked; null if it is not.
    next_at = models.DateTimeField(null=True)
    # When the worker whose judgement was last written took it up; older judgements are refused.
    evaluated_at = models.DateTimeField(null=True)
    # When its last messages were enqueued.
    told_at = models.DateTimeField(null=True)
    # Why it could not be judged; empty if it could.
    trouble = models.CharField(max_length=LONGEST_TEXT, default="")
    # Since when the calls of a heartbeat fail, and why the first of them did.
    failing_since = models.DateTimeField(null=True)
    failure = models.CharField(max_length=LONGEST_TEXT, default="")

    class Meta:
        default_permissions = VIEW_ONLY
        verbose_name = _("alert rule")
        verbose_name_plural = _("alert rules")
        permissions = [("manage_alerts", "Can create, change, silence and delete alert rules")]
        indexes = [
            models.Index(
                fields=["next_at"],
                name="taskqueue_alertrule_next",
                condition=Q(next_at__isnull=False),
            )
        ]
        constraints = [
            one_of("kind", AlertKind, name="taskqueue_alertrule_kind"),
            one_of("scope", AlertScope, name="taskqueue_alertrule_scope"),
        ]

    def __str__(self) -> str:
        return self.name


class Incident(models.Model):
    """A rule has at most one open incident for each subject."""

    id = models.BigAutoField(primary_key=True)
    rule = models.ForeignKey(AlertRule, models.CASCADE, related_name="incidents", db_index=False)
    subject = models.CharField(max_length=LONGEST_SUBJECT)
    status = models.CharField(max_length=10, choices=choices(IncidentStatus))
    # The last seen condition, and its remedy, in English.
    summary = models.CharField(max_length=LONGEST_TEXT, default="")
    # The template of `summary`, and the values of its gaps, for readers of other languages.
    words = models.JSONField(default=dict)
    remedy = models.CharField(max_length=LONGEST_TEXT, default="")
    value = models.FloatField(null=True)
    # For rules that count cases: the most that one check found within the rule's window, and when
    # the latest came.
    count = models.PositiveIntegerField(default=1)
    latest_at = models.DateTimeField(null=True)
    # A task or workflow as an example.
    example = models.CharField(max_length=36, default="")

    began_at = models.DateTimeField()
    raised_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    # Consecutive checks in which the condition did not hold.
    good_looks = models.PositiveSmallIntegerField(default=0)
    # When people were last told of it, and up to which case.
    notified_at = models.DateTimeField(null=True)
    told_latest_at = models.DateTimeField(null=True)
    # The last of its events that was written: `raised`, `cleared`, or none yet.
    announced = models.CharField(max_length=10, default="")
    # Whether it has ended and people need not be told anything more.
    is_settled = models.BooleanField(default=False)

    acknowledged_at = models.DateTimeField(null=True)
    acknowledged_by = models.CharField(max_length=150, default="")
    acknowledge_reason = models.CharField(max_length=1000, default="")

    class Meta:
        default_permissions = VIEW_ONLY
        verbose_name = _("alert")
        verbose_name_plural = _("alerts")
        indexes = [
            models.Index(
                fields=["rule"],
                name="taskqueue_incident_unsettled",
                condition=Q(is_settled=False),
            ),
            models.Index(fields=["rule", "id"], name="taskqueue_incident_rule"),
            models.Index(
                fields=["ended_at"],
                name="taskqueue_incident_ended",
                condition=Q(ended_at__isnull=False),
            ),
        ]
        constraints = [
            # Even without the rule's lock, an incident could not be raised twice.
            models.UniqueConstraint(
                fields=["rule", "subject"],
                name="taskqueue_incident_open",
                condition=Q(ended_at__isnull=True),
            ),
            one_of("status", IncidentStatus, name="taskqueue_incident_status"),
        ]

    def __str__(self) -> str:
        return f"{self.subject or '-'} ({self.rule_id})"

    @property
    def name(self) -> str:
        """Its key, as verbs name it."""
        return str(self.pk)
