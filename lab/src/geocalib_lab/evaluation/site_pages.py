"""A report as pages in Markdown, for a site: an index, a page of each set, plots beside them.

Unlike ``html_page`` they show no photograph, so that they can be published where those cannot.
"""

from __future__ import annotations

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
NOTES = "notes"
"""Folder of what people have to say, by the names of the pages that show it below the command."""


@dataclass(frozen=True)
class SiteReport:
    """Where the pages go, and by which command."""

    folder: Path
    command: str

    def files(self, names: Iterable[str]) -> list[Path]:
        """What ``write`` writes for sets of these names, but for plots."""
        return [self.folder / INDEX, *(self.folder / f"{name}.md" for name in names)]

    def write(
        self,
        tables: Sequence[Table],
        reports: Sequence[Report],
        studies: Mapping[str, Sequence[Study]],
    ) -> None:
        """tables: of all sets; studies: by the name of the set."""
        made = f"    {self.command}\n"
        links = "\n".join(
            f"- [{report.name}]({report.name}.md): {len(report)} photographs, "
            f"{report.failed} without an answer"
            for report in reports
        )
        card = reports[0].card
        parts = [f"# Benchmarks of {card.name}\n", card.description + "\n", made]
        parts += [*self._note(INDEX), links + "\n"]
        write_text(self.folder / INDEX, "\n".join([*parts, *map(_section, tables)]))
        for report in reports:
            own = [study_table(study) for study in studies[report.name]]
            self._write_set(report, own, studies[report.name], made)

    def _note(self, page: str) -> list[str]:
        file = self.folder / NOTES / page
        return [file.read_text(encoding="utf-8")] if file.is_file() else []

    def _write_set(
        self, report: Report, tables: Sequence[Table], studies: Sequence[Study], made: str
    ) -> None:
        name = report.name
        parts = [f"# {name}\n", f"{len(report)} photographs, by\n", made]
        parts += self._note(f"{name}.md")
        for table, study in zip(tables, studies, strict=True):
            parts.append(_section(table))
            if study.quoted:
                parts.append("† as the paper has it.\n")
        plots = save_plots(report, self.folder) | save_curves(list(studies), name, self.folder)
        for kind, file in plots.items():
            parts.append(f"## {kind.capitalize()}\n\n![{kind}]({file.name})\n\n{CAPTIONS[kind]}\n")
        write_text(self.folder / f"{name}.md", "\n".join(parts))


def _section(table: Table) -> str:
    title, _, explained = table.title.partition(": median error")
    note = f"Median error{explained}.\n\n" if explained else ""
    body = table.markdown().partition("\n\n")[2]
    return f"## {title}\n\n{note}{body}"
