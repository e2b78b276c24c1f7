"""Files by which workers prove their end, apart from those of all other runs on this host.

A look at them costs time for each. Workers that were killed leave theirs for a week, hundreds a
run, and runs that go on side by side would look at each other's.
"""

from __future__ import annotations

import os
import re

PREFIX = "TASKQUEUE_TEST_PROOFS"
"""The environment variable that tells all processes of a run how its files begin."""


def use_own_proofs() -> None:
    """Use the files of the run that this process belongs to, if it belongs to one."""
    if prefix := os.environ.get(PREFIX):
        from taskqueue.worker import presence

        presence.PREFIX, presence.NAME = prefix, re.compile(prefix + "([0-9a-f]{32})")


def forget_proofs() -> None:
    """Remove what the workers of this run, which have ended, have left in the host's memory."""
    from taskqueue.worker import presence

    for incarnation in presence.others():
        presence.forget(incarnation)
