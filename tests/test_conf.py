"""One settings dict: every key checked, mistakes named with the remedy, defaults in their place."""

from __future__ import annotations

import math
from datetime import timedelta
from types import MappingProxyType
from typing import Any

import pytest
from django.test import override_settings

from taskqueue.conf import (
    DEFAULT_RETENTION,
    DEFAULT_THROTTLE_RATES,
    NAMES,
    Settings,
    get_settings,
    parse,
)
from taskqueue.core.setting_checks import DEFAULT_ALERTS, Mistake

SECOND, DAY = timedelta(seconds=1), timedelta(days=1)

DEFAULTS: dict[str, Any] = {
    "DATABASE": "default",
    "POOL": "process",
    "POLL_INTERVAL": None,
    "LEASE_DURATION": 30 * SECOND,
    "PING_INTERVAL": 5 * SECOND,
    "TAKEOVER_INTERVAL": 2 * SECOND,
    "SHUTDOWN_TIMEOUT": 30 * SECOND,
    "STOP_GRACE": 5 * SECOND,
    "KILL_GRACE": 5 * SECOND,
    "RETENTION": {"succeeded": 7 * DAY, "failed": 30 * DAY, "cancelled": 7 * DAY},
    "DEFAULTS": {},
    "MAX_ATTEMPTS": 1,
    "MAX_CRASHES": 3,
    "CRASH_DELAY": 10 * SECOND,
    "PARK_DELAY": 10 * SECOND,
    "PARK_LIMIT": DAY,
    "CHECK_ARGUMENTS": True,
    "MAX_ARGUMENTS": 64 * 1024,
    "MAX_RESULT": 1024 * 1024,
    "MAX_CHECKPOINT": 64 * 1024,
    "LOG_LEVEL": "INFO",
    "MAX_LOG": 256 * 1024,
    "MAX_TRACEBACK": 32 * 1024,
    "CLAIM_AHEAD": "auto",
    "API_AUTHENTICATION": None,
    "API_THROTTLE_RATES": DEFAULT_THROTTLE_RATES,
    "API_LONG_POLLS": None,
    "METRICS_TOKEN": None,
    "TRACING": False,
    "TRACE_URL": None,
    "VERSION": "",
    "EVENTS_KEPT": {"age": timedelta(days=7), "rows": 1_000_000},
    "INTERNAL_QUEUE": "default",
    "STREAMS": {"user": 5, "process": 100},
    "ALERTS": None,
    "WEBHOOK_ALLOW": (),
    "BUILTIN_TASKS": {"command": (), "http": (), "program": ()},
    "SITE_URL": "",
    "FORMATTER": "",
}

ACCEPTED: list[tuple[str, Any, Any]] = [
    ("DATABASE", "default", "default"),
    ("CONCURRENCY", 1, 1),
    ("POOL", "thread", "thread"),
    ("POLL_INTERVAL", 0.01, SECOND / 100),
    ("POLL_INTERVAL", None, None),
    ("LEASE_DURATION", 60, 60 * SECOND),
    ("LEASE_DURATION", timedelta(minutes=2), 120 * SECOND),
    ("PING_INTERVAL", 0.05, SECOND / 20),
    ("TAKEOVER_INTERVAL", 0.1, SECOND / 10),
    ("SHUTDOWN_TIMEOUT", 0, 0 * SECOND),
    ("STOP_GRACE", 0, 0 * SECOND),
    ("KILL_GRACE", 1, SECOND),
    ("MAX_ATTEMPTS", 1, 1),
    ("MAX_CRASHES", 2**31 - 1, 2**31 - 1),
    ("CRASH_DELAY", 0, 0 * SECOND),
    ("PARK_DELAY", 1, SECOND),
    ("PARK_LIMIT", DAY, DAY),
    ("CHECK_ARGUMENTS", False, False),
    ("DEFAULTS", {"shop.*": {"timeout": 5}}, {"shop.*": {"timeout": 5}}),
    ("MAX_ARGUMENTS", 2, 2),
    ("MAX_RESULT", 2, 2),
    ("MAX_CHECKPOINT", 2, 2),
    (
        "BUILTIN_TASKS",
        {"command": ["clearsessions", ["load", "*", "**"]], "http": ["https://a.example/*"]},
        {
            "command": (("clearsessions",), ("load", "*", "**")),
            "http": ("https://a.example/*",),
            "program": (),
        },
    ),
    ("LOG_LEVEL", "DEBUG", "DEBUG"),
    ("LOG_LEVEL", 25, 25),
    ("MAX_LOG", 0, 0),
    ("MAX_TRACEBACK", 256, 256),
    ("CLAIM_AHEAD", 0, 0),
    ("CLAIM_AHEAD", "auto", "auto"),
    ("API_LONG_POLLS", 0, 0),
    ("RETENTION", {}, DEFAULT_RETENTION),
    ("RETENTION", {"failed": None}, {**DEFAULT_RETENTION, "failed": None}),
    ("RETENTION", {"succeeded": 0}, {**DEFAULT_RETENTION, "succeeded": 0 * SECOND}),
    ("API_AUTHENTICATION", ["shop.auth.Tokens"], ("shop.auth.Tokens",)),
    ("API_AUTHENTICATION", None, None),
    ("API_THROTTLE_RATES", {}, DEFAULT_THROTTLE_RATES),
    ("API_THROTTLE_RATES", {"read": None}, {**DEFAULT_THROTTLE_RATES, "read": None}),
    ("API_THROTTLE_RATES", {"act": "5/s"}, {**DEFAULT_THROTTLE_RATES, "act": "5/s"}),
    ("METRICS_TOKEN", "sixteen letters!", "sixteen letters!"),
    ("METRICS_TOKEN", None, None),
    ("TRACING", True, True),
    ("TRACE_URL", "https://t.example/{trace_id}/", "https://t.example/{trace_id}/"),
    ("TRACE_URL", None, None),
    ("VERSION", "1.4.2", "1.4.2"),
    ("EVENTS_KEPT", {"rows": None}, {"age": timedelta(days=7), "rows": None}),
    ("INTERNAL_QUEUE", "taskqueue", "taskqueue"),
    ("STREAMS", {"user": 20}, {"user": 20, "process": 100}),
    ("ALERTS", None, None),
    ("ALERTS", {"mail": ["a@b.org"]}, {**DEFAULT_ALERTS, "mail": ("a@b.org",)}),
    ("ALERTS", {"leave_out": ["wedged"]}, {**DEFAULT_ALERTS, "leave_out": ("wedged",)}),
    ("WEBHOOK_ALLOW", ["10.1.0.0/16", "*.inner"], ("10.1.0.0/16", "*.inner")),
    ("WEBHOOK_ALLOW", [], ()),
    ("SITE_URL", "https://shop.example.org/", "https://shop.example.org"),
    ("FORMATTER", "shop.formats.shown", "shop.formats.shown"),
]

REFUSED: list[tuple[str, Any, str]] = [
    ("DATABASE", "replica", "which is not in DATABASES"),
    ("DATABASE", None, "which is not in DATABASES"),
    ("DATABASE", ["default"], "which is not in DATABASES"),
    ("CONCURRENCY", 0, "1 or more, not 0"),
    ("CONCURRENCY", True, "not True"),
    ("POOL", "fork", "'process' or 'thread', not 'fork'"),
    ("POLL_INTERVAL", 0, "0.01 or more seconds"),
    ("LEASE_DURATION", 0.5, "1 or more seconds"),
    ("LEASE_DURATION", math.inf, "not inf"),
    ("LEASE_DURATION", math.nan, "not nan"),
    ("LEASE_DURATION", 10**400, "1 or more seconds"),
    ("PING_INTERVAL", "5", "or a timedelta"),
    ("TAKEOVER_INTERVAL", 0, "0.1 or more"),
    ("SHUTDOWN_TIMEOUT", -1, "0 or more"),
    ("STOP_GRACE", None, "not None"),
    ("KILL_GRACE", True, "not True"),
    ("MAX_ATTEMPTS", 0, "1 or more"),
    ("MAX_CRASHES", 1.0, "whole number"),
    ("CRASH_DELAY", timedelta(-1), "0 or more"),
    ("PARK_DELAY", 0, "0.1 or more"),
    ("PARK_LIMIT", -1, "0 or more"),
    ("CHECK_ARGUMENTS", "no", "True or False"),
    ("DEFAULTS", [], "must be a dict"),
    ("DEFAULTS", {"timeout": 5}, "dicts of options by patterns of names"),
    ("MAX_ARGUMENTS", 1, "2 or more"),
    ("MAX_RESULT", 2**31, "whole number"),
    ("MAX_CHECKPOINT", 1, "2 or more"),
    ("BUILTIN_TASKS", ["clearsessions"], "must be a dict"),
    ("BUILTIN_TASKS", {"shell": []}, "has no key 'shell'"),
    ("BUILTIN_TASKS", {"command": "clearsessions"}, "must be a list"),
    ("BUILTIN_TASKS", {"program": [["*"]]}, "begins with a name"),
    ("BUILTIN_TASKS", {"program": [[]]}, "begins with a name"),
    ("BUILTIN_TASKS", {"http": ["https://*.example.org/"]}, "a host in full"),
    ("BUILTIN_TASKS", {"http": ["https://a@b.example/"]}, "a host in full"),
    ("LOG_LEVEL", "warning", "name or number of a logging level, not 'warning'"),
    ("LOG_LEVEL", "NOTSET", "name or number of a logging level"),
    ("LOG_LEVEL", 0, "name or number of a logging level"),
    ("LOG_LEVEL", True, "name or number of a logging level"),
    ("LOG_LEVEL", None, "name or number of a logging level"),
    ("MAX_LOG", -1, "0 or more"),
    ("MAX_TRACEBACK", 10, "256 or more"),
    ("CLAIM_AHEAD", "none", "'auto' or a whole number"),
    ("CLAIM_AHEAD", -1, "'auto' or a whole number"),
    ("CLAIM_AHEAD", True, "'auto' or a whole number"),
    ("RETENTION", 7, "must be a dict, not 7"),
    ("RETENTION", {"done": 7}, "no key 'done'"),
    ("RETENTION", {"failed": -1}, "0 or more seconds"),
    ("API_AUTHENTICATION", "shop.auth.Tokens", "must be a list of the paths"),
    ("API_AUTHENTICATION", [], "must be a list of the paths"),
    ("API_THROTTLE_RATES", "5/s", "must be a dict"),
    ("API_THROTTLE_RATES", {"write": "5/s"}, "no key 'write'"),
    ("API_THROTTLE_RATES", {"read": "5"}, "'600/minute', or None for no limit"),
    ("API_THROTTLE_RATES", {"read": "0/s"}, "'600/minute', or None for no limit"),
    ("API_LONG_POLLS", -1, "0 or more"),
    ("API_LONG_POLLS", True, "0 or more"),
    ("METRICS_TOKEN", "short", "16 or more characters"),
    ("TRACING", 1, "True or False"),
    ("TRACING", None, "True or False"),
    ("TRACE_URL", "https://t.example/", "an address such as"),
    ("TRACE_URL", "javascript:alert('{trace_id}')", "an address such as"),
    ("TRACE_URL", 7, "an address such as"),
    ("VERSION", 7, "the version of the project"),
    ("VERSION", "1" * 101, "up to 100 characters"),
    ("METRICS_TOKEN", 16 * b"x", "16 or more characters"),
    ("EVENTS_KEPT", {"rows": 0}, "a whole number of 1 or more"),
    ("EVENTS_KEPT", {"age": 0}, "1 or more seconds"),
    ("EVENTS_KEPT", {"days": 1}, "no key 'days'"),
    ("INTERNAL_QUEUE", "", "the name of a queue"),
    ("STREAMS", {"user": -1}, "a whole number of 0 or more"),
    ("ALERTS", ["a@b.org"], "a dict or None"),
    ("ALERTS", {"mails": []}, "no key 'mails'"),
    ("ALERTS", {"mail": "a@b.org"}, "a list of texts"),
    ("ALERTS", {"mail": [7]}, "a list of texts"),
    ("ALERTS", {"heartbeat": None}, "a URL"),
    ("ALERTS", {"leave_out": ["failure"]}, "no default rule"),
    ("WEBHOOK_ALLOW", "10.1.0.0/16", "a list of texts"),
    ("WEBHOOK_ALLOW", ["10.1.0.256"], "neither a host nor a network"),
    ("SITE_URL", "shop.example.org", "the address of the site"),
    ("FORMATTER", "shown", "the path of a function"),
    ("FORMATTER", len, "the path of a function"),
]


def named(rows: list[Any]) -> list[str]:
    return [f"{name}-{place}" for place, (name, *_) in enumerate(rows)]


def test_the_defaults_are_those_of_the_contract() -> None:
    settings, mistakes = parse({})
    assert mistakes == []
    assert settings.CONCURRENCY >= 1
    for name, value in DEFAULTS.items():
        assert getattr(settings, name) == value
    assert DEFAULTS.keys() | {"CONCURRENCY"} == NAMES


@pytest.mark.parametrize(("name", "value", "normal"), ACCEPTED, ids=named(ACCEPTED))
def test_a_possible_value_is_taken_in_its_normal_form(name: str, value: Any, normal: Any) -> None:
    settings, mistakes = parse(MappingProxyType({name: value}))
    assert mistakes == []
    assert getattr(settings, name) == normal


@pytest.mark.parametrize(("name", "value", "reason"), REFUSED, ids=named(REFUSED))
def test_an_impossible_value_is_a_mistake_and_the_default_stands(
    name: str, value: Any, reason: str
) -> None:
    settings, mistakes = parse({name: value, "MAX_LOG": 7} if name != "MAX_LOG" else {name: value})
    (mistake,) = mistakes
    assert reason in str(mistake)
    assert f"TASKQUEUE['{name}']" in str(mistake)
    default = Settings()
    assert getattr(settings, name) == getattr(default, name)


def test_every_key_stands_in_the_tables() -> None:
    assert {row[0] for row in ACCEPTED} == {row[0] for row in REFUSED} == NAMES


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("LEASE_DURATON", "LEASE_DURATION"),
        ("max_attempts", "MAX_ATTEMPTS"),
        ("MAX_RETRIES", "MAX_ATTEMPTS"),
        ("visibility_timeout", "LEASE_DURATION"),
        ("PINGINTERVAL", "PING_INTERVAL"),
        ("RETENTIONS", "RETENTION"),
    ],
)
def test_an_unknown_key_suggests_the_nearest(wrong: str, right: str) -> None:
    _, (mistake,) = parse({wrong: 1})
    assert str(mistake) == f"TASKQUEUE has no key {wrong!r}."
    assert mistake.hint == f"Did you mean {right!r}?"


@pytest.mark.parametrize("key", ["zzz", 5, None, ("a",), "TIMEOUT", "PARTITION"])
def test_a_key_that_resembles_none_is_answered_with_all(key: Any) -> None:
    _, (mistake,) = parse({key: 1})
    assert f"has no key {key!r}" in str(mistake)
    assert all(name in mistake.hint for name in NAMES)


def test_a_misspelt_database_suggests_the_nearest() -> None:
    _, (mistake,) = parse({"DATABASE": "defualt"})
    assert mistake.hint == "Did you mean 'default'?"


def test_a_misspelt_level_suggests_the_nearest() -> None:
    _, (mistake,) = parse({"LOG_LEVEL": "inf"})
    assert mistake.hint == "Did you mean 'INFO'?"


def test_all_mistakes_are_found_at_once() -> None:
    _, mistakes = parse({"POOL": 1, "MAX_LOG": -1, "zzz": 1})
    assert len(mistakes) == 3
    assert all(isinstance(mistake, Mistake) for mistake in mistakes)


@pytest.mark.parametrize("raw", [None, [], "x", 5])
def test_a_value_that_is_no_dict_is_an_error_and_the_defaults_apply(raw: Any) -> None:
    settings, (mistake,) = parse(raw)
    assert "TASKQUEUE must be a dict" in str(mistake)
    assert settings.RETENTION == DEFAULT_RETENTION


def test_a_ping_must_come_three_times_within_a_lease() -> None:
    assert parse({"LEASE_DURATION": 6, "PING_INTERVAL": 2})[1] == []
    _, (mistake,) = parse({"LEASE_DURATION": 6, "PING_INTERVAL": 2.1})
    assert "at most a third" in str(mistake)
    assert mistake.hint == "Lengthen LEASE_DURATION or shorten PING_INTERVAL."


def test_settings_that_change_in_a_test_are_read_anew() -> None:
    before = get_settings()
    with override_settings(TASKQUEUE={"MAX_ATTEMPTS": 9}):
        assert get_settings().MAX_ATTEMPTS == 9
    assert get_settings() == before
    with override_settings():
        from django.conf import settings

        del settings.TASKQUEUE
        assert get_settings().MAX_ATTEMPTS == 1
