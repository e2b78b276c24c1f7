"""The pages that export schedules as a document, and import one."""

from __future__ import annotations

import json
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from taskqueue import schedules
from taskqueue.admin.acts import ReasonField
from taskqueue.admin.refusals import refused
from taskqueue.admin.reports import LOOKING, report
from taskqueue.admin.schedules.editing import ScheduleEditing
from taskqueue.exceptions import TaskQueueError
from taskqueue.monitoring.read_models.schedule import visible_arguments_of

# Below Django's DATA_UPLOAD_MAX_MEMORY_SIZE, because a file's text is sent again for the import.
LARGEST = 2_000_000


class ImportForm(forms.Form):
    """A document, as a file or as text."""

    file = forms.FileField(label=gettext_lazy("File"), required=False)
    document = forms.CharField(
        label=gettext_lazy("Document"),
        required=False,
        max_length=LARGEST,
        widget=forms.Textarea({"rows": 12, "class": "vLargeTextField", "spellcheck": "false"}),
        help_text=gettext_lazy("JSON in the form of an export. Not read if you choose a file."),
    )
    reason = ReasonField()

    def clean(self) -> Any:
        """Read the document from the file, if there is one, and parse it."""
        given = super().clean() or {}
        text, file = given.get("document", ""), given.get("file")
        if file is not None:
            if file.size > LARGEST:
                raise ValidationError(_("This file is too large."))
            try:
                text = file.read().decode()
            except UnicodeDecodeError:
                raise ValidationError(_("This file is not UTF-8.")) from None
        try:
            given["parsed"] = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValidationError(
                _("This is not valid JSON: %(error)s") % {"error": error}
            ) from None
        given["text"] = text
        return given


class ScheduleDocuments(ScheduleEditing):
    """Export for users who may view schedules, import for users who may create them."""

    import_template = "admin/taskqueue/schedule/import.html"

    def export_view(self, request: HttpRequest) -> HttpResponse:
        """Return the schedules that were created at run time as a file."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method not in LOOKING:
            return HttpResponseNotAllowed(LOOKING)
        document = schedules.export_document(
            arguments_of=lambda row: visible_arguments_of(row, request.user)
        )
        text = json.dumps(document, indent=2, ensure_ascii=False)
        return HttpResponse(
            text + "\n",
            content_type="application/json",
            headers={"Content-Disposition": 'attachment; filename="schedules.json"'},
        )

    def import_view(self, request: HttpRequest) -> HttpResponse:
        """Ask for a document, show what it would change, and import it."""
        self.check_may_edit(request)
        form = ImportForm(request.POST or None, request.FILES or None)
        done: list[schedules.Imported] | None = None
        if request.method == "POST" and form.is_valid():
            is_only_shown = "import" not in request.POST
            done = self._import(request, form, dry_run=is_only_shown)
            if done is not None and not is_only_shown:
                changed = sum(each.action != "none" for each in done)
                told = ngettext(
                    "%(number)s schedule was created or changed.",
                    "%(number)s schedules were created or changed.",
                    changed,
                )
                self.message_user(request, told % {"number": changed}, messages.SUCCESS)
                return self.links.redirect("schedule_changelist")
            # A browser cannot send a file again, so from now on its text is in the form.
            text = {"document": form.cleaned_data["text"], "reason": form.cleaned_data["reason"]}
            errors = form.errors
            form = ImportForm(initial=text)
            form._errors = errors  # type: ignore[attr-defined]
        return report(
            self, request, self.import_template, _("Import schedules"), form=form, done=done
        )

    def _import(
        self, request: HttpRequest, form: ImportForm, *, dry_run: bool
    ) -> list[schedules.Imported] | None:
        """Return what was or would be done; None if it was refused, with the errors in the form."""
        try:
            return schedules.import_document(
                form.cleaned_data["parsed"],
                dry_run=dry_run,
                by=request.user,
                reason=form.cleaned_data["reason"],
            )
        except TaskQueueError as error:
            for line in refused(error).splitlines():
                form.add_error(None, line)
            return None
