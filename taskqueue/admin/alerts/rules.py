"""Alert rules: the list, the page of a rule with its buttons, and the form for new rules."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from taskqueue.access.permissions import VIEW_ALERT_RULES, VIEW_ALERTS
from taskqueue.admin.acts import reason_of, tell_errors
from taskqueue.admin.alerts.form import RuleForm
from taskqueue.admin.alerts.words import KINDS, SCOPES
from taskqueue.admin.confirming import Question, confirm
from taskqueue.admin.denied import Denied
from taskqueue.admin.links import back
from taskqueue.admin.once import ActsOnce, PressedBefore, pressed_once
from taskqueue.admin.refusals import add_refusal
from taskqueue.admin.reports import RowReportAdmin, report
from taskqueue.admin.tables import LISTING, Column, Table, part
from taskqueue.core.alerts import KINDS as DETAILS
from taskqueue.core.alerts import AlertKind, RuleSource
from taskqueue.display import breakable
from taskqueue.engine.alerts.alert_verbs import ALERT_RULE_VERBS
from taskqueue.engine.control.verb import Verb
from taskqueue.exceptions import TaskQueueError
from taskqueue.models import AlertRule
from taskqueue.monitoring.read_models.alert import (
    alert_rows,
    rule_rows,
    shown_alerts,
    shown_rules,
)

MOST_RULES, MOST_ALERTS = 500, 50
LONGEST_SILENCE = 366 * 24 * 60
BUTTONS = {name: ALERT_RULE_VERBS[name] for name in ("silence", "unsilence", "test", "delete")}


class ActForm(forms.Form):
    """The fields that a button of a rule posts, besides the reason."""

    verb = forms.ChoiceField(
        label=gettext_lazy("Action"), choices=[(name, name) for name in BUTTONS]
    )
    minutes = forms.IntegerField(
        label=gettext_lazy("Minutes"), required=False, min_value=1, max_value=LONGEST_SILENCE
    )

    @property
    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the verb."""
        given = self.cleaned_data
        is_timed = given["verb"] == "silence" and given["minutes"] is not None
        return {"until": timedelta(minutes=given["minutes"])} if is_timed else {}


class AlertRuleAdmin(ActsOnce, RowReportAdmin):
    """A rule that code declares has a row once a worker has started."""

    page_template = "admin/taskqueue/alert/rule.html"
    form_template = "admin/taskqueue/alert/form.html"
    once = frozenset({"test"})
    routes = (
        ("new/", "new"),
        ("<int:object_id>/act/", "act"),
        ("<int:object_id>/edit/", "edit"),
    )

    class Media:
        css = {"all": ["taskqueue/charts.css", "taskqueue/pages.css", "taskqueue/operations.css"]}

    def shown(self, request: HttpRequest) -> HttpResponse:
        """Show all rules, or those whose names contain the search text."""
        text = request.GET.get("q", "").strip()
        rows = [row for row in rule_rows()[:MOST_RULES] if text in row.name]
        tools = []
        if request.user.has_perm(VIEW_ALERTS):
            tools.append((_("Alerts"), self.links.url("incident_changelist")))
        if _may_manage(request):
            tools.append((_("New alert rule"), self.links.url("alertrule_new")))
        keys = {row.name: row.pk for row in rows}
        table = Table(
            key="taskqueue-title",
            title=_("Rules matching “%(text)s”") % {"text": text} if text else _("All rules"),
            columns=[
                Column(
                    title=_("Rule"),
                    show=lambda rule: self.links.to_row(
                        AlertRule, keys[rule.name], breakable(rule.name)
                    ),
                ),
                Column(title=_("Condition"), show=lambda rule: KINDS[rule.kind]),
                Column(
                    title=_("Scope"),
                    show=lambda rule: format_html(
                        "{} {}", SCOPES[rule.scope], breakable(rule.pattern)
                    ),
                ),
                Column(
                    title=_("State"),
                    show=part("admin/taskqueue/alert/rule_state.html", request, "rule"),
                ),
                Column(title=_("Firing"), show=lambda rule: rule.firing, is_number=True),
            ],
            rows=shown_rules(rows, request.user),
            empty=_("No rule matches.") if text else _(
                "No rules yet. The setting ALERTS gives the default ones, and notify= of a "
                "definition one of its own."
            ),
        )  # fmt: skip
        return report(
            self, request, LISTING, _("Alert rules"),
            tables=[table], text=text, search_label=_("Name"), search_tools=tools,
        )  # fmt: skip

    def row(self, text: str) -> Any:
        """Return the rule with that key; None if there is none."""
        found = super().row(text)
        return found and rule_rows().filter(pk=found.pk).first()

    def shown_row(self, request: HttpRequest, row: Any) -> HttpResponse:
        """Show the page of a rule."""
        (rule,) = shown_rules([row], request.user)
        alerts = alert_rows().filter(rule_id=row.pk).order_by("-id")[:MOST_ALERTS]
        is_row = row.source == RuleSource.ROW
        return report(
            self, request, self.page_template, row.name,
            row=row,
            rule=rule,
            kind=KINDS[rule.kind],
            scope=SCOPES[rule.scope],
            unit=DETAILS[AlertKind(rule.kind)].unit,
            alerts=shown_alerts(alerts) if request.user.has_perm("taskqueue.view_incident") else [],
            may_manage=_may_manage(request),
            is_row=is_row,
            longest_silence=LONGEST_SILENCE,
        )  # fmt: skip

    def act_view(self, request: HttpRequest, object_id: int) -> HttpResponse:
        """Handle a button of the page."""
        _require(request)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        row = self.row(str(object_id))
        if row is None:
            return self._missing(request)
        form = ActForm(request.POST)
        if form.is_valid():
            verb = BUTTONS[form.cleaned_data["verb"]]
            if verb.is_grave and not request.POST.get("confirmed"):
                return confirm(self, request, self._about_deleting(verb, row))
            if self.act(request, verb, row, **form.arguments) and verb.name == "delete":
                return self.links.redirect("alertrule_changelist")
        tell_errors(self, request, form)
        return back(request, self.links.url("alertrule_change", row.pk))

    def _about_deleting(self, verb: Verb, row: Any) -> Question:
        return Question(
            title=_("Delete alert rule %(name)s?") % {"name": row.name},
            crumb=str(verb.label),
            subject=row.name,
            about=[_("The rule is deleted with its alerts. This cannot be undone.")],
            url=self.links.url("alertrule_act", row.pk),
            hidden=[("verb", verb.name), ("confirmed", "1")],
            button=str(verb.label),
            back=self.links.url("alertrule_change", row.pk),
        )

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Lead to the form of a new rule, from where the admin expects one."""
        _require(request)
        return self.links.redirect("alertrule_new")

    def new_view(self, request: HttpRequest) -> HttpResponse:
        """Show or handle the form for a new rule."""
        _require(request)
        form = RuleForm(request.POST or None, viewer=request.user)
        if request.method == "POST" and form.is_valid():
            create = ALERT_RULE_VERBS["create"].function
            assert create is not None
            name = form.cleaned_data["name"]
            try:
                with pressed_once(request) as press:
                    row = create(name, by=request.user, reason=reason_of(request), **form.given)
                    press.made = str(row.pk)
            except PressedBefore as error:
                self.message_user(request, _("This was already done."), messages.WARNING)
                return self.links.redirect("alertrule_change", error.made)
            except TaskQueueError as error:
                add_refusal(form, error)
            else:
                self.tell(request, ALERT_RULE_VERBS["create"], row)
                return self.links.redirect("alertrule_change", row.pk)
        return self._form(request, form, _("New alert rule"))

    def edit_view(self, request: HttpRequest, object_id: int) -> HttpResponse:
        """Show or handle the form for a rule that people have created."""
        _require(request)
        row = self.row(str(object_id))
        if row is None:
            return self._missing(request)
        form = RuleForm(request.POST or None, viewer=request.user, row=row)
        if request.method == "POST" and form.is_valid():
            verb, seen = ALERT_RULE_VERBS["edit"], form.cleaned_data["seen"]
            try:
                verb.act_by(
                    request.user, row.name, reason=reason_of(request), **form.given,
                    seen=lambda now: not seen or now.changed_at.isoformat() == seen,
                )  # fmt: skip
            except TaskQueueError as error:
                add_refusal(form, error)
            else:
                self.tell(request, verb, row)
                return self.links.redirect("alertrule_change", row.pk)
        return self._form(request, form, row.name, row=row)

    def _form(
        self, request: HttpRequest, form: RuleForm, title: str, **context: Any
    ) -> HttpResponse:
        return report(self, request, self.form_template, title, form=form, **context)

    def _missing(self, request: HttpRequest) -> HttpResponse:
        self.message_user(request, _("There is no such alert rule any more."), messages.ERROR)
        return back(request, self.links.url("alertrule_changelist"))


def _may_manage(request: HttpRequest) -> bool:
    return ALERT_RULE_VERBS["edit"].is_for(request.user)


def _require(request: HttpRequest) -> None:
    """Raise PermissionDenied for users who may not both view and manage rules."""
    if not (_may_manage(request) and request.user.has_perm(VIEW_ALERT_RULES)):
        raise Denied(VIEW_ALERT_RULES, *ALERT_RULE_VERBS["edit"].permissions)
