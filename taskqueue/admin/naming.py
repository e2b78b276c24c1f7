"""What models, their fields and points in time are called, in people's language.

Put in place here and not in the models: there they would stand in the migrations.
"""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.utils.translation import gettext_lazy as _

MODELS: dict[str, tuple[Any, Any]] = {
    "audit": (_("audit entry"), _("audit entries")),
    "worker": (_("worker"), _("workers")),
    "task": (_("task"), _("tasks")),
    "lease": (_("lease"), _("leases")),
    "tasklog": (_("log line"), _("log lines")),
    "schedule": (_("schedule"), _("schedules")),
    "occurrence": (_("occurrence"), _("occurrences")),
    "operation": (_("operation"), _("operations")),
    "rollup": (_("rollup"), _("rollups")),
    "dashboard": (_("dashboard"), _("dashboard")),
    "failure": (_("failures"), _("failures")),
    "performance": (_("performance"), _("performance")),
    "queue": (_("queue"), _("queues")),
}
"""By the name of the model: one, and many."""

FIELDS: dict[str, Any] = {
    "actor": _("actor"), "attempt": _("attempt"),
    "attempts before retry": _("attempts before retry"), "before": _("before"),
    "broadcast": _("broadcast"), "concurrency": _("concurrency"), "count": _("count"),
    "crash delay": _("crash delay"), "crashes": _("crashes"), "detail": _("detail"),
    "error": _("error"), "error class": _("error class"), "error message": _("error message"),
    "failures": _("failures"), "failures in row": _("failures in row"),
    "holds unique key": _("holds unique key"), "host": _("host"), "id": _("id"),
    "is enabled": _("is enabled"), "lease duration": _("lease duration"),
    "lease seconds": _("lease seconds"), "level": _("level"), "logger": _("logger"),
    "max attempts": _("max attempts"), "max crashes": _("max crashes"), "message": _("message"),
    "metadata": _("metadata"), "missed": _("missed"), "missed window": _("missed window"),
    "name": _("name"), "open slots": _("open slots"), "options": _("options"),
    "overlap": _("overlap"), "pause after failures": _("pause after failures"),
    "pause reason": _("pause reason"), "paused by": _("paused by"), "pid": _("pid"),
    "ping interval": _("ping interval"), "pinned to": _("pinned to"), "pool": _("pool"),
    "priority": _("priority"), "progress": _("progress"), "progress message": _("progress message"),
    "query": _("query"), "queue name": _("queue name"), "queues": _("queues"),
    "reason": _("reason"), "request": _("request"), "request reason": _("request reason"),
    "requested by": _("requested by"), "retention": _("retention"),
    "return value": _("return value"), "rule": _("rule"), "running leases": _("running leases"),
    "schedule": _("schedule"), "source": _("source"), "status": _("status"),
    "stop reason": _("stop reason"), "stop requested by": _("stop requested by"),
    "subject": _("subject"), "successes": _("successes"), "task": _("task"),
    "task name": _("task name"), "task status": _("task status"), "traceback": _("traceback"),
    "trouble": _("trouble"), "unique for": _("unique for"), "unique key": _("unique key"),
    "unique scope": _("unique scope"),
    "verb": _("verb"), "versions": _("versions"), "worker": _("worker"),
    "worker names": _("worker names"), "workers": _("workers"),
}  # fmt: skip
"""By the words that Django makes of the field's name."""

MOMENTS: dict[str, Any] = {
    "at": _("at"), "changed": _("changed"), "claimed": _("claimed"), "created": _("created"),
    "deadline": _("deadline"), "declared": _("declared"), "enqueued": _("enqueued"),
    "expires": _("expires"), "finished": _("finished"), "last finished": _("last finished"),
    "last nominal": _("last nominal"), "logged": _("logged"), "next": _("next"),
    "nominal": _("nominal"), "nominal until": _("nominal until"), "parked": _("parked"),
    "paused": _("paused"), "paused until": _("paused until"), "progressed": _("progressed"),
    "prune after": _("prune after"), "ready": _("ready"), "removed": _("removed"),
    "request seen": _("request seen"), "requested": _("requested"), "retry": _("retry"),
    "run after": _("run after"), "seen": _("seen"), "served until": _("served until"),
    "started": _("started"), "stop requested": _("stop requested"), "stop seen": _("stop seen"),
    "stopped": _("stopped"), "unique until": _("unique until"), "wedged": _("wedged"),
}  # fmt: skip
"""By the name of the column without its `_at`."""


def moment_word(column: str) -> Any:
    """What the column of a point in time is called."""
    word = column.removesuffix("_at").replace("_", " ")
    return MOMENTS.get(word, word)


def name_models() -> None:
    """Let the admin call the models that have pages, and their fields, by these words.

    Migrations, and the names of permissions, keep what the models themselves say.
    """
    for model in apps.get_app_config("taskqueue").get_models():
        options: Any = model._meta
        if options.model_name not in MODELS:
            continue
        options.verbose_name, options.verbose_name_plural = MODELS[options.model_name]
        for field in options.local_fields:
            field.verbose_name = FIELDS.get(str(field.verbose_name), field.verbose_name)
