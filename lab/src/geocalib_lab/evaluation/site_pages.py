"""A report as Markdown pages for a site: an index, a page of each set, plots and tables beside.

Unlike ``html_page`` they show no photograph, so that they can be published where those cannot.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from geocalib.files import write_text
from geocalib_lab.evaluation.html_page import CAPTIONS
from geocalib_lab.evaluation.plots import save_curves, save_plots
from geocalib_lab.evaluation.report import Report
from geocalib_lab.evaluation.studies import Study
from geocalib_lab.evaluation.table import Table
from geocalib_lab.evaluation.tables import study_table

INDEX = "index.md"
SUMMARY = "index.csv"
"""All tables of all sets; the index shows the first of them."""
NOTE = re.compile(r"<!-- note -->\n.*?<!-- end -->\n", re.DOTALL)
"""What people have to say on a page; it stays there when the page is written anew."""


@dataclass(frozen=True)
class SiteReport:
    """Where the pages go, and by which command."""

    folder: Path
    command: str

    def files(self, names: Iterable[str]) -> list[Path]:
        """What ``write`` writes for sets of these names, but for plots."""
        beside = [self.folder / f"{name}{kind}" for name in names for kind in (".md", ".csv")]
        return [self.folder / INDEX, self.folder / SUMMARY, *beside]

    def write(
        self,
        tables: Sequence[Table],
        reports: Sequence[Report],
        studies: Mapping[str, Sequence[Study]],
    ) -> None:
        """Write the index with the first table of all sets, the others beside it, and the page of
        each set with its studies, which are given by the name of the set."""
        links = "\n".join(
            f"- [{report.name}]({report.name}.md): {len(report)} photographs, "
            f"{report.failed} without an answer"
            for report in reports
        )
        card = reports[0].card
        parts = [f"# Benchmarks of {card.name}\n", card.description + "\n", f"    {self.command}\n"]
        parts += [*self._note(INDEX), links + "\n"]
        kinds = [
            kind for report in reports for kind in self._write_set(report, studies[report.name])
        ]
        captions = [f"- {kind.capitalize()}: {CAPTIONS[kind]}\n" for kind in dict.fromkeys(kinds)]
        notes = [f"{note}\n" for own in studies.values() for study in own for note in study.notes]
        trained = ["## How others were trained\n", *dict.fromkeys(notes)] if notes else []
        parts += [*map(_section, tables[:1]), f"[All tables]({SUMMARY}) are beside this page.\n"]
        parts += [*trained, "## What the plots show\n", *captions]
        write_text(self.folder / INDEX, "\n".join(parts))
        write_text(self.folder / SUMMARY, "\n".join(table.csv() for table in tables))

    def _note(self, page: str) -> list[str]:
        file = self.folder / page
        return NOTE.findall(file.read_text(encoding="utf-8")) if file.is_file() else []

    def _write_set(self, report: Report, studies: Sequence[Study]) -> list[str]:
        """Write the page of a set, its tables beside it, and return the kinds of its plots."""
        name = report.name
        made = f"{len(report)} photographs, by [one command]({INDEX})."
        parts = [f"# {name}\n", f"{made} [All tables]({name}.csv) are beside this page.\n"]
        parts += self._note(f"{name}.md")
        tables = [study_table(study).csv() for study in studies]
        write_text(self.folder / f"{name}.csv", "\n".join(tables))
        if any(study.quoted for study in studies):
            parts.append("† in the tables: as the paper has it.\n")
        if any(study.notes for study in studies):
            parts.append(f"‡ [how they were trained]({INDEX}#how-others-were-trained)\n")
        plots = save_plots(report, self.folder) | save_curves(list(studies), name, self.folder)
        parts.append(f"## Plots\n\n[What they show]({INDEX}#what-the-plots-show)\n")
        parts += [f"![{kind}]({file.name})\n" for kind, file in plots.items()]
        write_text(self.folder / f"{name}.md", "\n".join(parts))
        return list(plots)


def _section(table: Table) -> str:
    title, _, explained = table.title.partition(": median error")
    note = f"Median error{explained}.\n\n" if explained else ""
    body = table.markdown().partition("\n\n")[2]
    return f"## {title}\n\n{note}{body}"
