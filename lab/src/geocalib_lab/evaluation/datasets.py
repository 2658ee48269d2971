"""Photographs with ground truth: one reader for every layout of folder and table.

======================  ==============  =====================================================
table                   pictures in     columns
======================  ==============  =====================================================
``gt.csv``              ``images/``     image, width, height, roll_deg, pitch_deg, vfov_deg,
                                        k1, model (degrees)
``images.csv``          ``images/``     fname, width, height, roll, pitch, vfov, k1, k2
                                        (radians; the published benchmarks)
``{split}.csv``         ``{split}/``    as ``images.csv`` (openpano)
``phones.csv``          beside it       as ``gt.csv``, and norm_g (degrees)
``photos.csv``          beside it       as ``gt.csv``, without gravity
``gravity.csv``         beside it       image, roll_deg, pitch_deg, norm_g, trust; the rest is in
                                        ``photos.csv`` beside it
any other               beside it       as one of these
======================  ==============  =====================================================

A folder of pictures that tables in the folder above name (``phones/val``) is a set of its own.

Truth by an accelerometer has errors of its own: the columns roll_sigma_deg and
pitch_sigma_deg say how large they are, and a column norm_g (the measured gravity, in g) that they
are those of a phone.

An empty cell is unknown, and so is a whole column that is not there, except for the picture and
its size. Either kind may have the columns magnification, scene and panorama, which sets made of
panoramas have; other columns are ignored. A picture that cannot be opened is no error here: it
is one that a method fails on.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from geocalib.arrays import Array
from geocalib.cameras.camera import Camera
from geocalib.errors import FormatError
from geocalib.geometry.gravity import from_roll_pitch

TABLES = ("gt.csv", "images.csv", "phones.csv", "photos.csv", "train.csv", "val.csv", "test.csv")
FOUND = ("gt.csv", "images.csv", "phones.csv", "photos.csv", "test.csv")
"""The tables of sets that are found by themselves."""
BESIDE = ("phones.csv", "photos.csv")
"""Tables that name their pictures by paths from their own folder."""
GRAVITY = "gravity.csv"
"""Roll and pitch of some of the photographs in the last of these."""
PICTURES = "images"
"""Folder of the pictures of the first two tables; those of a split are in a folder of its name."""

ORIENTATION = 274
"""The EXIF tag of how a picture is turned; from 5 on, width and height are swapped."""

AT_REST = (0.5, 1.2)
"""One sigma of the roll and pitch, in degrees, that a phone's accelerometer tells: its bias, its
motion, and the axis of its lens."""
MOVING = (0.9, 2.2)
"""The same where the measured gravity is further from 1 g than ``STILL``."""
STILL = 0.015
"""Largest deviation of a phone at rest from 1 g, in g."""

ASPECT_TOLERANCE = 0.01
"""By how much, relatively, the sides of a picture may be in another ratio than its table says."""


@dataclass(frozen=True)
class Sample:
    """A photograph and what is known about it. None: unknown."""

    image: Path
    width: int
    height: int
    roll_deg: float | None = None
    pitch_deg: float | None = None
    vfov_deg: float | None = None
    k1: float | None = None
    k2: float | None = None
    camera_model: str = "pinhole"
    """In the words of the table; where it has none, by the distortion it gives."""
    magnification: float | None = None
    """Pixels of the picture per pixel of what it was cut out of, at the centre."""
    scene: str | None = None
    """What kind of place it shows."""
    panorama: str | None = None
    """What it was cut out of."""
    camera_name: str | None = None
    """Equal for photographs of one camera."""
    rig: str | None = None
    """Equal for photographs that cameras mounted together took at once."""
    camera_from_rig: tuple[float, float, float, float] | None = None
    """How its camera is turned in the rig: a quaternion w, x, y, z."""
    roll_sigma_deg: float = 0.0
    """One sigma of the true roll, which was measured, too; 0: exact."""
    pitch_sigma_deg: float = 0.0
    """The same of the pitch."""

    @property
    def gravity(self) -> Array | None:
        """The true direction of gravity, (3,) float64, pointing down."""
        if self.roll_deg is None or self.pitch_deg is None:
            return None
        return from_roll_pitch(*np.deg2rad([self.roll_deg, self.pitch_deg]))

    @property
    def camera(self) -> Camera | None:
        """The true camera, a batch of 1 in float64, if its field of view is known."""
        if self.vfov_deg is None:
            return None
        f = 0.5 * self.height / math.tan(0.5 * math.radians(self.vfov_deg))
        return Camera.create(
            "radial",
            f,
            (self.width, self.height),
            (self.k1 or 0.0, self.k2 or 0.0),
        )


def read_dataset(path: str | Path) -> list[Sample]:
    """The photographs of a folder, or of one of its tables.

    A folder of several splits is ambiguous: name the table, such as ``openpano/test.csv``.
    """
    path = Path(path)
    table = table_of(path)
    if not _pictures(table).is_dir():
        raise FormatError(f"{_pictures(table)} is no folder; the pictures of {table} belong there")
    more = _photos_beside(table) if table.name == GRAVITY else {}
    try:
        with table.open(newline="", encoding="utf-8-sig") as stream:
            rows = csv.reader(stream)
            header = next(rows, [])
            layout = _layout([*header, *next(iter(more.values()), {})], table)
            samples = []
            for cells in rows:
                where = f"{table}, line {rows.line_num}"
                if len(cells) != len(header):
                    raise FormatError(f"{where}: has {len(cells)} cells of {len(header)}")
                row = dict(zip(header, cells, strict=True))
                if not _is_asked(row, path, table):
                    continue
                row = more.get(row.get("image", ""), {}) | row
                samples.append(_sample(row, layout, _pictures(table), where))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise FormatError(f"{table} cannot be read as a table: {error}") from error
    if not samples:
        raise FormatError(f"{table} has no line but its header; add a photograph")
    return samples


def find_sets(path: Path) -> list[Path]:
    """The sets at a path: itself, or, of a folder without a table, the folders in it that have one.

    So a folder with all published sets, each as it was unpacked, is evaluated at once; of one with
    splits the test split is taken.
    """
    if path.is_file() or not path.is_dir() or any((path / name).is_file() for name in TABLES):
        return [path]
    tables = (
        next((folder / name for name in FOUND if (folder / name).is_file()), None)
        for folder in sorted(path.iterdir())
    )
    return [table for table in tables if table is not None] or [path]


def dataset_name(path: str | Path) -> str:
    """What to call the photographs that ``read_dataset`` finds at a path."""
    table = table_of(Path(path)).resolve()
    if _table_above(Path(path)):
        return f"{table.parent.name}-{Path(path).resolve().name}"
    if table.name == GRAVITY:
        return f"{table.parent.name}-gravity"
    pictures = _pictures(table)
    split = pictures not in (table.parent, table.parent / PICTURES)
    return table.parent.name + (f"-{pictures.name}" if split else "")


def table_of(path: Path) -> Path:
    """The table of a folder, or the path itself if it is one."""
    if path.is_file():
        return path
    if above := _table_above(path):
        return above
    found = [path / name for name in TABLES if (path / name).is_file()]
    if not found:
        raise FormatError(f"{path} holds no table; there should be one of {', '.join(TABLES)}")
    if len(found) > 1 and found[0].name not in TABLES[:2]:
        raise FormatError(f"{path} holds {len(found)} splits; name one of them, as {found[-1]}")
    return found[0]


def _table_above(path: Path) -> Path | None:
    """The table of ``BESIDE`` that names the pictures of a folder without a table."""
    if not path.is_dir() or any((path / name).is_file() for name in TABLES):
        return None
    above = path.resolve().parent
    return next((above / name for name in BESIDE if (above / name).is_file()), None)


def _is_asked(row: Mapping[str, str], path: Path, table: Path) -> bool:
    """Whether a row is of a folder that was wanted, and its truth is trusted."""
    if row.get("trust", "1").strip() == "0":
        return False
    alone = path.is_dir() and path.resolve() != table.parent.resolve()
    return not alone or row.get("image", "").partition("/")[0] == path.resolve().name


def _photos_beside(table: Path) -> dict[str, dict[str, str]]:
    """The rows of ``photos.csv`` beside a table of gravities, by their picture."""
    photos = table.with_name(BESIDE[1])
    try:
        with photos.open(newline="", encoding="utf-8-sig") as stream:
            return {row["image"]: row for row in csv.DictReader(stream, restval="")}
    except (OSError, UnicodeDecodeError, csv.Error, KeyError) as error:
        raise FormatError(f"{photos} must tell the sizes of the photographs in {table}") from error


def _pictures(table: Path) -> Path:
    """The folder of a table's pictures."""
    if table.name in (*BESIDE, GRAVITY):
        return table.parent
    split, pictures = table.parent / table.stem, table.parent / PICTURES
    if split.is_dir() and table.stem != PICTURES:
        return split
    return pictures if table.name in TABLES or pictures.is_dir() else table.parent


@dataclass(frozen=True)
class _Layout:
    """The columns of a table, by what they hold."""

    image: str
    roll: str
    pitch: str
    vfov: str
    per_degree: float
    """What one degree is in the table."""


OURS = _Layout("image", "roll_deg", "pitch_deg", "vfov_deg", 1.0)
PUBLISHED = _Layout("fname", "roll", "pitch", "vfov", math.radians(1))


def _layout(header: list[str], table: Path) -> _Layout:
    layout = PUBLISHED if PUBLISHED.image in header else OURS
    for name in (layout.image, "width", "height"):
        if name not in header:
            raise FormatError(
                f"{table}, line 1: there is no column {name}; a table begins with "
                f"{OURS.image} or {PUBLISHED.image}, width, height"
            )
    if table.name != GRAVITY and (
        twice := next((name for name in header if header.count(name) > 1), None)
    ):
        raise FormatError(f"{table}, line 1: column {twice} is there twice; remove one")
    return layout


def _sample(row: Mapping[str, str], layout: _Layout, pictures: Path, where: str) -> Sample:
    def number(column: str, largest: float = math.inf) -> float | None:
        """A number whose size is at most so large, or None for an empty cell."""
        text = row.get(column, "").strip()
        if not text:
            return None
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not (math.isfinite(value) and abs(value) <= largest):
            limit = "" if math.isinf(largest) else f" within {largest:.6g}"
            raise FormatError(f"{where}: {column} is {text!r}, not a number{limit}")
        return value

    def angle(column: str, largest_deg: float) -> float | None:
        value = number(column, largest_deg * layout.per_degree)
        return None if value is None else value / layout.per_degree

    def positive(column: str) -> float:
        value = number(column)
        if value is None or value <= 0:
            raise FormatError(f"{where}: {column} is {row[column]!r}, not a positive number")
        return value

    image = pictures / row[layout.image]
    width, height = round(positive("width")), round(positive("height"))
    _check_picture(image, (width, height), f"{where}: {layout.image}")
    vfov_deg = angle(layout.vfov, 180)
    if vfov_deg is not None and not 0 < vfov_deg < 180:
        raise FormatError(f"{where}: {layout.vfov} is {row[layout.vfov]!r}, not a field of view")
    k1, k2 = number("k1"), number("k2")
    norm_g = number("norm_g")
    measured = (0.0, 0.0)
    if norm_g is not None:
        measured = AT_REST if abs(norm_g - 1) <= STILL else MOVING
    roll_sigma, pitch_sigma = (
        measured[i] if (sigma := number(column)) is None else abs(sigma)
        for i, column in enumerate(("roll_sigma_deg", "pitch_sigma_deg"))
    )
    by_distortion = "radial" if k2 else "simple_radial" if k1 is not None else "pinhole"
    return Sample(
        image=image,
        width=width,
        height=height,
        roll_deg=angle(layout.roll, 180),
        pitch_deg=angle(layout.pitch, 90),
        vfov_deg=vfov_deg,
        k1=k1,
        k2=k2,
        camera_model=row.get("model", "").strip() or by_distortion,
        magnification=number("magnification"),
        scene=row.get("scene", "").strip() or None,
        panorama=row.get("panorama", "").strip() or None,
        camera_name=row.get("camera", "").strip() or None,
        rig=row.get("rig", "").strip() or None,
        camera_from_rig=_rotation(row.get("rotation", ""), where),
        roll_sigma_deg=roll_sigma,
        pitch_sigma_deg=pitch_sigma,
    )


def _rotation(cell: str, where: str) -> tuple[float, float, float, float] | None:
    if not cell.strip():
        return None
    try:
        w, x, y, z = (float(word) for word in cell.split())
    except ValueError:
        w = x = y = z = 0.0
    if not 0 < math.hypot(w, x, y, z) < math.inf:
        raise FormatError(f"{where}: rotation is {cell!r}, not a quaternion w x y z")
    return w, x, y, z


def picture_size(image: Path) -> tuple[int, int] | None:
    """Width and height of a picture, turned as its file asks for; None if it cannot be opened."""
    try:
        with Image.open(image) as picture:
            width, height = picture.size
            turned = picture.getexif().get(ORIENTATION, 1) >= 5
    except (OSError, ValueError):
        return None
    return (height, width) if turned else (width, height)


def _check_picture(image: Path, size: tuple[int, int], where: str) -> None:
    """A picture must be turned as its table has it."""
    found = picture_size(image)
    if found is None:
        return
    width, height = found
    if abs(width * size[1] / (height * size[0]) - 1) > ASPECT_TOLERANCE:
        raise FormatError(
            f"{where}: {image.name} is {width}x{height}, not {size[0]}x{size[1]} or in its ratio"
        )
