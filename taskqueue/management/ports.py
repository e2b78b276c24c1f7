"""The flags of `runworker` that open a port, and what is answered there."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management.base import CommandError

from taskqueue.worker.ports import Address, PortRefused, Ports
from taskqueue.worker.vitals import Vitals

HEALTH = "health_port"


def add_port_flags(parser: argparse.ArgumentParser) -> None:
    """A port on the loopback, unless a host is named; several flags may name the same one."""
    parser.add_argument(
        "--health-port", type=_address, metavar="[HOST:]PORT",
        help="answer /live and /ready over HTTP; on the loopback unless a host is named",
    )  # fmt: skip


@contextmanager
def open_ports(flags: dict[str, Any], vitals: Vitals) -> Iterator[Ports]:
    """Answer on the ports that the flags name until the end; refuse to begin without them."""
    ports = Ports()
    if (address := flags[HEALTH]) is not None:
        ports.add(address, "/live", vitals.live)
        ports.add(address, "/ready", vitals.ready)
    try:
        ports.open()
    except PortRefused as error:
        raise CommandError(str(error)) from None
    try:
        yield ports
    finally:
        ports.close()


def _address(text: str) -> Address:
    try:
        return Address.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
