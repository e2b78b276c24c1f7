"""The parts of the documentation that the code tells are as the code tells them."""

from __future__ import annotations

import sys

import pytest

from docs.generate import parts

pytestmark = pytest.mark.django_db


@pytest.mark.skipif(sys.platform != "linux", reason="a metric of workers exists on Linux only")
def test_every_generated_part_is_as_the_code_has_it() -> None:
    stale = [path.name for path, text in parts.pages().items() if path.read_text() != text]
    assert stale == [], "Run make reference."


def test_every_part_stands_in_a_page() -> None:
    text = "".join(path.read_text() for path in parts.FOLDER.glob("*.md"))
    missing = [
        name
        for name in parts.PARTS
        if f"<!-- generated: {name} -->" not in text or f"<!-- end of {name} -->" not in text
    ]
    assert missing == []
