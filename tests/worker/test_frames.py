"""Frames between a worker's parent and its children."""

from __future__ import annotations

import pytest

from taskqueue.worker import frames
from taskqueue.worker.frames import Frame, Unpacker, pack


def success(lease_id: int, value: str | None = None) -> Frame:
    return (frames.OUTCOME, (lease_id, "succeeded", 20.5, 10.25, value))


@pytest.mark.parametrize("size", [1, 5, 27, 28, 29, 64, 10_000])
def test_frames_arrive_whole_and_in_order_whatever_pieces_they_come_in(size: int) -> None:
    sent = [
        (frames.LINES, [(1, 2.0, 20, "", "line")]),
        *map(success, (1, 2**62, 3)),
        success(4, '{"value": 4}'),
        success(5),
        (frames.RECALLED, [6]),
    ]
    data, unpacker = b"".join(map(pack, sent)), Unpacker()
    arrived: list[Frame] = []
    for start in range(0, len(data), size):
        for frame in unpacker.feed(data[start : start + size]):
            if frame[0] == frames.SUCCEEDED:
                arrived += [
                    (frames.OUTCOME, (lease_id, "succeeded", ended, started, None))
                    for _, lease_id, ended, started in frame[1]
                ]
            else:
                arrived.append(frame)
    assert arrived == sent


def test_successes_without_a_value_that_arrive_together_are_one_frame() -> None:
    data = b"".join(pack(success(number)) for number in range(100))
    ((kind, rows),) = Unpacker().feed(data)
    assert kind == frames.SUCCEEDED
    assert [row[1] for row in rows] == list(range(100))
