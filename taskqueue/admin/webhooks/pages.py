"""The pages of endpoints, for users who may manage webhooks, because a URL may contain a token."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.utils.text import capfirst
from django.utils.translation import gettext as _

from taskqueue import webhooks
from taskqueue.access.permissions import MANAGE_WEBHOOKS
from taskqueue.admin.acts import noted, reason_of, tell_errors
from taskqueue.admin.confirming import Question, confirm
from taskqueue.admin.once import ActsOnce, PressedBefore, pressed_once
from taskqueue.admin.refusals import add_refusal, refused
from taskqueue.admin.reports import RowReportAdmin, report
from taskqueue.admin.tables import LISTING, Column, Table, part
from taskqueue.admin.webhooks.forms import EndpointForm, ReplayForm, endpoint_title
from taskqueue.display import breakable, moment
from taskqueue.engine.control.verb import Verb
from taskqueue.engine.webhooks.verbs import WEBHOOK_VERBS
from taskqueue.exceptions import ChangedMeanwhile, RequestedBefore, TaskQueueError
from taskqueue.models import Endpoint
from taskqueue.models.webhook import DeliveryStatus
from taskqueue.monitoring.read_models.webhook import (
    MOST_ENDPOINTS,
    delivery_rows,
    endpoint_rows,
    shown_deliveries,
    shown_endpoints,
)
from taskqueue.monitoring.reading import now
from taskqueue.reason_words import reason_words

# The most deliveries on a page.
PAGE = 50
# For this long, pressing a button twice shows the secret that the first press created.
SHOWN_AGAIN = timedelta(minutes=1)
BUTTONS = ("test", "enable", "disable")


class EndpointAdmin(ActsOnce, RowReportAdmin):
    """An endpoint has a page with its deliveries."""

    page_template = "admin/taskqueue/endpoint/page.html"
    secret_template = "admin/taskqueue/endpoint/secret.html"  # noqa: S105  (a template)
    edit_template = "admin/taskqueue/endpoint/edit_form.html"
    once = frozenset({"test", "replay", "redeliver"})
    routes = (
        ("<int:object_id>/act/", "act"),
        ("<int:object_id>/edit/", "edit"),
        ("<int:object_id>/redeliver/", "redeliver"),
    )

    class Media:
        css = {"all": ["taskqueue/charts.css", "taskqueue/pages.css"]}

    needed_to_view = (MANAGE_WEBHOOKS,)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.has_perm(MANAGE_WEBHOOKS))

    def shown(self, request: HttpRequest) -> HttpResponse:
        """Show all endpoints."""
        rows = list(endpoint_rows()[:MOST_ENDPOINTS])
        table = Table(
            key="taskqueue-title",
            table_id="taskqueue-endpoints",
            title=_("Endpoints"),
            tools=[(_("Create endpoint"), self.links.url("endpoint_add"))],
            columns=[
                Column(
                    title=_("Endpoint"),
                    show=lambda row: self.links.to_row(Endpoint, row.id, endpoint_title(row)),
                ),
                Column(title=capfirst(_("id")), show=lambda row: row.id, is_number=True),
                Column(title=_("URL"), show=lambda row: breakable(row.url)),
                Column(
                    title=_("State"),
                    show=part("admin/taskqueue/endpoint/badge.html", request, "endpoint"),
                ),
                Column(
                    title=_("Kinds of events"),
                    show=lambda row: ", ".join(row.kinds) or _("all"),
                ),
                Column(title=_("Waiting"), show=lambda row: row.waiting_count, is_number=True),
                Column(
                    title=_("Last success"),
                    show=lambda row: moment(row.succeeded_at) if row.succeeded_at else "-",
                ),
            ],
            rows=shown_endpoints(rows),
            empty=_("No endpoints yet. Create one to have events sent to another program."),
        )
        return report(self, request, LISTING, _("Webhooks"), tables=[table])

    def shown_row(self, request: HttpRequest, row: Any) -> HttpResponse:
        """Show the page of an endpoint, with a page of its deliveries."""
        (endpoint,) = shown_endpoints([row])
        rows = delivery_rows(row).order_by("-id")
        status = request.GET.get("status", "")
        if status in list(DeliveryStatus):
            rows = rows.filter(status=status)
        before = _uuid(request.GET.get("before", ""))
        if before is not None:
            rows = rows.filter(id__lt=before)
        found = shown_deliveries(rows[: PAGE + 1])
        return report(
            self, request, self.page_template, endpoint_title(row),
            row=row,
            endpoint=endpoint,
            deliveries=[(each, reason_words(each.error)) for each in found[:PAGE]],
            older=found[PAGE - 1].id if len(found) > PAGE else None,
            status=status,
            statuses=[each.value for each in DeliveryStatus],
            verbs=WEBHOOK_VERBS,
        )  # fmt: skip

    def act_view(self, request: HttpRequest, object_id: int) -> HttpResponse:
        """Handle a button of the page."""
        row = self._row(request, object_id)
        if isinstance(row, HttpResponse):
            return row
        name = request.POST.get("verb", "")
        verb = WEBHOOK_VERBS.get(name)
        if verb is None or name not in (*BUTTONS, "rotate", "replay", "delete"):
            refusal = _("There is nothing called “%(verb)s” to do.") % {"verb": name}
            self.message_user(request, refusal, messages.ERROR)
        elif name == "rotate":
            return self._rotate(request, verb, row)
        elif name == "delete":
            return self._delete(request, verb, row)
        elif name == "replay":
            self._replay(request, verb, row)
        else:
            self.act(request, verb, row)
        return self.links.redirect("endpoint_change", row.pk)

    def redeliver_view(self, request: HttpRequest, object_id: int) -> HttpResponse:
        """Handle the button of a delivery."""
        row = self._row(request, object_id)
        if isinstance(row, HttpResponse):
            return row
        delivery = _uuid(request.POST.get("delivery", ""))
        verb = WEBHOOK_VERBS["redeliver"]
        if delivery is None or not delivery_rows(row).filter(id=delivery).exists():
            self.message_user(request, _("This delivery no longer exists."), messages.ERROR)
        else:
            try:
                self.do(request, verb, delivery)
            except RequestedBefore:
                self.message_user(request, _("This was already done."), messages.WARNING)
            except TaskQueueError as error:
                self.message_user(request, refused(error), messages.ERROR)
            else:
                self.note(request, row, verb.told(str(delivery)))
                self.message_user(request, verb.told(str(delivery)), messages.SUCCESS)
        return self.links.redirect("endpoint_change", row.pk)

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        self.check_look(request)
        return self._edit(request, None)

    def edit_view(self, request: HttpRequest, object_id: int) -> HttpResponse:
        """Show or handle the form of an endpoint."""
        self.check_look(request)
        row = self.row(str(object_id))
        return self._missing(request) if row is None else self._edit(request, row)

    def note(self, request: HttpRequest, row: Any, done: str) -> None:
        """Record it in the admin's own history, without the URL."""
        self.log_change(request, row, noted(done, reason_of(request)))

    def _row(self, request: HttpRequest, object_id: int) -> Any:
        """Return the posted row, or the response if there is none."""
        self.check_look(request)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        row = self.row(str(object_id))
        return self._missing(request) if row is None else row

    def _rotate(self, request: HttpRequest, verb: Verb, row: Endpoint) -> HttpResponse:
        try:
            with pressed_once(request) as press:
                made = verb.act_by(request.user, row.pk, reason=reason_of(request))
                press.made = _state(made.endpoint)
        except PressedBefore as error:
            return self._secret_again(request, error.made)
        except TaskQueueError as error:
            self.message_user(request, refused(error), messages.ERROR)
            return self.links.redirect("endpoint_change", row.pk)
        self.note(request, row, verb.told(row.name))
        return self._secret(request, made)

    def _delete(self, request: HttpRequest, verb: Verb, row: Endpoint) -> HttpResponse:
        if not request.POST.get("confirmed"):
            question = Question(
                title=_("Delete endpoint %(id)s?") % {"id": row.pk},
                about=[breakable(row.url), verb.effect],
                url=self.links.url("endpoint_act", row.pk),
                hidden=[("verb", "delete"), ("confirmed", "1")],
                button=str(verb.label),
                back=self.links.url("endpoint_change", row.pk),
            )
            return confirm(self, request, question)
        self.act(request, verb, row)
        return self.links.redirect("endpoint_changelist")

    def _replay(self, request: HttpRequest, verb: Verb, row: Endpoint) -> None:
        form = ReplayForm(request.POST)
        if form.is_valid():
            since = now() - timedelta(hours=form.cleaned_data["hours"])
            self.act(request, verb, row, since=since)
        tell_errors(self, request, form)

    def _edit(self, request: HttpRequest, row: Endpoint | None) -> HttpResponse:
        posted = request.POST if request.method == "POST" else None
        form = EndpointForm(posted, endpoint=row, viewer=request.user)
        if posted is not None and form.is_valid():
            answer = self._save(request, form)
            if answer is not None:
                return answer
        return self._form_page(request, form)

    def _save(self, request: HttpRequest, form: EndpointForm) -> HttpResponse | None:
        """Return the response after the form was saved; None if it was refused."""
        given = {**form.changes(), "by": request.user, "reason": form.cleaned_data["reason"]}
        row = form.endpoint
        try:
            if row is None:
                with pressed_once(request) as press:
                    made = webhooks.create(**given)
                    press.made = _state(made.endpoint)
                self.note(request, made.endpoint, _("Created."))
                return self._secret(request, made)
            webhooks.edit(row.pk, seen=form.is_current, **given)
        except PressedBefore as error:
            return self._secret_again(request, error.made)
        except ChangedMeanwhile:
            text = _(
                "Somebody else has changed this endpoint since you opened the form, so nothing was "
                "saved."
            )
            form.add_error(None, text)
        except TaskQueueError as error:
            add_refusal(form, error)
        else:
            done = WEBHOOK_VERBS["edit"].told(row.name)
            self.note(request, row, done)
            self.message_user(request, done, messages.SUCCESS)
            return self.links.redirect("endpoint_change", row.pk)
        return None

    def _form_page(self, request: HttpRequest, form: Any) -> HttpResponse:
        row: Endpoint | None = form.endpoint
        crumb = row and endpoint_title(row)
        title = _("Edit %(name)s") % {"name": crumb} if row else _("Create endpoint")
        return report(self, request, self.edit_template, title, form=form, row=row, crumb=crumb)

    def _secret(self, request: HttpRequest, made: webhooks.Secret) -> HttpResponse:
        """Show a secret once: not in a message, which is stored, nor on a page to revisit."""
        title = _("Secret of endpoint %(id)s") % {"id": made.endpoint.pk}
        response = report(
            self, request, self.secret_template, title, row=made.endpoint, secret=made.secret
        )
        response.headers["Cache-Control"] = "no-store"
        return response

    def _secret_again(self, request: HttpRequest, made: str) -> HttpResponse:
        """Answer the second press on a page: people see only the last one of two responses."""
        self.message_user(request, _("This was already done."), messages.WARNING)
        key = made.partition(" ")[0]
        row = self.row(key)
        # A later change may be a rotation by somebody else.
        if row is None or _state(row) != made or now() - row.changed_at > SHOWN_AGAIN:
            return self.links.redirect("endpoint_change", key)
        return self._secret(request, webhooks.Secret(row, row.secret))

    def _missing(self, request: HttpRequest) -> HttpResponse:
        self.message_user(request, _("This endpoint no longer exists."), messages.ERROR)
        return self.links.redirect("endpoint_changelist")


def _state(row: Endpoint) -> str:
    """Return what a press has created: the endpoint's key, and when it was changed."""
    return f"{row.pk} {row.changed_at.isoformat()}"


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
