"""Drawings of workflows: as SVG, as Mermaid text and as JSON."""

from taskqueue.declarations.workflows.drawing.mermaid import mermaid
from taskqueue.declarations.workflows.drawing.picture import (
    BAR,
    Link,
    Node,
    Picture,
    Progress,
    node_of,
    picture,
    picture_of,
    picture_to_json,
)
from taskqueue.declarations.workflows.drawing.svg import (
    SIGNS,
    share_widths,
    standalone_svg,
    svg,
    title_of,
)

__all__ = [
    "BAR",
    "SIGNS",
    "Link",
    "Node",
    "Picture",
    "Progress",
    "mermaid",
    "node_of",
    "picture",
    "picture_of",
    "picture_to_json",
    "share_widths",
    "standalone_svg",
    "svg",
    "title_of",
]
