"""A picture as SVG, with classes for its colours, and texts for those who cannot see it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from unicodedata import east_asian_width

from taskqueue.core.workflow_states import After, StepKind, StepStatus
from taskqueue.declarations.workflows.drawing.layout import HEIGHT, WIDTH, Layout, Point, layout
from taskqueue.declarations.workflows.drawing.picture import BAR, TIMES, Node, Picture

# A sign shows the status too, not only the colour.
SIGNS = {
    StepStatus.WAITING: "○", StepStatus.RUNNING: "▶", StepStatus.SUCCEEDED: "✓",
    StepStatus.FAILED: "✗", StepStatus.SKIPPED: "↷", StepStatus.CANCELLED: "⊘",
}  # fmt: skip
KINDS = {
    StepKind.TASK: "task", StepKind.MAP: "map", StepKind.WORKFLOW: "workflow",
    StepKind.JOIN: "join",
}  # fmt: skip
TITLE_SIZE, SUBTITLE_SIZE = 13.0, 10.5
LEFT, RIGHT = 28, 6
# The offset of the second box behind nodes of many tasks or steps.
BEHIND = 4
BAR_HEIGHT = 6
# One failure among thousands must be visible.
LEAST_SHARE = 2.5

# Returns the address of a node's page; empty for none.
Address = Callable[[Node], str]
Word = Callable[[str], str]


def svg(
    picture: Picture,
    *,
    title: str = "",
    description: str = "",
    address: Address | None = None,
    tooltip: Callable[[Node], str] | None = None,
    word: Word = str,
    id_prefix: str = "tq-graph",
) -> str:
    """Return the picture as an SVG element for a page with the style sheet `graph.css`.

    `word` translates "steps" and "join", which stand in the boxes.
    """
    return _document(
        picture, layout(picture),
        title=title or f"Workflow {picture.name}",
        description=description or described(picture),
        address=address,
        tooltip=tooltip or described_node,
        word=word,
        id_prefix=id_prefix,
    )  # fmt: skip


def standalone_svg(picture: Picture) -> str:
    """Return the picture as an SVG file, with its style."""
    start, rest = svg(picture).split(">", 1)
    return f"{start}>\n<style>{escape(_style(), quote=False)}</style>{rest}\n"


@cache
def _style() -> str:
    """Return the style sheet that pages link to."""
    return (files("taskqueue") / "static" / "taskqueue" / "graph.css").read_text()


def described(picture: Picture) -> str:
    """Return the picture in words."""
    counts = [
        f"{picture.counts[status]:,} {status.value}" for status in BAR if picture.counts[status]
    ]
    steps = "1 step" if picture.steps == 1 else f"{picture.steps:,} steps"
    layers = "1 layer" if len(picture.layers) == 1 else f"{len(picture.layers)} layers"
    return f"{steps} in {layers}: {', '.join(counts)}." if counts else "No steps."


def described_node(node: Node) -> str:
    """Return a node in words."""
    what = node.name if node.steps == 1 else f"{node.steps:,} steps from {node.name} on"
    calls = f", {KINDS[node.kind]} {node.calls}".rstrip() if node.calls else f", {KINDS[node.kind]}"
    shares = ", ".join(f"{count:,} {status.value}" for status, count in node.shares)
    return f"{what}{calls}: {node.status.value}" + (f" ({shares})" if shares else "")


def _document(
    picture: Picture, lying: Layout, *, title: str, description: str, address: Address | None,
    tooltip: Callable[[Node], str], word: Word, id_prefix: str,
) -> str:  # fmt: skip
    prefix = escape(id_prefix)
    # An image hides the links within it.
    role = "img" if address is None else "group"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="tq-graph" role="{role}" '
        f'aria-labelledby="{prefix}-title {prefix}-desc" '
        f'width="{lying.width:g}" height="{lying.height:g}" '
        f'viewBox="0 0 {lying.width:g} {lying.height:g}">',
        f'<title id="{prefix}-title">{escape(title)}</title>',
        f'<desc id="{prefix}-desc">{escape(description)}</desc>',
        f'<defs><marker id="{prefix}-head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path class="tq-head" d="M0 0L8 4L0 8z"/></marker></defs>',
    ]
    for link, points in zip(picture.links, lying.arrows, strict=True):
        parts.append(_arrow(points, link.when, prefix))
    for node in picture.nodes:
        link_to = address(node) if address else ""
        parts.append(_node(node, lying.corners[node.name], link_to, tooltip(node), word))
    return "\n".join([*parts, "</svg>"])


def _arrow(points: Sequence[Point], when: After, prefix: str) -> str:
    (x, y), *rest = points
    path = [f"M{x:g} {y:g}"]
    for number, (right, below) in enumerate(rest):
        if number % 2:  # Straight through a layer.
            path.append(f"L{right:g} {below:g}")
        else:
            middle = (x + right) / 2
            path.append(f"C{middle:g} {y:g} {middle:g} {below:g} {right:g} {below:g}")
        x, y = right, below
    return (
        f'<path class="tq-arrow tq-after-{when.value}" d="{"".join(path)}" '
        f'marker-end="url(#{prefix}-head)"/>'
    )


def _node(node: Node, corner: Point, address: str, tooltip: str, word: Word) -> str:
    x, y = corner
    title = fitted(title_of(node, word), TITLE_SIZE, WIDTH - LEFT - RIGHT)
    subtitle = _fitted_path(_subtitle(node, word), WIDTH - LEFT - RIGHT)
    corners = HEIGHT / 2 if node.kind is StepKind.JOIN and node.steps == 1 else 6
    drawn = [
        f"<title>{escape(tooltip)}</title>",
        *_behind(node),
        f'<rect class="tq-box" width="{WIDTH}" height="{HEIGHT}" rx="{corners:g}"/>',
        f'<text class="tq-sign" x="15" y="20">{SIGNS[node.status]}</text>',
        f'<text x="{LEFT}" y="19">{escape(title)}</text>',
        f'<text class="tq-sub" x="{LEFT}" y="33">{escape(subtitle)}</text>',
        *_bar(node),
    ]
    inner = "".join(drawn)
    if address:
        inner = f'<a href="{escape(address)}">{inner}</a>'
    return (
        f'<g class="tq-node tq-{node.status.value} tq-kind-{node.kind.value}" '
        f'transform="translate({x:g} {y:g})">{inner}</g>'
    )


def title_of(node: Node, word: Word = str) -> str:
    """Return the name of a step, or how many steps the node stands for."""
    if node.steps == 1:
        return node.name
    return f"{node.steps:,} {TIMES} {_last(node.calls) or word('steps')}"


def _subtitle(node: Node, word: Word) -> str:
    total = sum(count for _, count in node.shares)
    # A map whose list is not known yet has no members.
    is_counted = total > 0 or node.status is StepStatus.SUCCEEDED
    if node.kind is StepKind.MAP and node.steps == 1 and is_counted:
        ended = total - sum(
            count for status, count in node.shares
            if status in (StepStatus.RUNNING, StepStatus.WAITING)
        )  # fmt: skip
        return f"{ended:,} / {total:,}"
    return node.calls if node.kind is not StepKind.JOIN else word("join")


def _behind(node: Node) -> list[str]:
    """Return a second box for a node that runs many tasks, or stands for many steps."""
    if node.kind is not StepKind.MAP and node.steps == 1:
        return []
    size = f'width="{WIDTH}" height="{HEIGHT}" rx="6"'
    return [f'<rect class="tq-box" x="{BEHIND}" y="-{BEHIND}" {size}/>']


def _bar(node: Node) -> list[str]:
    """Return the stacked bar of a map or of several steps."""
    drawn, left = [], 4.0
    for status, width in share_widths(node.shares, WIDTH - 8):
        drawn.append(
            f'<rect class="tq-share tq-{status}" x="{left:.1f}" '
            f'y="{HEIGHT - BAR_HEIGHT - 3}" width="{width:.1f}" height="{BAR_HEIGHT}"/>'
        )
        left += width
    return drawn


def share_widths(
    shares: Iterable[tuple[StepStatus, int]], width: float
) -> list[tuple[StepStatus, float]]:
    """Divide a width by counts; a count above zero is never too narrow to be seen."""
    given = [(status, count) for status, count in shares if count]
    total = sum(count for _, count in given)
    wanted = [(status, max(width * count / total, LEAST_SHARE)) for status, count in given]
    scale = width / sum((each for _, each in wanted), 0.0) if wanted else 1.0
    return [(status, each * scale) for status, each in wanted]


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _fitted_path(path: str, room: float) -> str:
    """Return a dotted path that fits into the room, without its first parts if it is too long."""
    short, rest = path, path
    while text_width(short) * SUBTITLE_SIZE > room and "." in rest:
        rest = rest.partition(".")[2]
        short = f"…{rest}"
    return fitted(short, SUBTITLE_SIZE, room)


def fitted(text: str, size: float, room: float) -> str:
    """Return text that fits into the width; long text is reduced to its beginning and end."""
    if text_width(text) * size <= room:
        return text
    head, tail = text[: len(text) // 2], text[len(text) // 2 :]
    while text_width(f"{head}…{tail}") * size > room:
        if text_width(head) > text_width(tail):
            head = head[:-1]
        else:
            tail = tail[1:]
    return f"{head}…{tail}"


# Widths in ems of wide fonts of the sans-serif kind.
NARROW, WIDE = frozenset("ijl.,:;'|!I"), frozenset("mwMW@%")


def text_width(text: str) -> float:
    """Return about how wide text is, in ems."""
    return sum(map(_character_width, text))


def _character_width(character: str) -> float:
    if east_asian_width(character) in "WF" or character in WIDE or character == "…":
        return 1.0
    if character in NARROW:
        return 0.36
    return 0.72 if character.isupper() else 0.62
