"""Drawings of workflows: layers, bars, many steps as few nodes, and texts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskqueue.core.workflow_states import After, StepKind, StepStatus
from taskqueue.declarations.workflows.drawing import (
    Link,
    Node,
    Picture,
    Progress,
    mermaid,
    node_of,
    picture,
    picture_of,
    picture_to_json,
    standalone_svg,
    svg,
)
from taskqueue.declarations.workflows.drawing.layout import DOWN, HEIGHT, layout
from taskqueue.declarations.workflows.drawing.picture import MAX_NODES, TIMES, depths_of
from taskqueue.declarations.workflows.drawing.svg import SIGNS
from tests.workflows import shop

SVG = "{http://www.w3.org/2000/svg}"
NIGHTLY = shop.nightly.build("monday", "secret")
CLEAN = Progress(status="running", members=100, released=60, ended=40, failures=2)


def node(name: str, *, calls: str = "shop.a", status: StepStatus = StepStatus.WAITING) -> Node:
    return Node(name=name, kind=StepKind.TASK, calls=calls, status=status)


def links(*pairs: str) -> list[Link]:
    """Return links of pairs such as `ab`."""
    return [Link(one, other) for one, other in pairs]


def pictured(names: str, pairs: Iterable[str]) -> Picture:
    return picture("p", [node(name) for name in names], links(*pairs))


def layers(drawn: Picture) -> list[str]:
    return ["".join(node.name for node in layer) for layer in drawn.layers]


def test_a_step_lies_one_layer_behind_the_last_that_it_follows() -> None:
    assert layers(pictured("abcd", ["ab", "bc", "ac", "ad"])) == ["a", "bd", "c"]
    assert layers(picture_of(NIGHTLY))[0] == "load"


def test_a_map_is_one_node_with_a_share_for_each_status_of_its_members() -> None:
    drawn = picture_of(NIGHTLY, {"clean": CLEAN})
    (clean,) = [each for each in drawn.nodes if each.name == "clean"]
    assert clean.shares == (("succeeded", 38), ("failed", 2), ("running", 20), ("waiting", 40))
    root = ElementTree.fromstring(svg(drawn))
    widths = [
        float(bar.get("width", 0))
        for bar in root.iter(f"{SVG}rect")
        if "tq-share" in bar.get("class", "")
    ]
    assert widths == [pytest.approx(172 * share, abs=0.1) for share in (0.38, 0.02, 0.2, 0.4)]


def test_members_that_will_not_be_sent_are_cancelled() -> None:
    over = Progress(status="failed", members=10, released=4, ended=4, failures=4)
    assert node_of("a", StepKind.MAP, "b", over).shares == (("failed", 4), ("cancelled", 6))


def test_a_picture_that_is_not_started_waits() -> None:
    drawn = picture_of(NIGHTLY)
    assert drawn.counts == {"waiting": 6}
    assert "6 steps in 5 layers: 6 waiting." in svg(drawn)


@pytest.mark.parametrize("status", StepStatus)
def test_every_status_has_a_sign_a_class_and_a_word(status: StepStatus) -> None:
    drawn = picture("p", [node("a", status=status)], [])
    text = svg(drawn)
    assert f"tq-{status.value} " in text
    assert f">{SIGNS[status]}</text>" in text
    assert f"<title>a, task shop.a: {status.value}</title>" in text
    assert len(set(SIGNS.values())) == len(SIGNS)
    assert f":::{status.value}" in mermaid(drawn)
    assert f"classDef {status.value} " in mermaid(drawn)
    assert f".tq-{status.value} {{" in standalone_svg(drawn)


def test_an_svg_has_a_title_and_a_description() -> None:
    text = svg(picture_of(NIGHTLY), title="Nightly <run>", description="A & B", id_prefix="g7")
    root = ElementTree.fromstring(text)
    assert root.get("role") == "img"
    title, desc = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None
    assert desc is not None
    assert (title.text, desc.text) == ("Nightly <run>", "A & B")
    assert root.get("aria-labelledby") == f"{title.get('id')} {desc.get('id')}"
    assert re.findall(r'id="([^"]+)"', text) == ["g7-title", "g7-desc", "g7-head"]


def test_nodes_may_lead_to_pages() -> None:
    text = svg(picture_of(NIGHTLY), address=lambda node: f"/steps/?name={node.name}&x=1")
    assert '<a href="/steps/?name=load&amp;x=1">' in text
    assert ElementTree.fromstring(text).get("role") == "group"


def test_a_file_brings_its_style_and_an_element_does_not() -> None:
    drawn = picture_of(NIGHTLY)
    root = ElementTree.fromstring(standalone_svg(drawn))
    assert root[0].tag == f"{SVG}style"
    assert "prefers-color-scheme: dark" in str(root[0].text)
    assert "style" not in svg(drawn)


def test_names_cannot_break_out_of_a_drawing() -> None:
    evil = '"><script>alert(1)</script>"]-->x'
    drawn = picture(evil, [node(evil, calls=evil)], [])
    root = ElementTree.fromstring(standalone_svg(drawn))
    assert not list(root.iter(f"{SVG}script"))
    label = mermaid(drawn).splitlines()[1]
    assert label.count('"') == 2
    assert "<" not in label
    assert json.loads(json.dumps(picture_to_json(drawn)))["nodes"][0]["name"] == evil


def test_one_failure_among_thousands_is_seen_in_the_bar() -> None:
    few = Progress(status="succeeded", members=50_000, released=50_000, ended=50_000, failures=1)
    root = ElementTree.fromstring(svg(picture_of(NIGHTLY, {"clean": few})))
    shares = [bar for bar in root.iter(f"{SVG}rect") if "tq-share" in bar.get("class", "")]
    widths = [float(bar.get("width", 0)) for bar in shares]
    assert widths[1] > 2
    assert sum(widths) == pytest.approx(172, abs=0.1)


def test_long_names_keep_both_ends_and_paths_their_last_parts() -> None:
    long = node("x" * 30 + ".end", calls="shop.a.rather.long.module.import_everything")
    text = svg(picture("p", [long, node("第一步" * 10), node("W" * 40)], []))
    assert re.search(r">x{5,}…x{3,}\.end<", text)
    assert ">…import_everything<" in text
    assert f">{'第一步第一'}…{'一步第一步'}<" in text
    assert re.search(r">W{3,6}…W{3,6}<", text)


def test_arrows_tell_after_which_end_they_lead() -> None:
    nodes = [node(name) for name in "abcd"]
    ends = [Link("a", "b"), Link("a", "c", After.FAILED), Link("a", "d", After.ENDED)]
    drawn = picture("p", nodes, ends)
    for when in After:
        assert f"tq-after-{when.value}" in svg(drawn)
    assert "s0 -. failed .-> s2" in mermaid(drawn)
    assert "s0 -- ended --> s3" in mermaid(drawn)


def test_crossed_pairs_are_uncrossed() -> None:
    drawn = pictured("abcd", ["ad", "bc"])
    corners = layout(drawn).corners
    assert (corners["a"][1] < corners["b"][1]) == (corners["d"][1] < corners["c"][1])


@given(st.lists(st.permutations(range(4)), min_size=1, max_size=4))
def test_ways_that_share_no_node_never_cross(orders: list[list[int]]) -> None:
    layers = [[f"{depth}-{place}" for place in range(4)] for depth in range(len(orders) + 1)]
    pairs = [
        (layers[depth][place], layers[depth + 1][order[place]])
        for depth, order in enumerate(orders)
        for place in range(4)
    ]
    nodes = [node(name) for layer in layers for name in layer]
    corners = layout(picture("ways", nodes, [Link(*pair) for pair in pairs])).corners
    for depth in range(len(orders)):
        tops = sorted((corners[a][1], corners[b][1]) for a, b in pairs if a in layers[depth])
        assert [top for _, top in tops] == sorted(top for _, top in tops)


def test_long_arrows_go_around_the_nodes_between() -> None:
    drawn = pictured("abc", ["ab", "bc", "ac"])
    lying = layout(drawn)
    long = lying.arrows[2]
    (_, top) = lying.corners["b"]
    assert len(long) == 4
    assert all(not top <= y <= top + HEIGHT for _, y in long[1:3])


@st.composite
def pictures(draw: st.DrawFn) -> Picture:
    """Draw a picture without cycles."""
    count = draw(st.integers(0, 14))
    pairs = [(one, other) for other in range(count) for one in range(other)]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    nodes = [node(f"n{number}") for number in range(count)]
    return picture("random", nodes, [Link(f"n{a}", f"n{b}") for a, b in chosen])


@given(pictures())
def test_nothing_lies_upon_another_or_outside(drawn: Picture) -> None:
    lying = layout(drawn)
    for layer in drawn.layers:
        tops = sorted(lying.corners[each.name][1] for each in layer)
        gaps = [other - one for one, other in pairwise(tops)]
        assert all(gap >= HEIGHT + DOWN - 1e-6 for gap in gaps)
    points = [*lying.corners.values(), *(point for arrow in lying.arrows for point in arrow)]
    assert all(0 <= x <= lying.width and -1e-6 <= y <= lying.height for x, y in points)
    for link in drawn.links:
        assert lying.corners[link.upstream][0] < lying.corners[link.downstream][0]
    ElementTree.fromstring(standalone_svg(drawn))


def test_the_same_picture_is_always_drawn_the_same() -> None:
    assert standalone_svg(picture_of(NIGHTLY)) == standalone_svg(picture_of(NIGHTLY))


def wide(count: int, *, calls: int = 1) -> Picture:
    nodes = [node("first"), *(node(f"n{i}", calls=f"c{i % calls}") for i in range(count))]
    return picture("wide", nodes, [Link("first", f"n{i}") for i in range(count)])


def test_up_to_300_nodes_are_drawn_one_by_one() -> None:
    assert len(wide(MAX_NODES - 1).nodes) == MAX_NODES


def test_more_nodes_are_collapsed_by_depth_and_definition() -> None:
    drawn = wide(MAX_NODES, calls=3)
    assert [len(layer) for layer in drawn.layers] == [1, 3]
    assert [each.steps for each in drawn.layers[1]] == [100, 100, 100]
    assert len(drawn.links) == 3
    assert drawn.steps == MAX_NODES + 1
    assert f"100 {TIMES} c0" in svg(drawn)


def test_a_collapsed_node_shows_its_worst_step_and_all_in_its_bar() -> None:
    nodes = [node(f"n{i}", status=StepStatus.SUCCEEDED) for i in range(MAX_NODES)]
    drawn = picture("p", [*nodes, node("bad", status=StepStatus.FAILED)], [])
    (whole,) = drawn.nodes
    assert whole.status is StepStatus.FAILED
    assert whole.shares == (("succeeded", MAX_NODES), ("failed", 1))


@pytest.mark.parametrize("calls", [1, 7, 5000])
def test_any_number_of_steps_is_at_most_300_nodes(calls: int) -> None:
    names = [f"n{i}" for i in range(2000)]
    nodes = [node(name, calls=f"c{i % calls}") for i, name in enumerate(names)]
    chained = [Link(one, other) for one, other in pairwise(names)]
    for drawn in (picture("long", nodes, chained), picture("flat", nodes, [])):
        assert len(drawn.nodes) <= MAX_NODES
        assert sum(each.steps for each in drawn.nodes) == 2000
        depths = depths_of([each.name for each in drawn.nodes], drawn.links)
        assert len(depths) == len(drawn.nodes)
        ElementTree.fromstring(svg(drawn))


def test_the_json_of_a_picture_has_names_only() -> None:
    data = picture_to_json(picture_of(NIGHTLY, {"clean": CLEAN}))
    assert data["counts"] == {"running": 1, "waiting": 5}
    assert data["nodes"][1] == {
        "name": "clean", "kind": "map", "calls": "tests.workflows.shop.clean",
        "status": "running", "steps": 1, "layer": 1,
        "shares": {"succeeded": 38, "failed": 2, "running": 20, "waiting": 40},
    }  # fmt: skip
    assert {"from": "summarise", "to": "page", "when": "failed"} in data["links"]
    everything = json.dumps(data) + mermaid(picture_of(NIGHTLY)) + svg(picture_of(NIGHTLY))
    assert "secret" not in everything


def test_an_empty_picture_can_be_drawn() -> None:
    drawn = picture("empty", [], [])
    assert "No steps." in svg(drawn)
    assert mermaid(drawn).startswith("flowchart LR")
