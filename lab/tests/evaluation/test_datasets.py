"""Every layout of folder gives the same photographs; what is wrong with a table is named."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from PIL import Image

from geocalib.errors import FormatError
from geocalib_lab.evaluation.datasets import (
    Sample,
    dataset_name,
    find_sets,
    picture_size,
    read_dataset,
)
from known_photos import SIZE, save_picture, write_set

DEGREES = """image,width,height,roll_deg,pitch_deg,vfov_deg,fx,fy,cx,cy,k1,model
a.png,64,48,2.5,-10,60,,,,,,pinhole
b.png,64,48,,,47.5,50,50,32,24,-0.25,opencv radtan (raw)
"""
RADIANS = f"""fname,width,height,vfov,roll,pitch,px,py,k1,k2
a.png,64,48,{math.pi / 3},{math.radians(2.5)},{math.radians(-10)},32,24,-0.1,0.02
"""


def test_table_in_degrees(tmp_path: Path) -> None:
    first, second = read_dataset(write_set(tmp_path, "gt.csv", DEGREES))
    assert first == Sample(tmp_path / "images" / "a.png", *SIZE, 2.5, -10.0, 60.0)
    assert (second.roll_deg, second.pitch_deg, second.gravity) == (None, None, None)
    assert (second.vfov_deg, second.k1) == (47.5, -0.25)
    assert second.camera_model == "opencv radtan (raw)"


@pytest.mark.parametrize(
    ("table", "pictures", "name"),
    [("images.csv", "images", "bench"), ("val.csv", "val", "bench-val")],
)
def test_published_layouts(tmp_path: Path, table: str, pictures: str, name: str) -> None:
    folder = write_set(tmp_path / "bench", table, RADIANS, pictures)
    (sample,) = read_dataset(folder)
    assert sample.image == folder / pictures / "a.png"
    angles = (sample.roll_deg, sample.pitch_deg, sample.vfov_deg)
    assert angles == pytest.approx((2.5, -10, 60))
    assert (sample.k1, sample.k2, sample.camera_model) == (-0.1, 0.02, "radial")
    assert read_dataset(folder / table) == [sample]
    assert dataset_name(folder) == dataset_name(folder / table) == name


def test_a_table_of_another_name_stands_beside_its_pictures(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "mine", "photos.csv", DEGREES.replace("a.png", "train/a.png"))
    (folder / "images").rename(folder / "train")
    first, second = read_dataset(folder / "photos.csv")
    assert first.image == folder / "train" / "a.png"
    assert second.image == folder / "b.png"
    assert dataset_name(folder / "photos.csv") == "mine"


def test_one_of_several_splits_must_be_named(tmp_path: Path) -> None:
    write_set(tmp_path, "val.csv", RADIANS, "val")
    write_set(tmp_path, "test.csv", RADIANS, "test")
    with pytest.raises(FormatError, match=r"holds 2 splits; name one of them, as .*test\.csv"):
        read_dataset(tmp_path)
    assert read_dataset(tmp_path / "val.csv")[0].image.parent.name == "val"


def test_truth_as_a_camera() -> None:
    sample = Sample(Path("a"), 640, 480, 30.0, -20.0, 90.0, k1=-0.1)
    assert sample.camera is not None
    assert sample.gravity is not None
    assert sample.camera.f.item() == pytest.approx(240)
    assert sample.camera.c[0].tolist() == [320, 240]
    assert sample.camera.distortion[0].tolist() == [-0.1, 0]
    # Down is to the right for a camera turned clockwise, and ahead for one that looks down.
    down = [math.sin(0.5236) * 0.9397, math.cos(0.5236) * 0.9397, 0.3420]
    assert sample.gravity.tolist() == pytest.approx(down, abs=1e-4)
    assert Sample(Path("a"), 640, 480).camera is None


def test_columns_may_be_missing_or_more(tmp_path: Path) -> None:
    text = "height,colour,image,width,magnification\n48,red,b.png,64,1.25\n"
    (sample,) = read_dataset(write_set(tmp_path, "gt.csv", text))
    assert sample == Sample(tmp_path / "images" / "b.png", *SIZE, magnification=1.25)


def test_picture_on_its_side(tmp_path: Path) -> None:
    """What counts is the size after the turn that the file asks for."""
    write_set(tmp_path, "gt.csv", "image,width,height\nside.jpg,48,64\n")
    exif = Image.Exif()
    exif[274] = 6
    Image.new("RGB", SIZE).save(tmp_path / "images" / "side.jpg", exif=exif)
    assert read_dataset(tmp_path)[0].width == 48
    (tmp_path / "gt.csv").write_text("image,width,height\nside.jpg,64,48\n")
    with pytest.raises(FormatError, match=r"line 2: image: side\.jpg is 48x64, not 64x48"):
        read_dataset(tmp_path)


def test_same_picture_in_another_size_is_accepted(tmp_path: Path) -> None:
    write_set(tmp_path, "gt.csv", "image,width,height\nsmall.png,64,48\n")
    save_picture(tmp_path / "images" / "small.png", (32, 24))
    assert read_dataset(tmp_path)[0].width == 64


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: there is no column image"),
        ("image,width\n", "line 1: there is no column height"),
        ("image,width,height,k1,k1\n", "line 1: column k1 is there twice"),
        ("image,width,height\n", "no line but its header"),
        ("image,width,height\na.png,64\n", "line 2: has 2 cells of 3"),
        ("image,width,height\na.png,64,0\n", "line 2: height is '0', not a positive number"),
        ("image,width,height\na.png,,48\n", "line 2: width is '', not a positive number"),
        ("image,width,height,k1\na.png,64,48,\nb.png,64,48,x\n", "line 3: k1 is 'x', not a number"),
        ("image,width,height,k1\na.png,64,48,nan\n", "line 2: k1 is 'nan', not a number"),
        ("image,width,height,pitch_deg\na.png,64,48,91\n", "line 2: pitch_deg is '91', .*90"),
        ("image,width,height,vfov_deg\na.png,64,48,0\n", "vfov_deg is '0', not a field of view"),
        ("fname,width,height,vfov\na.png,64,48,60\n", "vfov is '60', not a number within 3.14"),
    ],
)
def test_bad_tables(tmp_path: Path, text: str, message: str) -> None:
    write_set(tmp_path, "gt.csv", text)
    with pytest.raises(FormatError, match=message) as raised:
        read_dataset(tmp_path)
    assert str(raised.value).startswith(str(tmp_path / "gt.csv"))
    assert "\n" not in str(raised.value)


def test_no_table(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"holds no table; there should be one of gt\.csv"):
        read_dataset(tmp_path)
    (tmp_path / "images").mkdir()
    (tmp_path / "gt.csv").write_bytes(b"image,width,height\n\xff\xfe\n")
    with pytest.raises(FormatError, match="cannot be read as a table"):
        read_dataset(tmp_path)


def test_a_picture_that_is_not_there_is_for_the_method_to_fail_on(tmp_path: Path) -> None:
    write_set(tmp_path, "gt.csv", "image,width,height\nc.png,64,48\nd.png,64,48\n")
    (tmp_path / "images" / "d.png").write_text("no picture")
    assert [s.image.name for s in read_dataset(tmp_path)] == ["c.png", "d.png"]
    assert picture_size(tmp_path / "images" / "d.png") is None


def test_no_folder_of_pictures(tmp_path: Path) -> None:
    (tmp_path / "gt.csv").write_text("image,width,height\nc.png,64,48\n")
    with pytest.raises(FormatError, match=r"images is no folder; the pictures of .* belong there"):
        read_dataset(tmp_path)


def test_where_a_picture_comes_from(tmp_path: Path) -> None:
    text = "fname,width,height,scene,panorama\na.png,64,48,indoor,hall.webp\nb.png,64,48,,\n"
    first, second = read_dataset(write_set(tmp_path, "images.csv", text))
    assert (first.scene, first.panorama) == ("indoor", "hall.webp")
    assert (second.scene, second.panorama) == (None, None)


PHONES = (
    "image,width,height,vfov_deg,roll_deg,pitch_deg,norm_g\n"
    "train/a.png,64,48,60,1,2,1.001\nval/b.png,64,48,60,3,-40,1.05\n"
)


@pytest.fixture
def phones(tmp_path: Path) -> Path:
    folder = tmp_path / "phones"
    for name in ("train/a.png", "val/b.png"):
        save_picture(folder / name)
    (folder / "phones.csv").write_text(PHONES)
    return folder


def test_photographs_of_phones_have_truth_with_sigmas(phones: Path) -> None:
    still, moving = read_dataset(phones)
    assert (still.roll_deg, still.pitch_deg, still.vfov_deg) == (1, 2, 60)
    assert 0 < still.roll_sigma_deg < still.pitch_sigma_deg < moving.pitch_sigma_deg
    assert dataset_name(phones) == "phones"
    assert read_dataset(phones.parent / "phones" / "phones.csv") == [still, moving]


def test_a_split_is_the_folder_of_its_pictures(phones: Path) -> None:
    (sample,) = read_dataset(phones / "val")
    assert sample.image == phones / "val" / "b.png"
    assert dataset_name(phones / "val") == "phones-val"
    assert find_sets(phones / "val") == [phones / "val"]


def test_sigmas_of_the_truth_may_be_told(phones: Path) -> None:
    text = PHONES.replace("norm_g", "roll_sigma_deg").replace("1.001", "0.25").replace("1.05", "")
    (phones / "phones.csv").write_text(text)
    told, exact = read_dataset(phones)
    assert (told.roll_sigma_deg, told.pitch_sigma_deg) == (0.25, 0)
    assert (exact.roll_sigma_deg, exact.pitch_sigma_deg) == (0, 0)


def test_gravity_of_photographs_stands_in_a_table_of_its_own(phones: Path) -> None:
    (phones / "phones.csv").unlink()
    header = "image,width,height,vfov_deg\n"
    gravity = phones / "gravity.csv"
    rows = "train/a.png,1,2,1.0,1\nval/b.png,3,4,1.2,0\n"
    gravity.write_text("image,roll_deg,pitch_deg,norm_g,trust\n" + rows)
    with pytest.raises(FormatError, match=r"photos\.csv must tell the sizes"):
        read_dataset(gravity)
    sizes = "train/a.png,64,48,50\nval/b.png,64,48,60\n"
    (phones / "photos.csv").write_text(header + sizes)
    (sample,) = read_dataset(gravity)  # the other one is not trusted
    assert (sample.roll_deg, sample.pitch_deg, sample.vfov_deg) == (1, 2, 50)
    assert sample.roll_sigma_deg > 0
    assert dataset_name(gravity) == "phones-gravity"
    assert [s.roll_deg for s in read_dataset(phones)] == [None, None]
