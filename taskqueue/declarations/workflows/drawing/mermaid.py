"""A picture as Mermaid text, which many documentation tools draw."""

from __future__ import annotations

from taskqueue.core.workflow_states import After, StepKind
from taskqueue.declarations.workflows.drawing.picture import TIMES, Node, Picture

SHAPES = {
    StepKind.TASK: ('["', '"]'),
    StepKind.MAP: ('[["', '"]]'),
    StepKind.WORKFLOW: ('(["', '"])'),
    StepKind.JOIN: ('{{"', '"}}'),
}
ARROWS = {
    After.SUCCEEDED: "-->",
    After.FAILED: "-. failed .->",
    After.ENDED: "-- ended -->",
}
CLASSES = """\
    classDef waiting fill:#ebe4fb,stroke:#7e5fc4,color:#5631a0
    classDef running fill:#e3f2fd,stroke:#1565c0,color:#0d47a1
    classDef succeeded fill:#e8f5e9,stroke:#2e7d32,color:#1b5e20
    classDef failed fill:#ffebee,stroke:#c62828,color:#b71c1c
    classDef skipped fill:#fafafa,stroke:#9e9e9e,color:#616161,stroke-dasharray:4
    classDef cancelled fill:#ebedf0,stroke:#5f6b76,color:#44505c"""


def mermaid(picture: Picture) -> str:
    """Return the picture as a Mermaid flowchart."""
    numbers = {node.name: f"s{number}" for number, node in enumerate(picture.nodes)}
    lines = ["flowchart LR"]
    for node in picture.nodes:
        left, right = SHAPES[node.kind]
        lines.append(f"    {numbers[node.name]}{left}{_label(node)}{right}:::{node.status.value}")
    lines += [
        f"    {numbers[link.upstream]} {ARROWS[link.when]} {numbers[link.downstream]}"
        for link in picture.links
    ]
    return "\n".join([*lines, CLASSES, ""])


def _label(node: Node) -> str:
    text = _escaped(
        node.name if node.steps == 1 else f"{node.calls or 'steps'} {TIMES} {node.steps}"
    )
    if node.shares:
        text += "<br/>" + ", ".join(f"{count:,} {status.value}" for status, count in node.shares)
    return text


def _escaped(text: str) -> str:
    """Return text in which nothing means anything to Mermaid."""
    return "".join(
        character if character.isalnum() or character in f" _-.,:{TIMES}" else f"#{ord(character)};"
        for character in text
    )
