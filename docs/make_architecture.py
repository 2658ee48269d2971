"""Draw how the packages stand on each other, as their imports have it:
``python docs/make_architecture.py``.

An arrow leads from a package to one that it imports. What follows from other arrows is left out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "pictures" / "architecture.png"

STORY = {
    "cli": "options to a request",
    "batch": "photos by the million",
    "server": "calibration over HTTP",
    "video": "one lens, smooth gravity",
    "viz2d": "its plots",
    "utils": "its helpers",
    "perspective_fields": "its fields",
    "extractor": "its GeoCalib",
    "gravity": "its Gravity",
    "published_api": "as the published package",
    "pipeline": "prepare, predict, solve",
    "rig": "cameras on one mount",
    "sets": "many photos of few cameras",
    "localize": "pose from matches",
    "level": "models set upright",
    "overlay": "drawn on the photo",
    "formats": "files of other programs",
    "console": "words at a terminal",
    "priors": "what files and sensors know",
    "lines": "straight edges",
    "result": "calibration, sigmas, record",
    "imaging": "photos in, pictures out",
    "nets": "networks and weights",
    "solver": "fields to cameras",
    "synthetic": "a small town",
    "geometry": "axes, gravity, fields",
    "files": "what may be written",
    "cameras": "one module per model",
    "chi_square": "how likely chance is",
    "arrays": "NumPy and torch alike",
    "records": "quick dataclasses",
    "errors": "one class per failure",
}
"""What each package is for."""

ACROSS = 3.5
"""Between the middles of two boxes."""

Graph = Mapping[str, set[str]]


def modules(root: Path = ROOT / "src") -> dict[str, Path]:
    """The files of the package, by the names of their modules."""
    found = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(known: Mapping[str, Path]) -> dict[str, set[str]]:
    """The modules that each imports, at once, later, or only for types."""
    graph: dict[str, set[str]] = {}
    for module, path in known.items():
        found = graph.setdefault(module, set())
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = {f"{node.module}.{alias.name}" for alias in node.names}
                found |= {name if name in known else node.module for name in names}
        found.intersection_update(known)
        found.discard(module)
    return graph


def circles(graph: Graph) -> list[list[str]]:
    """Members that can be reached from themselves, those that reach each other together."""
    reached = {node: _reachable(graph, node) for node in graph}
    groups = {
        tuple(sorted(other for other in reached[node] if node in reached[other]))
        for node in graph
        if node in reached[node]
    }
    return [list(group) for group in sorted(groups)]


def _reachable(graph: Graph, start: str) -> set[str]:
    found: set[str] = set()
    todo = [start]
    while todo:
        for other in graph.get(todo.pop(), ()):
            if other not in found:
                found.add(other)
                todo.append(other)
    return found


def packages(graph: Graph) -> dict[str, set[str]]:
    """The same between packages; the module geocalib itself, which has all their names, aside."""
    result: dict[str, set[str]] = {}
    for module, others in graph.items():
        if (package := package_of(module)) is not None:
            found = result.setdefault(package, set())
            found |= {other for name in others if (other := package_of(name)) is not None}
            found.discard(package)
    return result


def package_of(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] != "__main__" else None


def layers(graph: Graph) -> dict[str, int]:
    """How high each package stands: above all that it imports, below all that import it."""
    height: dict[str, int] = {}

    def of(name: str) -> int:
        if name not in height:
            height[name] = 1 + max((of(other) for other in graph[name]), default=-1)
        return height[name]

    for name in graph:
        of(name)
    # As high as what imports it allows, so that arrows are short.
    for name in sorted(graph, key=height.__getitem__, reverse=True):
        above = [height[other] for other, others in graph.items() if name in others]
        height[name] = min(above) - 1 if above else height[name]
    return height


def reduced(graph: Graph) -> dict[str, set[str]]:
    """Without the arrows that follow from others."""
    reached = {name: _reachable(graph, name) for name in graph}
    return {
        name: {one for one in others if not any(one in reached[other] for other in others - {one})}
        for name, others in graph.items()
    }


def draw(graph: Graph, path: Path) -> None:
    """Packages as boxes in rows, the foundations at the bottom."""
    from matplotlib.figure import Figure

    # Everything raises errors: it would only be arrows.
    graph = {name: others - {"errors"} for name, others in graph.items() if name != "errors"}
    height = layers(graph)
    rows: dict[int, list[str]] = {}
    for name in sorted(graph, key=list(STORY).index):
        rows.setdefault(height[name], []).append(name)
    at = {
        # Every other row is shifted, or arrows would pass behind boxes that they do not mean.
        name: (ACROSS * (i - 0.5 * (len(row) - 1) + (level % 2 - 0.5) / 2), 1.35 * level)
        for level, row in rows.items()
        for i, name in enumerate(row)
    }
    across = ACROSS * (max(map(len, rows.values())) + 0.5)
    figure = Figure(figsize=(across / 2.1, 1.35 * len(rows) / 1.6), dpi=130)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(-0.5 * across, 0.5 * across)
    axes.set_ylim(-0.6, 1.35 * (len(rows) - 1) + 0.6)
    for name, others in reduced(graph).items():
        for other in others:
            (x, y), (u, v) = at[name], at[other]
            # Around the boxes between, which would seem to be meant.
            bow = 0.45 if height[name] - height[other] > 1 and abs(x - u) < ACROSS else 0.0
            bow = -bow if x + u > ACROSS / 2 else bow
            arrow = {"arrowstyle": "-|>", "color": "#9aa5b1", "linewidth": 1.0}
            arrow["connectionstyle"] = f"arc3,rad={bow}"
            axes.annotate("", (u, v + 0.36), (x, y - 0.36), arrowprops=arrow, zorder=1)
    for name, (x, y) in at.items():
        main = name in MAIN
        axes.text(
            x,
            y,
            f"{name}\n{STORY[name]}",
            ha="center",
            va="center",
            fontsize=9,
            linespacing=1.5,
            color="#102a43",
            bbox={
                "boxstyle": "round,pad=0.45",
                "facecolor": "#ffe8b8" if main else "#f0f4f8",
                "edgecolor": "#d9822b" if main else "#bcccdc",
            },
            zorder=2,
        )
    figure.savefig(path)


MAIN = ("imaging", "nets", "geometry", "solver", "result", "pipeline", "formats")
"""The way of a photo, drawn in another colour."""


def main(arguments: Iterable[str] = ()) -> None:
    draw(packages(imports(modules())), PICTURE)


if __name__ == "__main__":
    main()
