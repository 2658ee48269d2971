"""Sets of photographs of one camera, seen by a network that knows the answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from PIL.ExifTags import IFD, Base

from geocalib.arrays import Array
from geocalib.errors import ConfigError, CouplingError
from geocalib.result.calibration import OUTLIER, Calibration, Failure
from geocalib.sets import camera_group
from oracle_network import GRAVITY_DEG, Oracle, check, knowing, picture, truth
from views import gravity_error_deg

F = 480.0


def taken(
    size: tuple[int, int], roll: float, f: float = F, model: str = "pinhole", **more: Any
) -> Any:
    return truth(size, roll_deg=roll, model=model, f=f, **more)


def test_portrait_and_landscape_and_a_smaller_copy() -> None:
    sizes = [(480, 360), (360, 480), (480, 360), (240, 180)]
    truths = [taken(s, 5 * i, F * max(s) / 480) for i, s in enumerate(sizes)]
    sources: list[Any] = [picture(known.size, i) for i, known in enumerate(truths)]
    sources.insert(1, "missing.jpg")
    found = list(knowing(*truths).calibrate_set(sources, lines="off"))
    assert isinstance(found.pop(1), Failure)
    for one, known in zip(found, truths, strict=True):
        check(one, known)
    assert found[0].fy == found[1].fy == found[2].fy == pytest.approx(2 * found[3].fy)


def test_a_list_shares_portrait_and_landscape_too() -> None:
    truths = [taken(size, 4 * i) for i, size in enumerate([(480, 360), (360, 480)])]
    sources: list[Any] = [picture(known.size, i) for i, known in enumerate(truths)]
    found = knowing(*truths).calibrate(sources, shared_intrinsics=True)
    for one, known in zip(found, truths, strict=True):
        check(one, known)
    assert found[0].fy == pytest.approx(found[1].fy, rel=1e-14)
    with pytest.raises(CouplingError, match="of the same camera"):
        knowing(*truths).calibrate(sources, shared_intrinsics=True, free_principal_point=0.05)


@pytest.mark.parametrize("model", ["pinhole", "simple_radial"])
def test_outliers_are_left_out(model: str) -> None:
    """One of another focal length, and one of another shape."""
    size = (480, 360)
    hat: dict[str, Any] = {} if model == "pinhole" else {"distortion": [-0.05]}
    truths = [taken(size, 3 * i - 10, model=model, **hat) for i in range(6)]
    truths += [taken(size, 5, 2 * F, model, **hat), taken((300, 360), 5, model=model, **hat)]
    sources: list[Any] = [picture(known.size, i) for i, known in enumerate(truths)]
    found = list(knowing(*truths).calibrate_set(sources, model, lines="off"))
    for one, known in zip(found[:6], truths[:6], strict=True):
        check(one, known)
    for one, known in zip(found[6:], truths[6:], strict=True):
        assert isinstance(one, Failure)
        assert one.status == OUTLIER
        assert (one.width, one.height) == known.size
        record = one.to_dict()
        assert record["status"] == "outlier"
        assert record["fx"] is record["gravity"] is record["sigma"] is None
    assert "focal length of 960 pixels, and the 6 others of its camera at 480" in found[6].error
    assert "is 300x360 pixels, but its camera takes pictures of 480x360" in found[7].error


def test_cameras() -> None:
    truths = [taken((480, 360), 3 * i, F * (1 + i % 2)) for i in range(6)]
    sources: list[Any] = [picture(known.size, i) for i, known in enumerate(truths)]
    found = list(knowing(*truths).calibrate_set(sources, cameras=[5, 1] * 3, lines="off"))
    for one, known in zip(found, truths, strict=True):
        check(one, known)
    assert found[0].fy == found[2].fy == found[4].fy
    assert found[1].fy == found[3].fy == found[5].fy


def test_what_is_known() -> None:
    truths = [taken((480, 360), 3 * i) for i in range(3)]
    sources: list[Any] = [picture(known.size, i) for i, known in enumerate(truths)]
    gravity = np.concatenate([known.gravity for known in truths])
    found = list(knowing(*truths).calibrate_set(sources, focal=500.0, gravity=gravity))
    for one, known in zip(found, truths, strict=True):
        assert isinstance(one, Calibration)
        assert one.fy == 500
        assert one.sigma.focal == one.sigma.gravity_deg == 0
        assert gravity_error_deg(one.gravity[None], known.gravity).item() < GRAVITY_DEG


def test_unusable_fields_fail_alone() -> None:
    known = taken((480, 360), 5)
    found = list(knowing(known, None).calibrate_set([picture(known.size, i) for i in (0, 1)]))
    check(found[0], known)
    assert isinstance(found[1], Failure)
    assert found[1].status is None
    assert "NaN" in found[1].error


def test_many_are_pooled_more(monkeypatch: pytest.MonkeyPatch) -> None:
    truths = [taken((480, 360), 3 * i) for i in range(4)]
    sources: list[Any] = [picture(known.size, i) for i, known in enumerate(truths)]
    monkeypatch.setattr(camera_group, "MANY", 3)
    for one, known in zip(knowing(*truths).calibrate_set(sources), truths, strict=True):
        assert isinstance(one, Calibration)
        assert one.fy == pytest.approx(F, rel=3e-3)
        assert gravity_error_deg(one.gravity[None], known.gravity).item() < 0.05


def test_fields_are_kept_where_asked_for() -> None:
    known = taken((480, 360), 5)
    calibrator = knowing(known)
    (one,) = calibrator.calibrate_set([picture(known.size, 0)], keep_fields=True)
    assert one.fields.size == (104, 80)
    (one,) = calibrator.calibrate_set([picture(known.size, 0)])
    assert one.fields is None


def test_wrong_exif_data_show(tmp_path: Path) -> None:
    """They say twice the focal length of the pictures: the tension is told, as for photos."""
    truths = [taken((480, 360), 3 * i, 600.0) for i in range(3)]
    paths = []
    for i, known in enumerate(truths):
        exif = Image.Exif()
        exif[Base.Make] = "Acme"
        exif.get_ifd(IFD.Exif)[Base.FocalLengthIn35mmFilm] = 86
        paths.append(str(tmp_path / f"{i}.png"))
        Image.fromarray(picture(known.size, i)).save(paths[-1], exif=exif)
    found = list(knowing(*truths).calibrate_set(paths, exif=True, lines="off"))
    assert len(found) == 3
    for one in found:
        assert isinstance(one, Calibration)
        (prior,) = one.priors
        assert prior.estimate[0] == pytest.approx(600, rel=0.01)
        assert prior.tension > 3
        assert any("sigma and was left out" in warning for warning in one.warnings)


def test_wrong_calls_are_refused_at_once() -> None:
    calibrator = knowing(taken((480, 360), 0))
    assert list(calibrator.calibrate_set([])) == []
    with pytest.raises(CouplingError, match="1 integers for 2 images"):
        calibrator.calibrate_set(["a.jpg", "b.jpg"], cameras=[0])
    with pytest.raises(ConfigError, match="the principal point of a set is fixed"):
        calibrator.calibrate_set(["a.jpg"], free_principal_point=0.1)


def test_screenshots_stand_alone_and_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their size makes cameras of them, so they are compared with the photos of all cameras."""
    truths = [taken((480, 360), 3 * i) for i in range(4)]
    truths += [taken((240, 400), 5), taken((200, 400), 5), taken((200, 400), 7)]
    sources: list[Any] = [picture(known.size, i) for i, known in enumerate(truths)]
    calibrator = knowing(*truths)
    cameras = [0, 0, 0, 0, 1, 2, 2]
    for one, known in zip(calibrator.calibrate_set(sources, cameras=cameras), truths, strict=True):
        check(one, known)

    def quiet(self: Oracle, image: Array) -> tuple[Array, ...]:
        up, latitude, *confidence = look(self, image)
        faint = 1e-3 if image.shape[1] > image.shape[2] else 1.0
        return up, latitude, *(faint * one for one in confidence)

    look = Oracle._one
    monkeypatch.setattr(Oracle, "_one", quiet)
    found = list(calibrator.calibrate_set(sources, cameras=cameras))
    for one, known in zip(found[:4], truths[:4], strict=True):
        check(one, known)
    for one in found[4:]:
        assert isinstance(one, Failure)
        assert one.status == OUTLIER
        assert "shows no camera, as other photos do" in one.error
