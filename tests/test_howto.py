"""The first page for new users and the how-to pages do what they say."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest

from geocalib.geometry.gravity import from_roll_pitch, world_from_camera
from pages import (
    ROOT,
    check_links,
    check_shown_commands,
    folder,
    run,
    run_code,
    text_of,
)

__all__ = ["folder"]

HOWTO = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/howto/*.md"))


@pytest.mark.parametrize("name", ["docs/start.md", *HOWTO])
def test_links_lead_somewhere(name: str) -> None:
    check_links(name)


def test_first_five_minutes(folder: Path) -> None:
    check_shown_commands("docs/start.md")
    assert run_code("docs/start.md")["c"].trusted
    assert (folder / "level.jpg").exists()


def test_commands_take_their_options(folder: Path) -> None:
    """Commands without output run on the photos that are there."""
    (folder / "frames").symlink_to("photos")
    for number in (2, 3):
        (folder / "photos" / f"{number}.jpg").unlink()
    for name in HOWTO:
        for command in re.findall(r"^    (geocalib .*)", text_of(name), re.MULTILINE):
            words = command.split()
            if words[1] in ("serve", "batch", "level"):
                continue
            result = run(command)
            assert result.exit_code == 0, f"{command}\n{result.output}"
    for made in ("model/cameras.txt", "transforms.json", "level/1.jpg", "straight/1.jpg"):
        assert (folder / made).exists()


def test_a_model_is_set_upright(folder: Path) -> None:
    """A world that is turned at will, with the photos of the folder."""
    gravity = from_roll_pitch(*np.deg2rad([6.0, 8.0]))
    turned = from_roll_pitch(np.array(0.7), np.array(0.4))
    images = []
    for number in (1, 2, 3):
        # Gravity in the world is ``turned``, whatever the heading.
        camera_from_world = world_from_camera(
            gravity, np.array(number * 1.0)
        ).T @ world_from_camera(turned)
        w, x, y, z = _quaternion(camera_from_world)
        images += [f"{number} {w} {x} {y} {z} 0 0 0 1 {number}.jpg", ""]
    (folder / "sparse").mkdir()
    (folder / "sparse" / "images.txt").write_text("\n".join(images) + "\n")
    (folder / "sparse" / "points3D.txt").write_text(
        f"1 {' '.join(map(str, turned))} 0 0 0 0.5\n2 1 0 0 0 0 0 0.5\n"
    )
    (folder / "sparse" / "cameras.txt").write_text("1 SIMPLE_PINHOLE 240 160 200 120 80\n")
    (command,) = re.findall(
        r"^    (geocalib level .*)", text_of("docs/howto/splats.md"), re.MULTILINE
    )
    result = run(command)
    assert result.exit_code == 0, result.output
    points = (folder / "upright" / "points3D.txt").read_text().splitlines()
    down = np.array(points[0].split()[1:4], float)
    # As exact as the calibrations of three times the same small photo.
    assert down @ [0, 0, -1] > math.cos(math.radians(3))


def _quaternion(rotation: np.ndarray) -> list[float]:
    from scipy.spatial.transform import Rotation

    x, y, z, w = Rotation.from_matrix(rotation).as_quat()
    return [w, x, y, z]


def test_renderers_see_what_the_camera_sees(folder: Path) -> None:
    found = run_code("docs/howto/ar.md")
    c, foot = found["c"], found["foot"]
    np.testing.assert_allclose(found["pixel"], [480.0, 544.0], atol=1e-6)
    # The same point for OpenGL: y up, z back, above a floor at 0.
    world = np.array([foot[0], 1.6 - foot[1], -foot[2], 1.0])
    assert abs(world[1]) < 1e-12
    clip = found["projection"] @ np.linalg.inv(found["pose"]) @ world
    x, y = clip[:2] / clip[3]
    np.testing.assert_allclose([(x + 1) / 2 * c.width, (1 - y) / 2 * c.height], [480.0, 544.0])


def test_depth_becomes_a_level_cloud(folder: Path) -> None:
    found = run_code("docs/howto/depth.md")
    c, small, world = found["c"], found["small"], found["world"]
    # The point on the optical axis lies as far as the depth says, where the pitch points.
    pixel = np.round(c.K_at(518, 392)[:2, 2] - 0.5).astype(int)
    pitch = math.radians(c.pitch_deg)
    expected = 4 * np.array([0, math.cos(pitch), math.sin(pitch)])
    np.testing.assert_allclose(world[pixel[1], pixel[0]], expected, atol=0.01)
    assert small.fx / 518 == pytest.approx(c.f_px / c.width)
    assert found["K"].shape == (3, 3)


def test_camera_and_imu(folder: Path) -> None:
    found = run_code("docs/howto/robotics.md")
    assert abs(found["c"].roll_deg - 6) < 1
    rng = np.random.default_rng(1)
    in_imu = rng.normal(size=(3, 3))
    turn = world_from_camera(from_roll_pitch(np.array(0.3), np.array(-0.8)))
    rotation, residual = found["camera_from_imu"](in_imu @ turn.T, in_imu)
    np.testing.assert_allclose(rotation.as_matrix(), turn, atol=1e-9)
    assert residual < 1e-6


def test_pictures_for_editors(folder: Path) -> None:
    run_code("docs/howto/editing.md")
    assert (folder / "level.png").stat().st_size > 0
    assert (folder / "guides.png").stat().st_size > 0


def test_hints_of_forgery(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_code("docs/howto/forensics.md")
    printed = capsys.readouterr().out.splitlines()
    blocks = re.findall(r"^prints\n\n((?:    .*\n)+)", text_of("docs/howto/forensics.md"), re.M)
    shown = [line.strip() for block in blocks for line in block.splitlines()]
    # Another processor rounds otherwise: numbers may differ in their last digit.
    number = re.compile(r"\d+(?:\.\d+)?")
    assert [number.sub("#", line) for line in printed] == [number.sub("#", s) for s in shown]
    values = [float(n) for line in printed for n in number.findall(line)]
    expected = [float(n) for line in shown for n in number.findall(line)]
    np.testing.assert_allclose(values, expected, rtol=0.1, atol=0.25)


def test_questions_to_a_collection(folder: Path) -> None:
    found = run_code("docs/howto/collections.md")
    assert found["failed"] == ["missing.jpg"]
    assert found["tilted"] == ["examples/town.jpg", "holidays/IMG_10.jpg"]
