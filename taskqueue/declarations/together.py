"""Checks of options that exclude or need each other."""

from __future__ import annotations

from taskqueue.core.refusals import refusal as _
from taskqueue.declarations.admission import Admission
from taskqueue.declarations.limits import check_limits
from taskqueue.declarations.options import OPTIONS, Options
from taskqueue.exceptions import InvalidTask


def check_together(options: Options, *, name: str) -> None:
    """Raise `InvalidTask` if options that are valid on their own exclude each other."""
    ping, lease = options.ping_interval, options.lease_duration
    if ping is not None and lease is not None and ping * 3 > lease:
        raise InvalidTask(_(
            "{name}: ping_interval must be at most a third of lease_duration, or one late ping "
            "loses the lease.",
            name=name,
        ))  # fmt: skip
    names = options.worker_names
    if options.broadcast and (options.workers > 1 or names is not None):
        raise InvalidTask(_(
            "{name}: broadcast=True asks every worker alive on the queue; leave out workers and "
            "worker_names.",
            name=name,
        ))  # fmt: skip
    if names is not None and options.workers > len(names):
        raise InvalidTask(_(
            "{name}: workers={workers} can never be reached by the {count} in worker_names.",
            name=name, workers=options.workers, count=len(names),
        ))  # fmt: skip
    is_shared = options.workers > 1 or options.broadcast
    if options.batch is not None and (options.has_key or is_shared):
        raise InvalidTask(_(
            "{name}: batch= excludes unique_key, debounce, throttle, capacity, workers and "
            "broadcast: each event is to be in one task, which runs once.",
            name=name,
        ))  # fmt: skip
    if options.restart is not None and options.unique_for != "kept":
        raise InvalidTask(_(
            "{name}: restart={restart!r} needs unique_for='kept'.",
            name=name, restart=options.restart,
        ))  # fmt: skip
    if options.unique_per is not None and options.unique_for != "finished":
        raise InvalidTask(_(
            "{name}: unique_per holds the key until the end of the period; leave out unique_for.",
            name=name,
        ))  # fmt: skip
    if options.keep_last is not None and options.unique_for == "kept":
        raise InvalidTask(_(
            "{name}: keep_last and unique_for='kept' exclude each other: a task that is deleted no "
            "longer holds its key.",
            name=name,
        ))  # fmt: skip
    is_apart = is_shared or names is not None
    if options.retry_on == "same" and (is_apart or options.limits.has_any):
        raise InvalidTask(_(
            "{name}: retry_on='same' excludes workers, worker_names, broadcast and limits: those "
            "decide which worker takes the next attempt.",
            name=name,
        ))  # fmt: skip
    check_limits(name, options.limits, priority=options.priority, is_apart=is_apart)
    if options.admission is not None:
        _check_admission(options, options.admission, name=name)


# Options that make their own key, or affect one, with their defaults.
_OF_KEYS = ("unique_key", "unique_scope", "unique_for", "unique_per", "on_duplicate", "restart")
_OF_WORKERS = ("workers", "worker_names", "broadcast")
_ADMISSIONS = ("debounce", "throttle", "capacity")


def _check_admission(options: Options, admission: Admission, *, name: str) -> None:
    own = admission.option
    excluded = (*_ADMISSIONS, *_OF_KEYS, *_OF_WORKERS)
    for other in excluded:
        if other != own and getattr(options, other) != OPTIONS[other].default:
            raise InvalidTask(_(
                "{name}: {own}= and {other}= exclude each other. Leave one out, in .using() by "
                "{own}=None.",
                name=name, own=own, other=other,
            ))  # fmt: skip
    if own == "debounce" and options.run_after is not None:
        raise InvalidTask(_(
            "{name}: debounce= decides when the task runs; leave out run_after, or use "
            ".using(debounce=None, ...).",
            name=name,
        ))  # fmt: skip


def require_unique_key(options: Options, *, name: str) -> None:
    """Raise `InvalidTask` for a `unique_per` without a key."""
    if options.unique_per is not None and options.unique_key is None:
        raise InvalidTask(_("{name}: unique_per needs a unique_key.", name=name))
