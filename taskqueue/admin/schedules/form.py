"""The form of a schedule: its target, its rule, and its arguments and options."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from taskqueue import schedules
from taskqueue.admin.refusals import refused
from taskqueue.admin.schedules.call import ScheduleCall
from taskqueue.admin.schedules.fields import JsonField
from taskqueue.admin.schedules.initial import MORE_FIELDS, OWN_FIELDS, POLICIES, initial_values
from taskqueue.admin.schedules.policy_form import PolicyForm
from taskqueue.admin.schedules.rule_form import WIDE, RuleForm
from taskqueue.admin.tasks.declared import fixed_options, show_declared
from taskqueue.admin.tasks.option_fields import (
    PriorityField,
    given_options,
    grouped,
    option_fields,
)
from taskqueue.core.states import Missed
from taskqueue.declarations.declared_schedules import definition_of, encode_call
from taskqueue.declarations.definition import registry
from taskqueue.declarations.option_forms import option_to_json
from taskqueue.declarations.options import OPTIONS, check_options
from taskqueue.declarations.own_tasks import OF_ITSELF
from taskqueue.declarations.scheduled import (
    LONGEST_NAME,
    Scheduled,
    check_name,
    check_spread,
    jitter_of,
    window_of,
)
from taskqueue.declarations.workflows.scheduling import (
    Target,
    call_of,
    target_named,
    workflow_options,
)
from taskqueue.declarations.workflows.workflow import BaseWorkflow, workflows
from taskqueue.engine.schedules.editing import differing, target_of
from taskqueue.exceptions import InvalidSchedule, ScheduleDoesNotExist
from taskqueue.models import Schedule
from taskqueue.monitoring.read_models.base import Viewer

RULE = ("kind", "tz", "expression", "interval", "first", "last", "every", "days", "at", "start",
        "end")  # fmt: skip


class ScheduleForm(RuleForm, ScheduleCall, PolicyForm):
    """A form that makes the same checks as the verbs, to show each error at its field."""

    name = forms.CharField(
        label=_("Name"), max_length=LONGEST_NAME, strip=False, widget=forms.TextInput(WIDE),
        help_text=_("Unique in the project. It cannot be changed later."),
    )  # fmt: skip
    task = forms.ChoiceField(label=_("Task or workflow"))
    enabled = forms.BooleanField(label=_("Enabled"), required=False, initial=True)
    queue_name = forms.CharField(
        label=_("Queue"), required=False, help_text=_("Empty: as in the definition.")
    )
    priority = PriorityField(
        OPTIONS["priority"], label=_("Priority"), required=False,
        help_text=_("Empty: as in the definition."),
    )  # fmt: skip
    options = JsonField(
        dict, label=_("Further options"), example='{"backoff": "fixed(60)"}',
        help_text=_(
            'JSON, as for .using(...): {"max_attempts": 3, "backoff": "fixed(60)", '
            '"retry_for": ["ConnectionError"]}. Durations are text such as "5m", or seconds.'
        ),
    )  # fmt: skip

    reason = forms.CharField(
        label=_("Reason (kept in the audit)"), required=False, max_length=1000,
        widget=forms.TextInput(WIDE),
    )  # fmt: skip
    seen = forms.CharField(required=False, widget=forms.HiddenInput)

    class Media:
        js = ["taskqueue/schedule_form.js"]

    def __init__(
        self,
        data: Any = None,
        *,
        schedule: Schedule | None = None,
        viewer: Viewer,
        copied: Schedule | None = None,
        chosen: str = "",
    ) -> None:
        shown = schedule or copied
        super().__init__(data, initial=initial_values(shown, viewer) if shown else {})
        self.schedule = schedule
        more = {name: OPTIONS[name] for name in MORE_FIELDS}
        self.fields.update(option_fields(more, required=False))
        if chosen:
            self.initial.update(task=chosen, fields_for=chosen)
        name = self.initial.get("fields_for", "") if data is None else data.get("fields_for", "")
        self.add_arguments(chosen or name, shown)
        definition = registry.find(chosen or name)
        self.fixed = fixed_options(definition)
        if definition is not None:
            show_declared(self.fields, definition)
        task: Any = self.fields["task"]
        task.choices = _choices()
        del self.fields["seen" if schedule is None else "name"]

    @property
    def groups(self) -> list[tuple[Any, list[forms.BoundField]]]:
        """The fields before the options, grouped by subject."""
        own = [name for name in ("name", "task", "enabled") if name in self.fields]
        return [(_("Schedule"), self._bound(own)), (_("Rule"), self._bound(RULE))]

    @property
    def option_groups(self) -> list[tuple[Any, list[forms.BoundField]]]:
        """The options, grouped by subject."""
        named = [*grouped((*OWN_FIELDS, *MORE_FIELDS)), (_("Further options"), ["options"])]
        return [(title, self._bound(names)) for title, names in named]

    @property
    def option_errors(self) -> bool:
        """Whether an option has an error; otherwise the group is collapsed."""
        return any(field.errors for _title, fields in self.option_groups for field in fields)

    @property
    def policies(self) -> list[forms.BoundField]:
        """The fields of its policies."""
        return self._bound(POLICIES)

    def _bound(self, names: Iterable[str]) -> list[forms.BoundField]:
        return [self[name] for name in names]

    def clean_name(self) -> str:
        """Check that the name is valid and free."""
        name: str = self.cleaned_data["name"]
        try:
            check_name(name)
            schedules.get(name)
        except InvalidSchedule as error:
            raise ValidationError(refused(error)) from None
        except ScheduleDoesNotExist:
            return name
        raise ValidationError(gettext("A schedule with this name already exists."))

    def clean(self) -> dict[str, Any]:
        """Check the fields together, if each is valid."""
        given = self.cleaned_data
        self.clean_rule()
        self._check_window(given)
        if given.get("jitter") is not None:
            jitter = self.attempt("jitter", jitter_of, given["jitter"])
            if jitter is not None and "rule" in given:
                missed, overlap = given.get("missed", ""), given.get("overlap", "")
                wanted = Scheduled(given["rule"], jitter=jitter, missed=missed, overlap=overlap)
                self._check_spread(wanted, jitter)
        if {"task", "options", *self.call_names} <= given.keys():
            self._check_call(given)
        return given

    def _check_spread(self, wanted: Scheduled, jitter: timedelta) -> None:
        """Check the jitter against the rule, unless the schedule already has both."""
        policies = {"missed": wanted.missed, "overlap": wanted.overlap}
        fields = {"rule": wanted.rule.as_json(), "jitter": jitter, **policies}
        if self.schedule is None or differing(self.schedule, fields):
            self.attempt("jitter", check_spread, wanted, jitter)

    def _check_window(self, given: dict[str, Any]) -> None:
        if given.get("missed") != Missed.WINDOW:
            given["missed_window"] = None
            self.errors.pop("missed_window", None)
        elif given.get("missed_window") is not None:
            self.attempt("missed_window", window_of, given["missed_window"])
        elif "missed_window" not in self.errors:
            self.add_error("missed_window", gettext("Required for “window”."))

    def _check_call(self, given: dict[str, Any]) -> None:
        """Check arguments and options against the definition or workflow."""
        options = given["options"]
        for name in set(OWN_FIELDS) & options.keys():
            refusal = gettext("Use the separate field for %(name)s.") % {"name": name}
            self.add_error("options", refusal)
        more = given_options(given, MORE_FIELDS)
        for name in more.keys() & options.keys():
            twice = gettext("%(name)s has a field of its own.") % {"name": name}
            self.add_error("options", twice)
        for name, value in more.items():
            self.attempt(name, check_options, {name: value}, declared=False)
        options = {**options, **{name: option_to_json(more[name]) for name in more}}
        target = self.attempt("task", self._target, given["task"])
        if target is None:
            return
        for name in OWN_FIELDS:
            value = given.get(name)
            if value not in (None, ""):
                self.attempt(name, target.using, **{name: value})
                options = {**options, name: value}
        given["all_options"] = options
        if "rule" not in given or self.errors:
            return
        found = self.read_call(given, target)
        if found is None:
            return
        given["args"], given["kwargs"] = found
        at = "args" if "args" in self.fields else None
        scheduled = Scheduled(given["rule"], args=found[0], kwargs=found[1], options=options)
        if isinstance(target, BaseWorkflow):
            if self.attempt("options", _workflow, scheduled, target) is not None:
                self.attempt(at, call_of, scheduled, target)
        elif self.attempt("options", definition_of, scheduled, target) is not None:
            self.attempt(at, encode_call, scheduled, target)

    def _target(self, name: str) -> Target:
        """Return the target of the schedule; unless its name was changed, it stays the same."""
        schedule = self.schedule
        kept = target_of(schedule) if schedule and schedule.task_name == name else None
        return kept or target_named(name)

    def is_current(self, row: Schedule) -> bool:
        """Return whether the row is as the form showed it.

        Saving once more replaces it deliberately.
        """
        assert self.schedule is not None
        current = row.changed_at.isoformat()
        seen = self.cleaned_data["seen"] or self.schedule.changed_at.isoformat()
        data: Any = self.data.copy()  # type: ignore[attr-defined]  # (it is a request's POST)
        data["seen"] = current
        self.data = data
        return bool(seen == current)

    def changes(self) -> dict[str, Any]:
        """Return the arguments for the verbs."""
        given = self.cleaned_data
        names = ("task", "rule", "args", "kwargs", "enabled", *POLICIES)
        return {name: given[name] for name in names} | {"options": given["all_options"]}


def _choices() -> list[Any]:
    """Return the names of tasks and of workflows to choose from, without taskqueue's own tasks."""
    tasks, flows = (
        [(each.name, each.name) for each in found.all() if not each.name.startswith(OF_ITSELF)]
        for found in (registry, workflows)
    )
    groups = [(_("Tasks"), tasks), (_("Workflows"), flows)] if flows else tasks
    return [("", "---------"), *groups]


def _workflow(scheduled: Scheduled, workflow: BaseWorkflow) -> BaseWorkflow:
    """Check the options. Raises `InvalidTask`."""
    return workflow.using(**workflow_options(scheduled))
