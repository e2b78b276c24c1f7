"""A worker's memory limit is exhausted."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

from taskqueue.models import Lease
from tests.chaos import bad_bodies as bad
from tests.chaos.faults.bodies import CRASH, LOST_TWICE, Body, Misbehaving
from tests.chaos.faults.outages import OWN_CRASH

MEGABYTES = 768
"""What a worker and its children may use together: enough for them, too little for the body."""
# The file that limits the memory of a group, in the second and in the first version of cgroups.
LIMITS = {
    Path("/sys/fs/cgroup"): "memory.max",
    Path("/sys/fs/cgroup/memory"): "memory.limit_in_bytes",
}


class OutOfMemory(Misbehaving):
    """A body takes more memory than its worker's control group has: the kernel kills a process."""

    name = "out_of_memory"
    expectation = "the child that took it is lost, and counted; its worker and siblings go on"
    bodies = (Body(bad.take_memory, (4 * MEGABYTES,), error=CRASH, leases=LOST_TWICE),)
    weight = 0.2
    share = 0.5
    fleet = (("process", 2), ("process", 2))

    @classmethod
    def obstacle(cls) -> str:
        group = _make_group()
        if group is None:
            return "no control group that limits memory can be made"
        group.rmdir()
        return ""

    def prepare(self) -> None:
        super().prepare()
        for worker in self.stage.workers:
            group = _make_group()
            assert group is not None
            self.stage.at_end(group.rmdir)
            _move_tree(worker.pid, group)

    def look(self) -> Iterator[str]:
        yield from super().look()
        lost = Lease.objects.filter(status="lost").exclude(OWN_CRASH)
        for lease in lost.exclude(task__metadata__kind=self.bodies[0].kind):
            yield f"{lease} was lost beside it: {lease.error_message}"


def _move_tree(pid: int, group: Path) -> None:
    """Move a process and all below it: also what was forked while others were moved."""
    tree, moved = psutil.Process(pid), set[int]()
    while new := {pid, *(child.pid for child in tree.children(recursive=True))} - moved:
        for each in new:
            with suppress(ProcessLookupError):
                (group / "cgroup.procs").write_text(str(each))
        moved |= new


def _make_group() -> Path | None:
    """Make a control group with little memory; None where that cannot be done."""
    for root, limit in LIMITS.items():
        with suppress(OSError):
            (root / "cgroup.subtree_control").write_text("+memory")
        with suppress(OSError):
            group = Path(tempfile.mkdtemp(prefix="taskqueue-", dir=root))
            if (group / limit).exists():
                (group / limit).write_text(str(MEGABYTES << 20))
                return group
            group.rmdir()
    return None
