"""Suggestions for unknown names: synonyms from other task queues, and near spellings."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from taskqueue.core.refusals import refusal as _

# The required similarity to a name that people choose, and to a word of a fixed vocabulary.
NEAR, VERY_NEAR = 0.6, 0.75
# The number of characters that are compared: no name is longer.
LONGEST = 300
_WORDS = {
    "run_after": "at countdown defer_by defer_until delay eta run_at schedule_at schedule_in"
    " next_run scheduled_at scheduled_time start_at start_in",
    "timeout": "execution_timeout job_timeout max_runtime soft_time_limit task_timeout time_limit",
    "max_attempts": "attempts max_retries max_tries retries retry tries",
    "backoff": "default_retry_delay retry_backoff retry_delay retry_interval retry_policy",
    "retry_for": "autoretry_for retry_when",
    "snooze_on": "dont_count ignore_on is_failure release_on",
    "max_memory": "memory memory_limit memory_mb rss_limit",
    "give_up_on": "discard_on dont_autoretry_for no_retry_on throws",
    "queue_name": "cluster lane queue routing_key",
    "id": "job_id task_id uuid",
    "expires_after": "expire expires expires_in expiry max_age ttl",
    "retention": "failure_ttl keep keep_result result_expires result_ttl",
    "unique_key": "dedup_key dedupe_key idempotency_key lock_key singleton_key unique unique_id",
    "unique_for": "dedupe_for unique_until unique_ttl",
    "unique_per": "once_per unique_period",
    "on_duplicate": "if_exists on_conflict",
    "debounce": "debounce_for debounced quiet_period",
    "throttle": "throttle_for throttled",
    "capacity": "instance_limit max_instances max_unfinished",
    "lease_duration": "lease visibility_timeout",
    "ping_interval": "heartbeat heartbeat_interval",
    "worker_names": "hostname worker worker_name",
    "metadata": "description headers labels meta tags",
    "takes_context": "bind pass_context with_context",
    "priority": "at_front prio",
}
# What other task queues call the methods of a task: Celery, RQ, django-q2, Huey, Dramatiq and
# procrastinate.
_METHODS = {
    "enqueue": "apply_async async_task defer delay enqueue_call perform_async schedule send"
    " send_async",
    "using": "configure enqueue_at enqueue_in options send_with_options set with_options",
    "s": "message signature sig subtask",
    "si": "immutable_signature",
    "call": "apply call_local func",
    "enqueue_many": "async_iter batch_defer enqueue_all map_async",
    "get_result": "AsyncResult fetch fetch_job fetch_task",
}
METHODS = {synonym: name for name, words in _METHODS.items() for synonym in words.split()}
# The names of our options in other task queues.
SYNONYMS = {synonym: name for name, words in _WORDS.items() for synonym in words.split()}


def nearest(name: object, known: Iterable[str], *, cutoff: float = NEAR) -> str:
    """Return the known name that is spelled most like this one, in any case; empty for none."""
    by_folded = {item.casefold(): item for item in known}
    matches = get_close_matches(str(name)[:LONGEST].casefold(), by_folded, n=1, cutoff=cutoff)
    return by_folded[matches[0]] if matches else ""


def nearest_option(name: object, known: Iterable[str]) -> str:
    """Return the option or setting that is meant, by a synonym or a near spelling; empty: none."""
    by_folded = {item.casefold(): item for item in known}
    meant = SYNONYMS.get(str(name).casefold().replace("-", "_"), "")
    return by_folded.get(meant) or nearest(name, by_folded.values(), cutoff=VERY_NEAR)


def did_you_mean(
    name: object, known: Iterable[str], *, otherwise: str = "", cutoff: float = NEAR
) -> str:
    """Return ` Did you mean 'x'?` for the nearest known name, or else the other hint."""
    return hint_of(nearest(name, known, cutoff=cutoff), otherwise)


def did_you_mean_option(name: object, known: Iterable[str], *, otherwise: str = "") -> str:
    """Return ` Did you mean 'x'?` for the option that is meant, or else the other hint."""
    return hint_of(nearest_option(name, known), otherwise)


def hint_of(near: str, otherwise: str = "") -> str:
    """Return ` Did you mean 'x'?` for the name, or else the other hint."""
    if near:
        return _(" Did you mean {near!r}?", near=near)
    return _(" {hint}", hint=otherwise) if otherwise else ""
