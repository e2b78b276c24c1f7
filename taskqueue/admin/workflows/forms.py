"""The form of a verb on a workflow: its parameters, in addition to a reason."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from taskqueue.admin.acts import ReasonField
from taskqueue.core.workflow_states import StepStatus
from taskqueue.engine.control.filters import is_storable
from taskqueue.engine.workflows.workflow_verbs import WorkflowVerb
from taskqueue.models import Workflow
from taskqueue.monitoring.read_models.step import steps_of

# The most steps among which one can choose.
MOST_CHOICES = 1000


class JSONValue(forms.CharField):
    """Any JSON value."""

    def to_python(self, value: Any) -> Any:
        """Return the value. Raises ValidationError if it is not JSON."""
        text = super().to_python(value)
        try:
            return json.loads(text) if text else None
        except (ValueError, RecursionError) as error:
            raise forms.ValidationError(_("Enter valid JSON.")) from error


def verb_form(
    verb: WorkflowVerb, workflow: Workflow, data: Any = None, *, initial: Mapping[str, Any]
) -> forms.Form:
    """Return the form, with a field for each parameter of the verb; `initial` may choose a step."""
    form = forms.Form(data, auto_id="taskqueue-%s", initial=dict(initial))
    form.fields |= {
        name: FIELDS[name](workflow, str(initial.get(name, ""))) for name in verb.parameters
    }
    form.fields["reason"] = ReasonField()
    return form


def _steps(workflow: Workflow, named: str, *, failed: bool) -> list[tuple[str, str]]:
    """Return the first steps that may be chosen, and the one that is already named."""
    rows = steps_of(workflow.pk).filter(parent_step_id=None, compensates_id=None)
    if failed:
        rows = rows.filter(status=StepStatus.FAILED)
    names = list(rows.values_list("name", flat=True)[:MOST_CHOICES])
    if len(names) == MOST_CHOICES and named not in names and is_storable(named):
        names += rows.filter(name=named).values_list("name", flat=True)
    return [(name, name) for name in names]


FIELDS: dict[str, Any] = {
    "from_step": lambda workflow, named: forms.ChoiceField(
        label=_("From step"),
        required=False,
        choices=[("", _("What failed or was cancelled")), *_steps(workflow, named, failed=False)],
        help_text=_(
            "The chosen step and all steps that depend on it run again too, however they ended."
        ),
    ),
    "step": lambda workflow, named: forms.ChoiceField(
        label=_("Step"), choices=_steps(workflow, named, failed=True)
    ),
    "value": lambda workflow, named: JSONValue(
        label=_("Result (JSON)"),
        required=False,
        widget=forms.Textarea({"rows": 4, "class": "vLargeTextField"}),
        help_text=_("Empty stands for null."),
    ),
}
