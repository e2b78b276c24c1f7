"""Labels for columns of models, in the language of the page."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import cache
from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import display_for_field
from django.utils.translation import gettext_lazy
from django.utils.translation import gettext_noop as _

from taskqueue.display import EMPTY, moment

# The names of columns in words, for the translators.
WORDS = (
    _("actor"), _("at"), _("attempt"), _("attempts before retry"), _("before"), _("broadcast"),
    _("changed"), _("checkpointed"), _("claimed"), _("concurrency"), _("count"), _("crash delay"),
    _("crashes"), _("created"), _("deadline"), _("declared"), _("detail"), _("enqueued"),
    _("error"), _("error class"), _("error message"), _("expires"), _("failures"), _("finished"),
    _("holds unique key"), _("host"), _("id"), _("jitter"), _("last finished"), _("last nominal"),
    _("lease duration"), _("lease seconds"), _("level"), _("logged"), _("logger"),
    _("max attempts"), _("max crashes"), _("max runs"), _("message"), _("metadata"), _("missed"),
    _("missed window"), _("name"), _("next"), _("nominal"), _("nominal until"), _("open slots"),
    _("options"), _("overlap"), _("parked"), _("pause after failures"), _("pause reason"),
    _("paused"), _("paused by"), _("paused until"), _("pid"), _("ping interval"), _("pinned to"),
    _("pool"), _("priority"), _("progress"), _("progress message"), _("progressed"),
    _("prune after"), _("query"), _("queue name"), _("queues"), _("ready"), _("reason"),
    _("removed"), _("request"), _("request reason"), _("request seen"), _("requested"),
    _("requested by"), _("retention"), _("retry"), _("return value"), _("rule"), _("run after"),
    _("running leases"), _("schedule"), _("seen"), _("served until"), _("source"), _("started"),
    _("status"), _("stop reason"), _("stop requested"), _("stop requested by"), _("stop seen"),
    _("stopped"), _("subject"), _("successes"), _("task"), _("task name"), _("task status"),
    _("traceback"), _("trouble"), _("unique for"), _("unique key"), _("unique scope"),
    _("unique until"), _("verb"), _("versions"), _("wedged"), _("worker"), _("worker names"),
    _("workers"),
)  # fmt: skip
OTHER_WORDS = {
    "failures_in_row": _("failures in a row"),
    "is_enabled": _("enabled"),
    "run_count": _("runs so far"),
}


def label(name: str) -> Any:
    """Return the name of a column in words: that of `finished_at` is "finished"."""
    return gettext_lazy(OTHER_WORDS.get(name, name.removesuffix("_at").replace("_", " ")))


@cache
def column(name: str) -> Callable[[Any], Any]:
    """Show a column with its label; times are shown to the second, because tasks are short."""

    @admin.display(description=label(name))
    def show(row: Any) -> Any:
        value = getattr(row, name)
        if isinstance(value, datetime):
            return moment(value)
        return display_for_field(value, row._meta.get_field(name), EMPTY)

    show.__name__ = name
    return show


def cell(label: Any, render: Callable[[Any], Any], name: str = "") -> Callable[[Any, Any], Any]:
    """Make a column of an admin class that renders the named value of a row, or the row itself."""

    @admin.display(description=label)
    def show(model_admin: Any, row: Any) -> Any:
        value = getattr(row, name) if name else row
        return EMPTY if value in (None, "", {}) else render(value)

    return show
