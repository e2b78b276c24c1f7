"""The flags of `runworker` that open a port, and the routes of each."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from django.core.management.base import CommandError

from taskqueue.worker.meter import Meter
from taskqueue.worker.ports import Address, PortRefused, Route, listening

HEALTH, METRICS = "health_port", "metrics_port"
MISSING = (
    "--metrics-port needs the package prometheus-client, which is not installed. Install it with"
    " 'django-taskqueue[metrics]'."
)


def add_port_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags; several may name the same port, on the loopback unless they name a host."""
    for name, answers in (("health", "/live and /ready"), ("metrics", "/metrics for Prometheus")):
        parser.add_argument(
            f"--{name}-port",
            type=_address,
            metavar="[HOST:]PORT",
            help=f"answer {answers} over HTTP; on the loopback unless a host is named",
        )


@contextmanager
def open_ports(flags: dict[str, Any], meter: Meter) -> Iterator[list[Address]]:
    """Answer on the ports that the flags name. Raises `CommandError` where one cannot be opened."""
    routes: dict[Address, dict[str, Route]] = {}
    if (address := flags[HEALTH]) is not None:
        routes[address] = {"/live": meter.vitals.live, "/ready": meter.vitals.ready}
    if (address := flags[METRICS]) is not None:
        routes.setdefault(address, {})["/metrics"] = _metrics_of(meter)
    try:
        with listening(routes) as addresses:
            yield addresses
    except PortRefused as error:
        raise CommandError(str(error)) from None


def _metrics_of(meter: Meter) -> Route:
    try:
        from taskqueue.worker.metrics import route
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "prometheus_client":
            raise
        raise CommandError(MISSING) from None
    return partial(route, meter)


def _address(text: str) -> Address:
    try:
        return Address.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
