"""How a child sends what its bodies report."""

from __future__ import annotations

import os
import socket

import pytest

from taskqueue.worker.bodies.reporting import Channel


def test_a_report_that_another_thread_has_sent_does_not_wake_the_child_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "register_at_fork", lambda **hooks: None)
    child, parent = socket.socketpair()
    with child, parent:
        channel = Channel(child, max_log=1000)
        channel.report_line(1, 20, "project", "a line")
        channel.send()
        channel.has_reports.set()  # The thread that reported the line may do so only now.
        channel.send()

    assert not channel.has_reports.is_set()
