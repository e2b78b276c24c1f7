"""Which part of the package may import which: the layers of DESIGN.md, read from the source."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PACKAGE = "taskqueue"
INIT = "__init__"


@dataclass(frozen=True, kw_only=True)
class Layer:
    """Parts that may import every layer below, and each other only where `siblings` says so."""

    name: str
    parts: frozenset[str]
    siblings: bool = False


def _layer(name: str, parts: str, *, siblings: bool = False) -> Layer:
    return Layer(name=name, parts=frozenset(parts.split()), siblings=siblings)


# From the bottom up. A part is a module or a package directly below `taskqueue`.
LAYERS = (
    _layer("core", "core exceptions", siblings=True),
    _layer("settings and rules", "access conf rules signals tracing", siblings=True),
    _layer("declarations", "declarations"),
    _layer("models", "migrations models", siblings=True),
    _layer("engine", "engine"),
    _layer("results", "control results schedules", siblings=True),
    _layer("public", "builtin definitions embedded events webhooks workflows", siblings=True),
    _layer("framework", "backend"),
    _layer("monitoring", "monitoring"),
    _layer("channels", "alerts"),
    _layer("runtime", "worker"),
    _layer("package", INIT),
    _layer("display", "display logs"),
    _layer("words", "reason_words"),
    _layer("template tags", "templatetags"),
    _layer("own tasks", "tasks"),
    _layer("faces", "admin api management progress testing"),
    _layer("app", "apps"),
)
STANDARD_LIBRARY_ONLY = LAYERS[0]

# The floors of the engine, from the bottom up. A part is a module or a package directly below it.
# Parts of one floor may import each other.
FLOORS = (
    _layer(
        "rows",
        "apart_conditions keys limit_rows lost making_specs model_rows payloads reader_outages "
        "ready ready_partitions retention rows specs statement transient_errors",
        siblings=True,
    ),
    _layer("connections", "connections notify sessions", siblings=True),
    _layer("dialects", "postgresql sqlite"),
    _layer("dialect", "dialect"),
    _layer(
        "counts and workers",
        "backlogs checkpoints depth_statement depths examinations exports failures forecast "
        "idempotency queue_tasks registration result_parts rollups step_ends sums tally totals "
        "wedged workers",
        siblings=True,
    ),
    _layer(
        "leases",
        "apart broadcast ends limits live_changes multi_worker multi_worker_task record stays "
        "takeover",
        siblings=True,
    ),
    _layer(
        "people",
        "batches call_counts control debouncing enqueue holders places pruning search_owners "
        "surplus workflows",
        siblings=True,
    ),
    _layer("events", "events webhooks", siblings=True),
    _layer("rules and operations", "alerts operations schedules"),
    _layer("verbs", "verbs"),
)
ENGINE, WORKER = "engine", "worker"

# What the processes of a worker share, and what runs in a child or before one. All else is the
# parent's, which runs no code of the project.
SHARED = frozenset(["connections", "frames", "logs", "memory", "outcomes"])
BODIES = "bodies"
CHILD = frozenset({BODIES, "child", "template"})

LEVELS = {part: level for level, layer in enumerate(LAYERS) for part in layer.parts}
ENGINE_LEVELS = {part: level for level, floor in enumerate(FLOORS) for part in floor.parts}


@dataclass(frozen=True, kw_only=True)
class Import:
    """`module`, imported by the file `path` in `line`; `late` inside a function or for types."""

    path: Path
    line: int
    module: str
    late: bool


def violations(root: Path) -> list[str]:
    """Return a line for each import in the package at `root` that goes where it must not."""
    found = [
        f"{part} is in no layer: place it in {Path(__file__).name}"
        for part in sorted(_parts(root) - LEVELS.keys())
    ]
    found += [
        f"engine/{part} is on no floor: place it in {Path(__file__).name}"
        for part in sorted(_parts(root / ENGINE) - {INIT} - ENGINE_LEVELS.keys())
    ]
    for path in sorted(root.rglob("*.py")):
        for imported in _imports(root, path):
            reason = _objection(root, imported)
            reason = reason or _engine_objection(root, imported)
            reason = reason or _worker_objection(root, imported)
            if reason:
                found.append(f"{path.relative_to(root.parent)}:{imported.line}: {reason}")
    return found


def _objection(root: Path, imported: Import) -> str | None:
    source = _part(root, imported.path)
    if source not in LEVELS:
        return None
    names = imported.module.split(".")
    if names[0] != PACKAGE:
        return _foreign_objection(source, names[0])
    target = names[1] if len(names) > 1 else INIT
    if source == target or target not in LEVELS:
        return None
    upwards = LEVELS[target] - LEVELS[source]
    if upwards == 0 and not LAYERS[LEVELS[source]].siblings:
        return f"{source} imports {target}, which stands beside it"
    if upwards > 0:
        return f"{source} imports {target}, which stands above it"
    return None


def _engine_objection(root: Path, imported: Import) -> str | None:
    """Why the import must not be, of a module of the engine that imports another."""
    source, target = _inside(root, ENGINE, imported)
    if source == target or source not in ENGINE_LEVELS or target not in ENGINE_LEVELS:
        return None
    upwards = ENGINE_LEVELS[target] - ENGINE_LEVELS[source]
    if upwards > 0 or (upwards == 0 and not FLOORS[ENGINE_LEVELS[source]].siblings):
        where = "above" if upwards > 0 else "beside"
        return f"engine/{source} imports engine/{target}, which stands {where} it"
    return None


def _worker_objection(root: Path, imported: Import) -> str | None:
    """Why the import must not be, of a module of the worker that imports another."""
    source, target = _inside(root, WORKER, imported)
    if source == target or INIT in (source, target):
        return None
    if source in SHARED and target not in SHARED:
        return f"worker/{source} imports worker/{target}, which stands above it"
    if source in CHILD and target not in SHARED | CHILD:
        return f"worker/{source} imports worker/{target}, which is for the parent"
    if source not in CHILD and target == BODIES:
        return f"worker/{source} imports worker/{target}, which is for children"
    return None


def _inside(root: Path, room: str, imported: Import) -> tuple[str, str]:
    """Return the part of a room that imports, and the part of it that is imported, if both are."""
    names = imported.module.split(".")
    if _part(root, imported.path) != room or names[:2] != [PACKAGE, room] or len(names) < 3:
        return INIT, INIT
    return _part(root / room, imported.path), names[2]


def _foreign_objection(source: str, distribution: str) -> str | None:
    if source in STANDARD_LIBRARY_ONLY.parts and distribution not in sys.stdlib_module_names:
        return f"{source} imports {distribution}, which is not in the standard library"
    return None


@cache
def _parts(root: Path) -> frozenset[str]:
    return frozenset(_part(root, path) for path in root.rglob("*.py"))


def _part(root: Path, path: Path) -> str:
    return path.relative_to(root).parts[0].removesuffix(".py")


def _imports(root: Path, path: Path) -> Iterator[Import]:
    tree = ast.parse(path.read_text(), filename=str(path))
    late = {id(node) for node in _late_nodes(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for module in _modules(root, path, node):
                yield Import(path=path, line=node.lineno, module=module, late=id(node) in late)


def _late_nodes(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield what stands in functions and below `if TYPE_CHECKING`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from ast.walk(node)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for statement in node.body:
                yield from ast.walk(statement)


def _modules(root: Path, path: Path, node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """Yield the full names of what `node` imports; `from taskqueue import engine` is the engine."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    module = node.module or ""
    if node.level:
        package = (PACKAGE, *path.relative_to(root).parent.parts)
        anchor = package[: len(package) - node.level + 1]
        module = ".".join((*anchor, module) if module else anchor)
    if module in (f"{PACKAGE}.{ENGINE}", f"{PACKAGE}.{WORKER}"):
        yield from (f"{module}.{alias.name}" for alias in node.names)
        return
    if module != PACKAGE:
        yield module
        return
    for alias in node.names:
        yield f"{PACKAGE}.{alias.name}" if alias.name in _parts(root) else PACKAGE
