"""COLMAP's database: what COLMAP itself finds in it, of the version installed and of pycolmap's."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from calibrations import one, several
from geocalib.errors import FormatError
from geocalib.formats import colmap_database
from geocalib.result.calibration import Calibration
from peers import Note, note

TOWN = Path(__file__).parents[2] / "examples" / "town.jpg"

NAMES = ["left/a.jpg", "left/b.jpg", "right/a.jpg"]


def rows(path: Path, query: str) -> list[tuple[object, ...]]:
    with sqlite3.connect(path) as database:
        return database.execute(query).fetchall()


def older(path: Path, lenses: int = 3) -> None:
    """A database as COLMAP 3.8 leaves it after feature_extractor, but for the features."""
    with sqlite3.connect(path) as database:
        database.executescript(
            "PRAGMA user_version = 3800;"
            "CREATE TABLE cameras (camera_id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, model "
            "INTEGER NOT NULL, width INTEGER NOT NULL, height INTEGER NOT NULL, params BLOB, "
            "prior_focal_length INTEGER NOT NULL);"
            "CREATE TABLE images (image_id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, name TEXT "
            "NOT NULL UNIQUE, camera_id INTEGER NOT NULL, prior_qw REAL, prior_tx REAL);"
        )
        for number, calibration in enumerate(several()[:lenses], 1):
            guess = np.array([700.0, 1, 1, 0]).tobytes()
            size = (calibration.width, calibration.height)
            database.execute(
                "INSERT INTO cameras VALUES (?, 2, ?, ?, ?, 0)", (number, *size, guess)
            )
        for number, name in enumerate(NAMES, 1):
            camera = min(number, lenses)
            database.execute("INSERT INTO images VALUES (?, ?, ?, 0.5, 7)", (number, name, camera))


def of_folder(folder: str) -> list[Calibration]:
    return [replace(c, image=f"{folder}/{c.image}") for c in several()]


class TestPyColmap:
    """As the current COLMAP reads it."""

    @pytest.fixture(autouse=True)
    def _peer(self) -> None:
        self.pycolmap = pytest.importorskip("pycolmap")

    def test_a_new_one(self, tmp_path: Path, record_property: Note) -> None:
        (path,) = colmap_database.write(of_folder("/photos"), tmp_path)
        assert path == tmp_path / "database.db"
        with self.pycolmap.Database.open(str(path)) as database:
            cameras = {camera.camera_id: camera for camera in database.read_all_cameras()}
            images = database.read_all_images()
            priors = database.read_all_pose_priors()
            assert len(database.read_all_rigs()) == len(cameras) == 2
            assert len(database.read_all_frames()) == len(priors) == 3
        # Names begin below the folder that all images share.
        assert [image.name for image in images] == NAMES
        assert [image.camera_id for image in images] == [1, 1, 2]
        for image, prior, calibration in zip(images, priors, several(), strict=True):
            camera = cameras[image.camera_id]
            assert camera.has_prior_focal_length
            assert (camera.width, camera.height) == (calibration.width, calibration.height)
            assert camera.model.name == "SIMPLE_RADIAL"
            assert camera.params.tolist() == [calibration.fx, *calibration.K[:2, 2], -0.12]
            assert prior.has_gravity()
            assert not prior.has_position()
            assert prior.gravity.tolist() == calibration.gravity.tolist()
            assert prior.corr_data_id == image.data_id
        note(record_property, "colmap-database", "pycolmap", 0)

    def test_one_that_it_has_made(self, tmp_path: Path) -> None:
        """Photos without a shared camera, two of which turn out to be of one; a position stays."""
        path = tmp_path / "database.db"
        with self.pycolmap.Database.open(str(path)) as database:
            for name, calibration in zip(NAMES, several(), strict=True):
                size = (calibration.width, calibration.height)
                camera = self.pycolmap.Camera.create_from_model_name(
                    1, "SIMPLE_RADIAL", 700.0, *size
                )
                camera.camera_id = database.write_camera(camera)
                rig = self.pycolmap.Rig()
                rig.add_ref_sensor(camera.sensor_id)
                image = self.pycolmap.Image(name=name, camera_id=camera.camera_id)
                image.image_id = database.write_image(image)
                frame = self.pycolmap.Frame()
                frame.rig_id = database.write_rig(rig)
                frame.add_data_id(image.data_id)
                database.write_frame(frame)
                prior = self.pycolmap.PosePrior(position=np.array([1.0, 2.0, image.image_id]))
                prior.corr_data_id = image.data_id
                database.write_pose_prior(prior)
        colmap_database.write(of_folder("/elsewhere/photos"), path)
        with self.pycolmap.Database.open(str(path)) as database:
            cameras = {camera.camera_id: camera for camera in database.read_all_cameras()}
            images, frames = database.read_all_images(), database.read_all_frames()
            rigs = {rig.rig_id: rig for rig in database.read_all_rigs()}
            priors = database.read_all_pose_priors()
        assert [image.camera_id for image in images] == [1, 1, 3]
        assert {*cameras} == {1, 3} == {rig.ref_sensor_id.id for rig in rigs.values()}
        assert all(camera.params[0] == 500 for camera in cameras.values())
        for image, frame in zip(images, frames, strict=True):
            assert rigs[frame.rig_id].ref_sensor_id.id == image.camera_id
            (prior,) = (prior for prior in priors if prior.corr_data_id == image.data_id)
            assert prior.position.tolist() == [1, 2, image.image_id]
            assert prior.has_gravity()

    def test_writing_again_changes_nothing(self, tmp_path: Path) -> None:
        path = tmp_path / "database.db"
        colmap_database.write(several(), path)
        every = [f"SELECT * FROM {name}" for name in ("cameras", "images", "pose_priors", "frames")]
        before = [rows(path, query) for query in every]
        colmap_database.write(several(), path)
        assert [rows(path, query) for query in every] == before


def test_one_of_an_older_colmap(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It has no place for gravity, which is said; all else that it holds stays."""
    path = tmp_path / "database.db"
    older(path)
    colmap_database.write(of_folder("photos"), path)
    assert rows(path, "SELECT * FROM images") == [
        (1, "left/a.jpg", 1, 0.5, 7),
        (2, "left/b.jpg", 1, 0.5, 7),
        (3, "right/a.jpg", 3, 0.5, 7),
    ]
    cameras = rows(path, "SELECT camera_id, model, width, height, prior_focal_length FROM cameras")
    assert cameras == [(1, 2, 640, 480, 1), (3, 2, 480, 640, 1)]
    assert "no place for gravity (its version is 3800" in capsys.readouterr().err


def test_a_camera_that_is_two(tmp_path: Path) -> None:
    path = tmp_path / "database.db"
    older(path, lenses=1)
    with sqlite3.connect(path) as database:
        database.execute("DELETE FROM images WHERE image_id = 3")
    first, second, _ = several()
    other = replace(second, cameras=one(f=600.0).cameras)
    colmap_database.write([first, other], path)
    cameras = rows(path, "SELECT camera_id, params FROM cameras")
    focal = {number: np.frombuffer(blob)[0] for number, blob in cameras}  # type: ignore[call-overload]
    found = rows(path, "SELECT name, camera_id FROM images")
    assert [(name, focal[camera]) for name, camera in found] == [(NAMES[0], 500), (NAMES[1], 600)]


@pytest.mark.skipif(shutil.which("colmap") is None, reason="COLMAP is not installed")
def test_colmap_itself_goes_on_with_it(tmp_path: Path, record_property: Note) -> None:
    """The program that is installed makes the database, and extracts features with the lens."""
    photos, path = tmp_path / "photos", tmp_path / "database.db"
    photos.mkdir()
    Image.open(TOWN).resize((320, 240)).save(photos / "a.jpg")
    command = ["colmap", "database_creator", "--database_path", path]
    subprocess.run(command, check=True, capture_output=True)
    known = one("simple_radial", f=333.0, size=(320, 240), image=str(photos / "a.jpg"))
    colmap_database.write([known], path)
    command = ["colmap", "feature_extractor", "--database_path", path, "--image_path", photos]
    done = subprocess.run(
        [*command, "--SiftExtraction.use_gpu", "0", "--SiftExtraction.num_threads", "1"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert "Focal Length:    333.00px (Prior)" in done.stdout + done.stderr
    ((parameters,),) = rows(path, "SELECT params FROM cameras")
    assert np.frombuffer(parameters).tolist() == [333, 310.3, 251.7, -0.12]  # type: ignore[call-overload]
    assert rows(path, "SELECT image_id, rows > 10 FROM keypoints") == [(1, 1)]
    note(record_property, "colmap-database", "COLMAP", 0)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a photo", "no database; name a new file"),
        (b"SQLite format 3\0 and then nothing of it" * 30, "cannot be written as a database"),
    ],
)
def test_files_of_others_stay_as_they_are(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "database.db"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=message):
        colmap_database.write(several(), path)
    assert path.read_bytes() == content
    assert not colmap_database.is_database(path)


def test_databases_of_others_stay_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "database.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE songs (title TEXT)")
    content = path.read_bytes()
    with pytest.raises(FormatError, match="but not one of COLMAP's"):
        colmap_database.write(several(), path)
    assert path.read_bytes() == content


def test_what_does_not_fit_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "database.db"
    older(path)
    content = path.read_bytes()
    with pytest.raises(FormatError, match=r"none of these images, but left/a\.jpg"):
        colmap_database.write([one(image="c.jpg")], path)
    turned = one(image="right/a.jpg")
    with pytest.raises(
        FormatError, match=r"right/a\.jpg has 480 x 640 pixels there, and 640 x 480"
    ):
        colmap_database.write([several()[0], turned], path)
    with pytest.raises(FormatError, match=r"x/left/a\.jpg and .* would both be left/a\.jpg"):
        colmap_database.write([one(image="x/left/a.jpg"), one(image="y/left/a.jpg")], path)
    assert path.read_bytes() == content


def test_images_that_it_does_not_have(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "database.db"
    older(path)
    colmap_database.write([*several(), one(image="left/c.jpg")], path)
    assert "does not have 1 image, left/c.jpg the first" in capsys.readouterr().err
    assert len(rows(path, "SELECT * FROM images")) == 3
