"""The forms that create and edit an endpoint, and replay events to one."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django import forms
from django.utils.translation import gettext_lazy as _

from taskqueue.admin.acts import ReasonField
from taskqueue.core.webhook_targets import LONGEST_URL
from taskqueue.engine.webhooks.checking import reveals
from taskqueue.models import Endpoint
from taskqueue.models.webhook import LONGEST_DESCRIPTION, Include
from taskqueue.monitoring.read_models.base import Viewer

LONGEST_LIST = 4000
WIDE = {"class": "vTextField"}
SEPARATED = _("Separated by commas. Empty: all.")
GROUPS = (
    (_("Receiver"), ("url", "description")),
    (_("Events"), ("kinds", "names", "queues", "errors_too")),
)


class ListField(forms.CharField):
    """Patterns, separated by commas."""

    def __init__(self, label: Any, help_text: Any) -> None:
        super().__init__(
            label=label,
            help_text=help_text,
            required=False,
            max_length=LONGEST_LIST,
            widget=forms.TextInput(WIDE),
        )

    def to_python(self, value: Any) -> Any:
        """Return the patterns as a list."""
        text = super().to_python(value) or ""
        return [part.strip() for part in text.split(",") if part.strip()]

    def run_validators(self, value: Any) -> None:
        """Check the length of the text, not of the list."""
        super().run_validators(", ".join(value))

    def prepare_value(self, value: Any) -> Any:
        """Return the text of a list."""
        return value if isinstance(value, str) else ", ".join(value or ())


class EndpointForm(forms.Form):
    """The fields of an endpoint that people edit."""

    url = forms.CharField(
        label=_("URL"), max_length=LONGEST_URL, widget=forms.URLInput(WIDE),
        help_text=_("https, on port 443 or 8443, of a host that is public."),
    )  # fmt: skip
    description = forms.CharField(
        label=_("Description"), required=False, max_length=LONGEST_DESCRIPTION,
        widget=forms.TextInput(WIDE),
    )  # fmt: skip
    kinds = ListField(_("Kinds of events"), _("Such as task.failed or task.*. Empty: all."))
    names = ListField(_("Names of tasks and workflows"), _("Such as shop.*. Empty: all."))
    queues = ListField(_("Queues"), SEPARATED)
    errors_too = forms.BooleanField(
        label=_("Include errors"), required=False,
        help_text=_("The class and the message of the error, which may hold arguments."),
    )  # fmt: skip
    reason = ReasonField()
    # The version of the endpoint that the form showed.
    seen = forms.CharField(required=False, max_length=100, widget=forms.HiddenInput)

    def __init__(self, data: Any, *, endpoint: Endpoint | None, viewer: Viewer) -> None:
        super().__init__(data, initial=_initial(endpoint))
        self.endpoint, self.viewer = endpoint, viewer

    @property
    def groups(self) -> list[tuple[Any, list[forms.BoundField]]]:
        """The fields, grouped by subject."""
        return [(title, [self[name] for name in names]) for title, names in GROUPS]

    def clean(self) -> dict[str, Any]:
        """Refuse to send errors if the user may not see the arguments that these may contain."""
        cleaned: dict[str, Any] = super().clean() or {}
        is_grave = not self.errors and reveals(self.changes(), self.endpoint)
        if is_grave and not self.viewer.has_perm("taskqueue.view_arguments"):
            self.add_error("errors_too", _("You do not have permission to view arguments."))
        return cleaned

    def changes(self) -> dict[str, Any]:
        """Return the entered values as arguments of the verbs."""
        names = ("url", "description", "kinds", "names", "queues")
        entered = {name: self.cleaned_data[name] for name in names}
        include = [Include.ERROR.value] if self.cleaned_data["errors_too"] else []
        known = {} if self.endpoint is None else vars(self.endpoint)
        values = {**entered, "include": include}
        return {name: value for name, value in values.items() if known.get(name) != value}

    def is_current(self, row: Endpoint) -> bool:
        """Whether the row is as the form showed it."""
        return bool(version_of(row) == self.cleaned_data["seen"])


class ReplayForm(forms.Form):
    """How far back events are sent again."""

    hours = forms.FloatField(label=_("Hours"), min_value=0.01, max_value=24 * 366)


def version_of(row: Endpoint) -> str:
    """Return the version of an endpoint, which its forms store."""
    return row.changed_at.isoformat()


def _initial(endpoint: Endpoint | None) -> dict[str, Any]:
    if endpoint is None:
        return {}
    names = ("url", "description", "kinds", "names", "queues")
    return {
        **{name: getattr(endpoint, name) for name in names},
        "errors_too": Include.ERROR.value in endpoint.include,
        "seen": version_of(endpoint),
    }


def endpoint_title(row: Any) -> str:
    """Return its description, or else the host of its URL."""
    return row.description or urlsplit(row.url).hostname or str(row.id)
