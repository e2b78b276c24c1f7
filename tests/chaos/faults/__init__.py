"""The rows of the fault table in GUARANTEES.md, one class each, registered by being imported."""

from tests.chaos.faults import (
    bodies,
    clocks,
    commands,
    disks,
    failover,
    frozen,
    locks,
    memory,
    migrations,
    network,
    outages,
    poolers,
    processes,
    schedules,
    server,
    sharing,
    signals,
)
from tests.chaos.faults.base import FAULTS, Fault

__all__ = [
    "FAULTS",
    "Fault",
    "bodies",
    "clocks",
    "commands",
    "disks",
    "failover",
    "frozen",
    "locks",
    "memory",
    "migrations",
    "network",
    "outages",
    "poolers",
    "processes",
    "schedules",
    "server",
    "sharing",
    "signals",
]
