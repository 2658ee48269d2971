"""Checks what ``python -m build`` has put into a folder: ``python .ci/check_release.py dist``.

There must be a wheel and a source archive of geocalib, small enough and of the version in
pyproject.toml, and a wheel of its large weights. The wheels are installed into an environment that
holds nothing else, and calibrate a photo there.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from itertools import product
from pathlib import Path

ROOT = Path(__file__).parents[1]
PHOTO = ROOT / "examples" / "town.jpg"
LARGEST_MB = 40
LARGEST_ERROR_DEG = 2.0
"""Of roll and pitch in the photo, which was rendered."""
NEEDED = ("CHANGELOG.md", "CITATION.cff", "LICENSE", "constraints.txt", "src/geocalib/py.typed")
"""Files of the source archive, among others."""
BASELINES = {file.name for file in (ROOT / "benchmarks" / "baselines").iterdir()}
"""Of use to those alone who compare with them, and larger than all the rest."""


def main(folder: Path) -> None:
    """Raises where something is wrong."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    (wheel,) = folder.glob("geocalib-*.whl")
    (large,) = folder.glob("geocalib_large-*.whl")
    (archive,) = folder.glob("*.tar.gz")
    for file in (wheel, archive):
        megabytes = file.stat().st_size / 1e6
        print(f"{file.name}: {megabytes:.1f} MB")
        assert file.name.startswith(f"geocalib-{version}"), f"{file} is not of version {version}"
        assert megabytes < LARGEST_MB, f"{file} is larger than {LARGEST_MB} MB"
    with tarfile.open(archive) as content:
        names = {name.partition("/")[2] for name in content.getnames()}
    assert names.issuperset(NEEDED), f"{archive} lacks {sorted(set(NEEDED) - names)}"
    with zipfile.ZipFile(wheel) as content:
        names |= set(content.namelist())
    baselines = [name for name in names if Path(name).name in BASELINES]
    assert not baselines, f"weights of baselines stay in the repository: {baselines}"
    with tempfile.TemporaryDirectory() as place:
        answers = calibrate(wheel, large, version, Path(place))
    truth = json.loads(PHOTO.with_suffix(".json").read_text("utf-8"))
    for answer, angle in product(answers, ("roll_deg", "pitch_deg")):
        print(f"{angle}: {answer[angle]:.2f}, true {truth[angle]:.2f}")
        assert abs(answer[angle] - truth[angle]) < LARGEST_ERROR_DEG


def calibrate(wheel: Path, large: Path, version: str, place: Path) -> list[dict[str, float]]:
    """The records of the photo, by the wheel alone and with the large weights, run in an empty
    folder."""
    venv.create(place / "environment", with_pip=True)
    programs = place / "environment" / "bin"
    quiet = ("--quiet", "--disable-pip-version-check", "--no-compile")
    pip = (programs / "pip", "install", *quiet, "-c", ROOT / "constraints.txt")
    subprocess.run([*pip, wheel.resolve()], check=True)

    def geocalib(*words: str | Path) -> str:
        command = [programs / "geocalib", *words]
        return subprocess.run(
            command, cwd=place, check=True, stdout=subprocess.PIPE, text=True
        ).stdout

    assert geocalib("--version").strip() == f"geocalib {version}"
    records = [json.loads(geocalib("calibrate", PHOTO, "--json"))]
    subprocess.run([*pip, large.resolve()], check=True)
    return [*records, json.loads(geocalib("calibrate", PHOTO, "--json", "--weights", "large"))]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
