"""A report as one page that needs nothing beside it: tables, plots and photographs."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from io import BytesIO
from pathlib import Path
from string import Template

from PIL import Image

from geocalib.files import write_bytes
from geocalib_lab.evaluation.report import Report
from geocalib_lab.evaluation.table import Table
from geocalib_lab.evaluation.worst import Case

PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
:root { color-scheme: light; --ink: #1d2430; --soft: #667085; --line: #e4e7ec; --blue: #2f6db3; }
* { box-sizing: border-box; }
body { margin: 0; background: #f6f7f9; color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 32px 24px 64px; }
h1 { font-size: 26px; margin: 0 0 4px; }
h2 { font-size: 20px; margin: 40px 0 8px; }
h3 { font-size: 15px; margin: 24px 0 6px; }
p, .facts { color: var(--soft); margin: 4px 0 12px; }
section, .card { background: #fff; border: 1px solid var(--line); border-radius: 10px;
  padding: 4px 20px 20px; margin: 16px 0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; margin: 12px 0; font-variant-numeric: tabular-nums; }
th, td { padding: 6px 14px 6px 0; text-align: left; white-space: nowrap;
  border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; font-size: 13px; }
img { max-width: 100%; height: auto; display: block; border-radius: 6px; }
.pair { display: flex; justify-content: space-between; color: var(--soft); font-size: 13px; }
.pair span { width: 50%; }
nav a { color: var(--blue); margin-right: 16px; text-decoration: none; }
</style>
</head>
<body><main>
<h1>$title</h1>
<p>$subtitle</p>
<nav>$links</nav>
<section class="scroll">
$tables
</section>
$sets
</main></body>
</html>
""")

CAPTIONS = {
    "errors": "How large the errors are; the last bar holds all that are larger, and failures.",
    "truth": "Signed errors against the truth, with the medians of classes.",
    "sigmas": "Errors in units of their sigma: true sigmas follow the normal curve and the "
    "dashed line.",
    "ranking": "Whether sigmas tell good answers from bad ones: precision and recall by a "
    "limit on sigma; error against sigma; the median error of the surest answers.",
    "images": "Images of one camera fitted together, beside averages of separate answers: "
    "field of view left, gravity right.",
}
"""Captions of the figures of ``plots``."""


@dataclass(frozen=True)
class SetPage:
    """What the page shows of a set."""

    report: Report
    plots: Mapping[str, Path]
    """PNG files by the figure's name."""
    worst: Sequence[Case]


def write_page(file: Path, tables: Sequence[Table], sets: Sequence[SetPage]) -> None:
    """Write the page with tables, plots and the worst photographs."""
    card = sets[0].report.card
    photos = sum(len(page.report) for page in sets)
    failed = sum(page.report.failed for page in sets)
    text = PAGE.substitute(
        title=f"Evaluation of {escape(card.name)}",
        subtitle=escape(f"{photos} photographs, {failed} without an answer. {card.description}"),
        links="".join(
            f'<a href="#{_anchor(page)}">{escape(page.report.name)}</a>' for page in sets
        ),
        tables="\n".join(table.html() for table in tables),
        sets="\n".join(_set(page) for page in sets),
    )
    write_bytes(file, text.encode("utf-8", errors="backslashreplace"))


def _anchor(page: SetPage) -> str:
    return "set-" + re.sub(r"[^A-Za-z0-9_-]", "-", page.report.name)


def _set(page: SetPage) -> str:
    report = page.report
    parts = [f'<h2 id="{_anchor(page)}">{escape(report.name)}</h2>']
    parts.append(f"<p>{len(report)} photographs, fitted with {escape(report.camera_model)}</p>")
    for name, file in page.plots.items():
        source = _embedded(file.read_bytes(), "png")
        parts.append(f'<div class="card"><h3>{escape(name.capitalize())}</h3>')
        parts.append(f'<img alt="{escape(name)}" src="{source}">')
        parts.append(f"<p>{CAPTIONS[name]}</p></div>")
    if page.worst:
        parts.append("<h3>What went worst</h3>")
        parts += [_case(case) for case in page.worst]
    return "\n".join(parts)


def _case(case: Case) -> str:
    parts = [f'<div class="card"><h3>{escape(case.title)}</h3>']
    parts.append(f'<div class="facts">{" &nbsp;·&nbsp; ".join(map(escape, case.facts))}</div>')
    if case.picture is not None:
        parts.append('<div class="pair"><span>found</span><span>true</span></div>')
        parts.append(f'<img alt="" src="{_embedded(_jpeg(case.picture), "jpeg")}">')
    return "\n".join([*parts, "</div>"])


def _jpeg(picture: Image.Image) -> bytes:
    stream = BytesIO()
    picture.convert("RGB").save(stream, "JPEG", quality=85)
    return stream.getvalue()


def _embedded(content: bytes, kind: str) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"
