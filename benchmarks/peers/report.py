"""The tables and charts of a comparison, as a page of the documentation."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any
from xml.sax.saxutils import escape

from benchmarks.peers.brokers import DRIVERS
from benchmarks.peers.peers import PEERS

PAGE = "comparison.md"
OURS = "taskqueue"
KINDS = {
    "one worker": "drain, one worker (tasks/s)",
    "two workers": "drain, two workers (tasks/s)",
    "enqueue one": "enqueue one by one (tasks/s)",
    "enqueue many": "enqueue 10,000 (tasks/s)",
}
ONCE = {
    "p50": "pick-up p50 (ms)",
    "p99": "pick-up p99 (ms)",
    "asked": "idle: transactions or commands a second",
    "memory": "idle: memory (MB, PSS)",
}
ROW, BAR, LEFT, RIGHT = 24, 14, 190, 110
WIDTH = 760
STYLE = """<style>
.page { fill: #fff } text { fill: #1f2328 } path { stroke: #1f2328 }
.ours { fill: #1b6e53 } .theirs { fill: #a3acb6 }
@media (prefers-color-scheme: dark) {
  .page { fill: #0d1117 } text { fill: #e6edf3 } path { stroke: #e6edf3 }
  .ours { fill: #2e9e78 } .theirs { fill: #57606a }
}
</style>"""


def write(result: Mapping[str, Any], folder: Path | None) -> None:
    """Print the page, or write it and its charts into the folder."""
    text = page(result)
    if folder is None:
        print(text)
        return
    (folder / "images").mkdir(parents=True, exist_ok=True)
    (folder / PAGE).write_text(text)
    for kind, title in KINDS.items():
        values = {
            name: found
            for name, rounds in result["rounds"].items()
            if (found := _known(rounds.get(kind, [])))
        }
        (folder / "images" / f"{_slug(kind)}.svg").write_text(chart(title, values))


def page(result: Mapping[str, Any]) -> str:
    """All of it as Markdown."""
    parts = [
        "# Comparison with other task queues",
        "",
        "This page is made by `make benchmark-peers`. The drivers are in",
        "`benchmarks/peers/drivers`, with the settings that each queue's documentation",
        "recommends for throughput. All queues took turns in one run, so compare ratios rather",
        "than rates. Bodies append one byte to a file; rates are measured from these bytes,",
        "between 25 % and 95 % of the tasks. The tables give medians, with the range over the",
        "rounds in parentheses; in the charts, the range is a line across the bar. Memory is",
        "that of all processes of a worker, each with its share of the pages that it shares",
        "with others (PSS).",
        "",
        "PostgreSQL writes each commit to disk before it responds. Redis writes its log once a",
        "second, as its manual recommends: if its machine crashes, the writes of the last",
        "second are lost. So its figures come with a weaker guarantee.",
        "",
        f"{result['surroundings']}. Versions: "
        + ", ".join(f"{name} {version}" for name, version in result["versions"].items())
        + ".",
        "",
    ]
    for kind, title in KINDS.items():
        parts += [f"![{title}](images/{_slug(kind)}.svg)", ""]
    parts += ["| queue | on | " + " | ".join(KINDS.values()) + " |", "| --- " * 6 + "|"]
    brokers = {peer.name: peer.broker for peer in PEERS}
    for name, rounds in result["rounds"].items():
        failed = result["failures"][name]
        cells = [_cell(rounds.get(kind, []), "failed" * (kind in failed)) for kind in KINDS]
        parts.append(f"| {name} | {brokers[name]} | " + " | ".join(cells) + " |")
    head = "| queue | " + " | ".join(ONCE.values()) + " | tasks of a worker killed by `kill -9` |"
    parts += ["", head, "| --- " * 6 + "|"]
    for name, once in result["once"].items():
        if once:
            cells = [_number(once[kind]) if kind in once else "-" for kind in ONCE]
            parts.append(f"| {name} | " + " | ".join(cells) + f" | {_recovery(once)} |")
    parts += ["", "## Where others are ahead", "", *_losses(result), ""]
    parts += ["## How each was set up", "", *_settings(result), ""]
    failed = [
        f"- {name}, {what}: `{message.strip().splitlines()[-1][:300]}`"
        for name, messages in result["failures"].items()
        for what, message in messages.items()
    ]
    if failed:
        parts += ["## What failed", "", *failed, ""]
    return "\n".join(parts)


def _losses(result: Mapping[str, Any]) -> list[str]:
    """A line for each figure in which others are ahead: by what ratio, or with what value."""
    lines = []
    ours = result["rounds"].get(OURS, {})
    for kind, title in KINDS.items():
        ratios = {
            name: ratio
            for name, rounds in result["rounds"].items()
            if not name.startswith(OURS)
            and (ratio := _ratio(rounds.get(kind, []), ours.get(kind, []))) > 1
        }
        if ratios:
            order = sorted(ratios.items(), key=lambda each: -each[1])
            ahead = [f"{name} {ratio:.2f}" for name, ratio in order]
            lines.append(f"- {title}, times taskqueue's rate: {', '.join(ahead)}.")
    for kind, title in ONCE.items():
        mine = result["once"].get(OURS, {}).get(kind, 0.0)
        less = {
            name: once[kind]
            for name, once in result["once"].items()
            if name != OURS and once.get(kind, mine) < mine
        }
        if less:
            order = sorted(less.items(), key=lambda each: each[1])
            ahead = [f"{name} {_number(value)}" for name, value in order]
            lines.append(f"- {title}, taskqueue {_number(mine)}: {', '.join(ahead)}.")
    return lines or ["Nowhere in this run."]


def _ratio(theirs: Sequence[float | None], ours: Sequence[float | None]) -> float:
    """The median of the ratios within one round, for both met the same load of the machine."""
    pairs = zip(theirs, ours, strict=False)
    return median([a / b for a, b in pairs if a and b] or [0.0])


def _settings(result: Mapping[str, Any]) -> list[str]:
    """Return the docstring of each driver, which stands beside the settings themselves."""
    packages = {peer.driver: peer.package for peer in PEERS if peer.name in result["rounds"]}
    lines = []
    for driver, package in packages.items():
        text = ast.get_docstring(ast.parse((DRIVERS / f"with_{driver}.py").read_text()))
        assert text is not None
        lines.append(f"- {package} {result['versions'][package]}: {' '.join(text.split())}")
    return lines


def _recovery(once: Mapping[str, float]) -> str:
    if "ended" not in once:
        return "-"
    if once["ended"] >= once["of"]:
        return f"all ended after {once['seconds']:.0f} s"
    return f"{once['ended']:.0f} of {once['of']:.0f} ended within {once['seconds']:.0f} s"


def _known(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _cell(rounds: Sequence[float | None], failed: str) -> str:
    values = _known(rounds)
    if not values:
        return failed or "-"
    return f"{_number(median(values))} ({_number(min(values))}-{_number(max(values))})"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _slug(kind: str) -> str:
    return "peers-" + kind.replace(" ", "-")


def chart(title: str, values: Mapping[str, Sequence[float]]) -> str:
    """Horizontal bars of the medians with their ranges, the fastest first."""
    order = sorted(values, key=lambda name: -median(values[name]))
    most = max((max(each) for each in values.values()), default=1)
    scale = (WIDTH - LEFT - RIGHT) / most
    height = ROW * len(order) + 40
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img"'
        f' aria-label="{escape(title)}" font-family="system-ui, sans-serif" font-size="13">',
        STYLE,
        f'<rect class="page" width="{WIDTH}" height="{height}"/>',
        f'<text x="8" y="20" font-weight="600">{escape(title)}</text>',
    ]
    for number, name in enumerate(order):
        top = 34 + number * ROW
        middle, low, high = median(values[name]), min(values[name]), max(values[name])
        side = "ours" if name.startswith(OURS) else "theirs"
        y = top + BAR / 2
        lines += [
            f'<text x="{LEFT - 8}" y="{top + 11}" text-anchor="end">{escape(name)}</text>',
            f'<rect class="{side}" x="{LEFT}" y="{top}" width="{middle * scale:.1f}"'
            f' height="{BAR}"/>',
            f'<path d="M{LEFT + low * scale:.1f} {y}H{LEFT + high * scale:.1f}"/>',
            f'<text x="{LEFT + high * scale + 6:.1f}" y="{top + 11}">{_number(middle)}</text>',
        ]
    return "\n".join([*lines, "</svg>", ""])
