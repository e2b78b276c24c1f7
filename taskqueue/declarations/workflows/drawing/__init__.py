"""Drawings of workflows: as SVG, as Mermaid text and as JSON."""

from taskqueue.declarations.workflows.drawing.mermaid import mermaid
from taskqueue.declarations.workflows.drawing.picture import (
    Link,
    Node,
    Picture,
    Progress,
    node_of,
    picture,
    picture_of,
    picture_to_json,
)
from taskqueue.declarations.workflows.drawing.svg import standalone_svg, svg

__all__ = [
    "Link",
    "Node",
    "Picture",
    "Progress",
    "mermaid",
    "node_of",
    "picture",
    "picture_of",
    "picture_to_json",
    "standalone_svg",
    "svg",
]
