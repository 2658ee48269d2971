"""COLMAP's database: cameras that are known beforehand, and gravity as a prior of each pose.

A new database is laid out as that of COLMAP 4. One that is there already is gone on with: its own
columns say what it can hold, images are found by their names, and all the rest of it (features,
matches, positions) stays as it is. Either everything is written or nothing.

COLMAP looks at photos as they are stored: there is a camera for each stored size and turn, and
gravity is given in the camera frame of these pixels.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory

import numpy as np

from geocalib import console
from geocalib.arrays import Array
from geocalib.cameras import Camera, from_colmap
from geocalib.cameras.exchange import COLMAP_IDS, ColmapCamera
from geocalib.errors import CameraError, FormatError
from geocalib.files import write_bytes
from geocalib.formats.colmap import as_colmap
from geocalib.formats.outputs import NO_GRAVITY, calibrated, convert, destination, image_names
from geocalib.records import dataclass
from geocalib.result.calibration import Calibration, Outcome
from geocalib.result.record import Frame

FILE = "database.db"
FRAME: Frame = "stored"

VERSION = 4_01_00_00
"""The version of the layout of a new database, as COLMAP counts: 4.1."""

SIGNATURE = b"SQLite format 3\0"

CAMERA = 0
"""COLMAP's number for sensors that are cameras."""

UNDEFINED = -1
"""COLMAP's number for positions in no coordinate system."""

NUMBERS = {name: number for number, (name, _) in COLMAP_IDS.items()}

TABLES = (
    "cameras (camera_id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, model INTEGER NOT NULL, "
    "width INTEGER NOT NULL, height INTEGER NOT NULL, params BLOB, "
    "prior_focal_length INTEGER NOT NULL)",
    "rigs (rig_id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, ref_sensor_id INTEGER NOT NULL, "
    "ref_sensor_type INTEGER NOT NULL)",
    "rig_sensors (rig_id INTEGER NOT NULL, sensor_id INTEGER NOT NULL, "
    "sensor_type INTEGER NOT NULL, sensor_from_rig BLOB, "
    "FOREIGN KEY(rig_id) REFERENCES rigs(rig_id) ON DELETE CASCADE)",
    "frames (frame_id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, rig_id INTEGER NOT NULL, "
    "FOREIGN KEY(rig_id) REFERENCES rigs(rig_id) ON DELETE CASCADE)",
    "frame_data (frame_id INTEGER NOT NULL, data_id INTEGER NOT NULL, "
    "sensor_id INTEGER NOT NULL, sensor_type INTEGER NOT NULL, "
    "FOREIGN KEY(frame_id) REFERENCES frames(frame_id) ON DELETE CASCADE)",
    "images (image_id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, name TEXT NOT NULL UNIQUE, "
    "camera_id INTEGER NOT NULL, "
    "CONSTRAINT image_id_check CHECK(image_id >= 0 and image_id < 2147483647), "
    "FOREIGN KEY(camera_id) REFERENCES cameras(camera_id))",
    "pose_priors (pose_prior_id INTEGER PRIMARY KEY NOT NULL, corr_data_id INTEGER NOT NULL, "
    "corr_sensor_id INTEGER NOT NULL, corr_sensor_type INTEGER NOT NULL, position BLOB, "
    "position_covariance BLOB, gravity BLOB, coordinate_system INTEGER NOT NULL)",
)
"""What a new database holds; COLMAP adds the rest when it opens it."""


def write(outcomes: Iterable[Outcome], path: str | Path, frame: Frame = FRAME) -> list[Path]:
    """Write database.db, or add to one. See ``geocalib.formats`` for the path.

    The names of images in a new database begin at the folder that all of them share: that is
    COLMAP's image_path.
    """
    calibrations, file = calibrated(outcomes, frame), destination(path, FILE)
    if file.exists() and file.stat().st_size > 0:
        with _opened(file) as database:
            _Database(database, file).add(calibrations)
    else:
        write_bytes(file, dumps(calibrations, frame))
    return [file]


def dumps(outcomes: Iterable[Outcome], frame: Frame = FRAME) -> bytes:
    """The content of a new database."""
    calibrations = calibrated(outcomes, frame)
    with TemporaryDirectory(prefix="geocalib-") as folder:
        file = Path(folder) / FILE
        with _opened(file, new=True) as database:
            _Database(database, file).add(calibrations)
        return file.read_bytes()


def is_database(path: Path) -> bool:
    """Whether a file is a database of COLMAP's, which ``write`` goes on with."""
    try:
        with _opened(path):
            return True
    except FormatError:
        return False


def read(path: str | Path) -> list[tuple[str, Camera, Array | None]]:
    """Each image by its name, with its camera (a batch of 1), and gravity (3,) in the camera frame
    of the stored pixels: None where the database has none."""
    file = Path(path)
    database = sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)
    try:
        if not {"cameras", "images"} <= _tables(database):
            raise FormatError(f"{file} is a database, but not one of COLMAP's")
        rows = database.execute(
            "SELECT image_id, name, model, width, height, params FROM images JOIN cameras "
            "USING (camera_id) ORDER BY image_id"
        ).fetchall()
        priors = {row[1] for row in database.execute("PRAGMA table_info(pose_priors)")}
        down: dict[int, bytes] = {}
        if {"gravity", "corr_data_id"} <= priors:
            query = "SELECT corr_data_id, gravity FROM pose_priors WHERE corr_sensor_type = ?"
            down = dict(database.execute(query, (CAMERA,)).fetchall())
    except sqlite3.Error as error:
        raise FormatError(f"{file} cannot be read as a database of COLMAP's ({error})") from None
    finally:
        database.close()
    return [
        (name, _camera(file, name, *lens), _direction(down.get(image)))
        for image, name, *lens in rows
    ]


def _camera(file: Path, image: str, model: int, width: int, height: int, blob: bytes) -> Camera:
    if model not in COLMAP_IDS:
        raise FormatError(f"{file}: the camera of {image} has the unknown model {model}")
    try:
        parameters = np.frombuffer(blob or b"", "<f8").tolist()
        return from_colmap(COLMAP_IDS[model][0], parameters, (width, height))
    except (CameraError, ValueError) as error:
        raise FormatError(f"{file}: the camera of {image}: {error}") from None


def _direction(blob: bytes | None) -> Array | None:
    """(3,) of a blob; COLMAP says that there is none by NaN or NULL."""
    if not blob or len(blob) != 24:
        return None
    vector = np.frombuffer(blob, "<f8").copy()
    return vector if np.isfinite(vector).all() and np.linalg.norm(vector) > 0 else None


@dataclass(frozen=True)
class CameraRow:
    """A camera as a row of the table has it."""

    model: int
    width: int
    height: int
    parameters: tuple[float, ...]

    @property
    def row(self) -> tuple[int, int, int, bytes, int]:
        """The last is COLMAP's flag that the focal length is known beforehand."""
        return self.model, self.width, self.height, _blob(self.parameters), 1


def _lens(calibration: Calibration) -> CameraRow:
    camera: ColmapCamera = convert(as_colmap, calibration)
    number = NUMBERS[camera.name]
    return CameraRow(number, calibration.width, calibration.height, camera.parameters)


def _blob(values: Iterable[float]) -> bytes:
    return np.array([*values], "<f8").tobytes()


@contextmanager
def _opened(file: Path, new: bool = False) -> Iterator[sqlite3.Connection]:
    """A database in one transaction, which an error takes back."""
    if not new:
        with file.open("rb") as stream:
            if stream.read(len(SIGNATURE)) != SIGNATURE:
                raise FormatError(f"{file} is no database; name a new file, or one of COLMAP's")
    database = sqlite3.connect(file, isolation_level=None)
    try:
        database.execute("BEGIN IMMEDIATE")
        if new:
            database.execute(f"PRAGMA user_version = {VERSION}")
            for table in TABLES:
                database.execute(f"CREATE TABLE {table}")
        elif not {"cameras", "images"} <= _tables(database):
            raise FormatError(f"{file} is a database, but not one of COLMAP's; name another file")
        yield database
        database.execute("COMMIT")
    except sqlite3.Error as error:
        raise FormatError(
            f"{file} cannot be written as a database of COLMAP's ({error}); is another program "
            "using it?"
        ) from None
    finally:
        # What has not been committed is undone.
        database.close()


def _tables(database: sqlite3.Connection) -> set[str]:
    return {name for (name,) in database.execute("SELECT name FROM sqlite_master")}


class _Database:
    """An open database of COLMAP's of any version."""

    def __init__(self, database: sqlite3.Connection, file: Path) -> None:
        self.run, self.file = database.execute, file
        # COLMAP 3.12 and later keep a rig for each camera and a frame for each image.
        self.has_rigs = "frame_data" in _tables(database)
        # Those before COLMAP 4 have no place for gravity.
        priors = {row[1] for row in self.run("PRAGMA table_info(pose_priors)")}
        self.has_gravity = "gravity" in priors
        self.by_data = "corr_data_id" in priors

    def add(self, calibrations: Sequence[Calibration]) -> None:
        """Cameras and gravity of images."""
        images = image_names(calibrations)
        lenses = [_lens(calibration) for calibration in calibrations]
        known: dict[str, tuple[int, int]] = {
            name: (image, camera)
            for image, name, camera in self.run("SELECT image_id, name, camera_id FROM images")
        }
        if known:
            names = _matched(images, known, self.file)
            found = [
                (known[n], c, s) for n, c, s in zip(names, calibrations, lenses, strict=True) if n
            ]
            rows = self._share([row for row, _, _ in found], [lens for _, _, lens in found])
        else:
            cameras: dict[CameraRow, int] = {}
            for lens in lenses:
                if lens not in cameras:
                    cameras[lens] = self._new_camera(lens)
            rows = [
                (self._new_image(name, cameras[lens]), cameras[lens])
                for name, lens in zip(_relative(images), lenses, strict=True)
            ]
            found = list(zip(rows, calibrations, lenses, strict=True))
        if not self.has_gravity:
            (version,) = self.run("PRAGMA user_version").fetchone()
            console.warn(
                f"{self.file} has no place for gravity (its version is {version}; COLMAP 4 has): "
                "it holds the cameras alone"
            )
            return
        for (image, camera), (_, calibration, _) in zip(rows, found, strict=True):
            if calibration.status != NO_GRAVITY:
                self._set_gravity(image, camera, calibration)

    def _share(
        self, images: Sequence[tuple[int, int]], lenses: Sequence[CameraRow]
    ) -> list[tuple[int, int]]:
        """Give images that are there (with the ids of their cameras) the lenses; the ids of the
        images and of the cameras that they have now."""
        cameras: dict[CameraRow, int] = {}
        for (image, camera), lens in zip(images, lenses, strict=True):
            self._check_size(image, camera, lens)
            # A camera stays the one of the first lens that it turns up with.
            if lens not in cameras and camera not in cameras.values():
                cameras[lens] = camera
        for lens in lenses:
            if lens not in cameras:
                cameras[lens] = self._new_camera(lens)
        for lens, camera in cameras.items():
            self.run(
                "UPDATE cameras SET model = ?, width = ?, height = ?, params = ?, "
                "prior_focal_length = ? WHERE camera_id = ?",
                (*lens.row, camera),
            )
        for (image, camera), lens in zip(images, lenses, strict=True):
            if cameras[lens] != camera:
                self._turn_to(image, camera, cameras[lens])
        return [(image, cameras[s]) for (image, _), s in zip(images, lenses, strict=True)]

    def _check_size(self, image: int, camera: int, lens: CameraRow) -> None:
        """COLMAP refuses images that have not the size of their camera."""
        query = "SELECT width, height FROM cameras WHERE camera_id = ?"
        size = self.run(query, (camera,)).fetchone()
        if size is not None and size != (lens.width, lens.height):
            (name,) = self.run("SELECT name FROM images WHERE image_id = ?", (image,)).fetchone()
            raise FormatError(
                f"{self.file}: {name} has {size[0]} x {size[1]} pixels there, and "
                f"{lens.width} x {lens.height} as it was calibrated; calibrate the photos that "
                "COLMAP reads"
            )

    def _turn_to(self, image: int, old: int, new: int) -> None:
        """Give an image another camera, and leave none without images behind."""
        self.run("UPDATE images SET camera_id = ? WHERE image_id = ?", (new, image))
        if self.by_data:
            self.run(
                "UPDATE pose_priors SET corr_sensor_id = ? WHERE corr_data_id = ? "
                "AND corr_sensor_type = ?",
                (new, image, CAMERA),
            )
        if self.has_rigs:
            self._turn_frame_to(image, new)
        users = self.run("SELECT count(*) FROM images WHERE camera_id = ?", (old,)).fetchone()
        if users == (0,):
            self.run("DELETE FROM cameras WHERE camera_id = ?", (old,))
            if self.has_rigs:
                mine = "ref_sensor_id = ? AND ref_sensor_type = ?"
                self.run(f"DELETE FROM rigs WHERE {mine}", (old, CAMERA))

    def _turn_frame_to(self, image: int, camera: int) -> None:
        """The frame of an image becomes one of the rig of another camera."""
        frame = self.run(
            "SELECT frame_id FROM frame_data WHERE data_id = ? AND sensor_type = ?", (image, CAMERA)
        ).fetchone()
        if frame is None:
            return
        together = self.run("SELECT count(*) FROM frame_data WHERE frame_id = ?", frame).fetchone()
        if together != (1,):
            raise FormatError(
                f"{self.file} holds a rig whose cameras are shared otherwise than here; calibrate "
                "its photos with --shared --cameras CSV, one camera for each of the rig's"
            )
        rig = self._rig_of(camera)
        self.run("UPDATE frames SET rig_id = ? WHERE frame_id = ?", (rig, *frame))
        self.run("UPDATE frame_data SET sensor_id = ? WHERE frame_id = ?", (camera, *frame))

    def _rig_of(self, camera: int) -> int:
        """The id of the rig that consists of a camera."""
        row = self.run(
            "SELECT rig_id FROM rigs WHERE ref_sensor_id = ? AND ref_sensor_type = ?",
            (camera, CAMERA),
        ).fetchone()
        return (
            int(row[0])
            if row
            else self._insert("rigs", ref_sensor_id=camera, ref_sensor_type=CAMERA)
        )

    def _new_camera(self, lens: CameraRow) -> int:
        columns = ("model", "width", "height", "params", "prior_focal_length")
        return self._insert("cameras", **dict(zip(columns, lens.row, strict=True)))

    def _new_image(self, name: str, camera: int) -> int:
        image = self._insert("images", name=name, camera_id=camera)
        if self.has_rigs:
            frame = self._insert("frames", rig_id=self._rig_of(camera))
            self._insert(
                "frame_data", frame_id=frame, data_id=image, sensor_id=camera, sensor_type=CAMERA
            )
        return image

    def _set_gravity(self, image: int, camera: int, calibration: Calibration) -> None:
        """Beside the position, where there is one."""
        gravity = _blob(calibration.gravity.tolist())
        mine = {"corr_data_id": image, "corr_sensor_id": camera, "corr_sensor_type": CAMERA}
        if not self.by_data:
            mine = {"image_id": image}
        where = " AND ".join(f"{name} = ?" for name in mine)
        changed = self.run(
            f"UPDATE pose_priors SET gravity = ? WHERE {where}", (gravity, *mine.values())
        )
        if changed.rowcount == 0:
            # COLMAP takes NULL for zeros.
            unknown = {"position": 3, "position_covariance": 9}
            blobs = {name: _blob([np.nan] * count) for name, count in unknown.items()}
            self._insert(
                "pose_priors", **mine, **blobs, gravity=gravity, coordinate_system=UNDEFINED
            )

    def _insert(self, table: str, **values: object) -> int:
        """The id of a new row."""
        marks = ", ".join("?" * len(values))
        command = f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})"
        return int(self.run(command, (*values.values(),)).lastrowid or 0)


def _relative(images: Sequence[str]) -> list[str]:
    """The paths of images, from the deepest folder that all of them share."""
    paths = [os.path.abspath(image) for image in images]
    shared = os.path.commonpath([os.path.dirname(path) for path in paths])
    names = [PurePath(os.path.relpath(path, shared)).as_posix() for path in paths]
    return [_as_text(name) for name in names]


def _as_text(name: str) -> str:
    """SQLite holds valid text alone."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _matched(images: Sequence[str], known: Mapping[str, object], file: Path) -> list[str | None]:
    """The name in a database of each image: the longest that its path ends in. None for images
    that it does not have, which are named."""
    found: list[str | None] = []
    for image in images:
        parts = PurePath(_as_text(image)).parts
        ends = ("/".join(parts[start:]) for start in range(len(parts)))
        found.append(next((end for end in ends if end in known), None))
    taken = [name for name in found if name is not None]
    if not taken:
        raise FormatError(
            f"{file} has none of these images, but {next(iter(known))}; calibrate the photos that "
            "it was made of"
        )
    if twice := next((name for name in taken if taken.count(name) > 1), None):
        of = [image for image, name in zip(images, found, strict=True) if name == twice]
        raise FormatError(f"{file}: {' and '.join(of[:2])} would both be {twice}; give one of them")
    if missing := [image for image, name in zip(images, found, strict=True) if name is None]:
        console.warn(
            f"{file} does not have {console.count(len(missing), 'image')}, {missing[0]} the first; "
            "left out"
        )
    return found
