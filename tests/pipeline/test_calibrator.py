"""Calibrations are those of the original pictures, judged by a network that knows the truth."""

from __future__ import annotations

import io
import math
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from PIL.ExifTags import IFD, Base

from geocalib import Calibration, Calibrator, Failure, Status
from geocalib.arrays import Array, to_numpy
from geocalib.cameras.legacy import LegacySimpleRadial
from geocalib.errors import (
    ConfigError,
    ImageError,
    WeightsError,
)
from geocalib.nets.weights.files import LoadedNetwork
from geocalib.pipeline import predict
from geocalib.pipeline.engines import load
from geocalib.pipeline.engines import torch as torch_engine
from geocalib.pipeline.parallel import stream
from geocalib.result.trust import BLANK, SHARP_SIDE, UNTRAINED
from oracle_network import CARD, Oracle, Truth, check, knowing, picture, truth
from views import random_cameras

SIZES = [(480, 360), (363, 320), (320, 363), (641, 479), (401, 777), (50, 40), (1500, 200)]


def focal_exif(millimetres: int, orientation: int = 1) -> Image.Exif:
    exif = Image.Exif()
    exif[Base.Orientation] = orientation
    exif.get_ifd(IFD.Exif)[Base.FocalLengthIn35mmFilm] = millimetres
    return exif


def records(outcomes: Sequence[Calibration | Failure]) -> list[dict[str, Any]]:
    return [outcome.to_dict() for outcome in outcomes]


class TestOriginals:
    @pytest.mark.parametrize("size", SIZES)
    def test_any_size(self, size: tuple[int, int]) -> None:
        known = truth(size, vfov_deg=30)
        found = knowing(known).calibrate(picture(size, 0))
        check(found, known)
        assert found.image is None
        assert found.status == Status.CONVERGED
        long, tiny = max(size) > 2.5 * min(size), min(size) < SHARP_SIDE
        assert found.trusted is not (long or tiny)
        assert sum("middle" in warning for warning in found.warnings) == long
        assert found.roll_deg == pytest.approx(7, abs=0.01)
        assert found.pitch_deg == pytest.approx(-11, abs=0.01)
        assert found.vfov_deg == pytest.approx(30, abs=0.03)
        assert found.K.tolist() == [
            [found.fx, 0, size[0] / 2],
            [0, found.fy, size[1] / 2],
            [0, 0, 1],
        ]

    def test_any_kind_of_source_is_the_same_picture(self, tmp_path: Path) -> None:
        known = truth((401, 300))
        pixels = picture(known.size, 0)
        path = tmp_path / "a.png"
        Image.fromarray(pixels).save(path)
        calibrator = knowing(known)
        tensor = torch.from_numpy(pixels).permute(2, 0, 1)
        others = (path.read_bytes(), Image.fromarray(pixels), pixels, tensor, tensor / 255)
        others += (bytearray(path.read_bytes()), io.BytesIO(path.read_bytes()))
        first, *found = [calibrator.calibrate(source) for source in (path, str(path), *others)]
        check(first, known)
        assert [answer.image for answer in (first, *found)] == 2 * [str(path)] + 7 * [None]
        assert all(replace(answer, image=str(path)) == first for answer in found)

    def test_images_may_come_one_by_one(self, tmp_path: Path) -> None:
        known = truth((401, 300))
        for name in ("a.png", "b.png"):
            Image.fromarray(picture(known.size, 0)).save(tmp_path / name)
        calibrator = knowing(known)
        paths = sorted(tmp_path.glob("*.png"))
        expected = calibrator.calibrate(paths)
        assert calibrator.calibrate(path for path in paths) == expected
        assert list(calibrator.calibrate_set(map(str, paths))) == list(
            calibrator.calibrate_set(paths)
        )
        with paths[0].open("rb") as file:
            (opened,) = calibrator.calibrate_many([file])
        assert replace(opened, image=str(paths[0])) == expected[0]
        with pytest.raises(ImageError, match="open for bytes"):
            calibrator.calibrate(io.StringIO("text"))

    @pytest.mark.parametrize("orientation", [1, 3, 6, 8])
    def test_a_file_that_exif_turns(self, tmp_path: Path, orientation: int) -> None:
        known = truth((363, 501))
        turns = {1: 0, 3: 2, 6: 1, 8: 3}[orientation]
        stored = np.rot90(picture(known.size, 0), turns)
        path = tmp_path / "a.png"
        Image.fromarray(stored).save(path, exif=focal_exif(30, orientation))
        check(knowing(known).calibrate(path), known)

    @pytest.mark.parametrize("orientation", [1, 6])
    def test_a_large_jpeg_that_is_not_decoded_in_full(
        self, tmp_path: Path, orientation: int
    ) -> None:
        known = truth((2603, 1301))
        stored = np.rot90(picture(known.size, 0), {1: 0, 6: 1}[orientation])
        path = tmp_path / "a.jpg"
        exif = focal_exif(30, orientation)
        Image.fromarray(stored).save(path, quality=98, subsampling=0, exif=exif)
        check(knowing(known).calibrate(path), known)

    @pytest.mark.parametrize(
        "model", ["simple_radial", "radial", "division", "kannala_brandt", "eucm", "double_sphere"]
    )
    def test_any_camera_model(self, model: str) -> None:
        camera = random_cameras(model, 1, seed=3, size=(450, 341)).map(to_numpy)
        known = Truth(camera, truth().gravity)
        found = knowing(known).calibrate(picture(known.size, 0), model)
        check(found, known)
        assert found.camera_model == model
        assert len(found.sigma.distortion) == len(found.distortion) == camera.distortion.shape[1]

    def test_its_methods_speak_of_the_original(self) -> None:
        known = truth((480, 363), roll_deg=5, pitch_deg=0, model="simple_radial", hat=[-0.1])
        pixels = picture(known.size, 0)
        found = knowing(known).calibrate(pixels, "simple_radial")
        # A level camera sees the horizon through its middle, tilted by the roll.
        middle = found.horizon()[128]
        assert middle.tolist() == pytest.approx([240, 181.5], abs=1.5)
        for warped in (found.undistort(pixels), found.upright(pixels), found.rectify(pixels)):
            assert warped.image.mode == "RGB"

    def test_fields_are_kept_where_they_are_asked_for(self) -> None:
        known = truth((640, 480))
        calibrator = knowing(known)
        found = calibrator.calibrate(picture(known.size, 0), keep_fields=True)
        assert found.fields is not None
        assert found.fields.size == (104, 80)
        assert found.fields.up.dtype == np.float32
        # In the middle of the picture the camera looks down by its pitch.
        assert found.fields.latitude[0, 0, 40, 52].item() == pytest.approx(
            math.radians(-11), abs=0.02
        )
        assert calibrator.calibrate(picture(known.size, 0)).fields is None


class TestLists:
    def test_the_order_is_kept_whatever_the_sizes(self) -> None:
        shapes = [(480, 360), (360, 480), (480, 360), (1000, 300), (360, 480)]
        truths = [truth(size, roll_deg=10 * i - 20) for i, size in enumerate(shapes)]
        sources = [picture(size, i) for i, size in enumerate(shapes)]
        found = knowing(*truths).calibrate(sources)
        for one, known in zip(found, truths, strict=True):
            check(one, known)

    def test_bad_images_fail_alone(self, tmp_path: Path) -> None:
        known, size = truth(), (480, 360)
        (tmp_path / "text.jpg").write_text("hello")
        missing = tmp_path / "missing.jpg"
        sources = [
            missing,
            picture(size, 0),
            tmp_path / "text.jpg",
            np.zeros((8, 8), np.uint8),
            None,
            picture(size, 0),
        ]
        calibrator = knowing(known)
        found = calibrator.calibrate(sources)
        assert len(found) == len(sources)
        check(found[1], known)
        check(found[5], known)
        assert found[0] == Failure(
            str(missing), None, None, f"{missing} does not exist; check the path"
        )
        assert [getattr(found[i], "image", 0) for i in (2, 3, 4)] == [
            str(tmp_path / "text.jpg"),
            None,
            None,
        ]
        assert "at least 32" in found[3].error
        assert "got NoneType" in found[4].error
        for i in (0, 2, 3, 4):
            with pytest.raises(ImageError) as caught:
                calibrator.calibrate(sources[i])
            assert str(caught.value) == found[i].error

    def test_an_image_without_a_fit_fails_alone(self, tmp_path: Path) -> None:
        known, size = truth(), (480, 360)
        path = tmp_path / "a.png"
        Image.fromarray(picture(size, 1)).save(path)
        calibrator = knowing(known, None)
        good, bad, named = calibrator.calibrate([picture(size, 0), picture(size, 1), path])
        check(good, known)
        assert bad == Failure(None, *size, f"image: {Status.NOT_FINITE}")
        assert named == Failure(str(path), *size, f"{path}: {Status.NOT_FINITE}")
        with pytest.raises(ImageError, match=r"image: failed: .*NaN"):
            calibrator.calibrate(picture(size, 1))

    def test_empty_lists_tuples_and_lists_of_one(self) -> None:
        calibrator, source = knowing(truth()), picture((480, 360), 0)
        assert calibrator.calibrate([]) == []
        (from_list,) = calibrator.calibrate([source])
        (from_tuple,) = calibrator.calibrate((source,))
        assert from_list == from_tuple == calibrator.calibrate(source)

    def test_batch_mates_change_nothing(self) -> None:
        shapes = [(480, 360), (480, 360), (360, 480), (641, 479)]
        truths = [truth(size, roll_deg=10 * i) for i, size in enumerate(shapes)]
        sources = [picture(size, i) for i, size in enumerate(shapes)]
        calibrator = knowing(*truths)
        together = calibrator.calibrate(sources)
        for source, one in zip(sources, together, strict=True):
            alone = calibrator.calibrate(source)
            assert alone.fy == pytest.approx(one.fy, rel=1e-7)
            np.testing.assert_allclose(alone.gravity, one.gravity, rtol=0, atol=1e-8)
            assert alone.sigma.focal == pytest.approx(one.sigma.focal, rel=1e-4)
        assert records(calibrator.calibrate(sources)) == records(together)

    def test_a_long_list_is_taken_in_parts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        truths = [truth(roll_deg=10 * i, vfov_deg=40 + 3 * i) for i in range(5)]
        focals = [known.camera.f.item() for known in truths]
        sources: list[Any] = [picture((480, 360), i) for i in range(5)]
        sources.insert(2, "missing.jpg")
        focals.insert(2, 1.0)
        calibrator = knowing(*truths)
        whole = calibrator.calibrate(sources, focal=focals)
        monkeypatch.setattr(stream, "TOGETHER", 3)
        monkeypatch.setattr(calibrator._engine, "batch", 2)
        oracle = calibrator._engine.network
        assert isinstance(oracle, Oracle)
        oracle.batches.clear()
        parts = calibrator.calibrate(sources, focal=focals)
        assert oracle.batches == [2, 2, 1]
        oracle.batches.clear()
        calibrator.calibrate(sources, gravity=[0, 1, 0], shared_intrinsics=True)
        assert oracle.batches == [2, 1, 2]
        assert parts[2] == whole[2]
        for i in (0, 1, 3, 4, 5):
            one, other = parts[i], whole[i]
            assert isinstance(one, Calibration)
            assert isinstance(other, Calibration)
            assert one.fy == other.fy == focals[i]
            np.testing.assert_allclose(one.gravity, other.gravity, rtol=0, atol=1e-8)


class TestWeights:
    def test_tiny_pictures_are_less_sure(self, monkeypatch: pytest.MonkeyPatch) -> None:
        known = truth((64, 48))
        calibrator, source = knowing(known, confidence_scale=1e4), picture((64, 48), 0)
        wide = calibrator.calibrate(source, lines="off", prior="none").sigma
        monkeypatch.setattr(predict, "SHARP_SIDE", 1)
        plain = calibrator.calibrate(source, lines="off", prior="none").sigma
        assert wide.gravity_deg / plain.gravity_deg == pytest.approx(2**1.25, rel=0.05)
        assert wide.focal / plain.focal == pytest.approx(2**1.25, rel=0.05)

    def test_sigmas_are_scaled_by_the_card(self) -> None:
        known = truth(model="simple_radial", hat=[-0.1])
        source = picture(known.size, 0)
        plain = knowing(known).calibrate(source, "simple_radial", prior="none")
        factors = {"gravity": 2.0, "focal": 3.0, "distortion": 5.0}
        scaled = knowing(known, sigma_scale=factors).calibrate(
            source, "simple_radial", prior="none"
        )
        assert scaled.camera.f == plain.camera.f
        for name, factor in (
            ("roll_deg", 2),
            ("pitch_deg", 2),
            ("gravity_deg", 2),
            ("focal", 3),
            ("vfov_deg", 3),
            ("hfov_deg", 3),
        ):
            ratio = getattr(scaled.sigma, name) / getattr(plain.sigma, name)
            assert ratio == pytest.approx(factor, rel=1e-9)
        assert scaled.sigma.distortion[0] == pytest.approx(5 * plain.sigma.distortion[0])
        factor = np.array([2.0, 2.0, 3.0, 5.0])
        np.testing.assert_allclose(
            scaled.covariance, factor[:, None] * plain.covariance * factor, rtol=1e-9, atol=0
        )
        assert scaled.sigma.focal / scaled.fy == pytest.approx(
            scaled.covariance[2, 2].item() ** 0.5
        )

    def test_the_scale_of_confidences_is_that_of_the_card(self) -> None:
        source = picture((480, 360), 0)
        one, two = (
            knowing(truth(), confidence_scale=scale).calibrate(source).sigma.focal
            for scale in (1e-4, 4e-4)
        )
        assert two == pytest.approx(2 * one, rel=1e-3)

    def test_placeholders_say_so(self) -> None:
        found = knowing(truth(), trained=False).calibrate(picture((480, 360), 0))
        assert found.warnings == (UNTRAINED,)
        assert not found.trusted

    def test_a_blank_picture(self) -> None:
        grey = np.full((360, 480, 3), 8, np.uint8)
        known = truth()

        class Blind(Oracle):
            def _one(self, image: Array) -> tuple[Array, ...]:
                marked = Image.fromarray(picture(known.size, 0)).resize((416, 320))
                return super()._one(np.asarray(marked).transpose(2, 0, 1) / 255)

        calibrator = knowing(known)
        calibrator._network = Blind([known])
        found = calibrator.calibrate(grey)
        assert found.warnings[0] == BLANK
        assert not found.trusted

    def test_the_legacy_field(self) -> None:
        known = truth(vfov_deg=70, model="simple_radial", hat=[-0.15])
        legacy = Truth(replace(known.camera, model=LegacySimpleRadial()), known.gravity)
        source = picture(known.size, 0)
        found = knowing(legacy, legacy_up_field=True).calibrate(source, "simple_radial")
        check(found, known)
        assert found.distortion[0] == pytest.approx(known.camera.distortion.item(), rel=1e-2)
        assert type(found.camera.model) is type(known.camera.model)
        # What it makes up for, and that other models are left as they are.
        plain = knowing(legacy).calibrate(source, "simple_radial")
        assert plain.distortion[0] != pytest.approx(known.camera.distortion.item(), rel=2e-2)
        one, two = (
            knowing(legacy, legacy_up_field=on).calibrate(source, "pinhole") for on in (True, False)
        )
        assert one == two

    def test_two_live_side_by_side(self, monkeypatch: pytest.MonkeyPatch) -> None:
        networks = {
            name: LoadedNetwork(Oracle([truth(roll_deg=roll)]), replace(CARD, name=name))
            for name, roll in (("left", -10), ("right", 10))
        }
        monkeypatch.setattr("geocalib.nets.weights.files.load_network", networks.__getitem__)
        monkeypatch.setattr(load, "check_known", lambda _: None)
        left, right = (Calibrator(name, device="cpu", engine="torch") for name in networks)
        source = picture((480, 360), 0)
        rolls = [one.calibrate(source).roll_deg for one in (left, right, left)]
        assert rolls == pytest.approx([-10, 10, -10], abs=0.01)
        assert (left.card.name, right.card.name) == ("left", "right")

    def test_unknown_weights(self) -> None:
        with pytest.raises(WeightsError, match="no weights are named 'heavy'"):
            Calibrator("heavy", device="cpu")

    def test_compiled(self, monkeypatch: pytest.MonkeyPatch) -> None:
        compiled = []

        def compile(network: torch.nn.Module) -> Callable[..., Any]:
            compiled.append(network)
            return lambda images: network(images)

        monkeypatch.setattr(torch, "compile", compile)
        network = LoadedNetwork(Oracle([truth()]), CARD)
        monkeypatch.setattr("geocalib.nets.weights.files.load_network", lambda _: network)
        check(Calibrator(device="cpu", compile=True).calibrate(picture((480, 360), 0)), truth())
        assert compiled == [network.network]


class TestDevices:
    def test_auto_is_the_fastest_there_is(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
        assert torch_engine.find_device("auto") == torch.device("cpu")
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
        assert torch_engine.find_device("auto") == torch.device("mps")
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
        assert torch_engine.find_device("auto") == torch.device("cuda")
        assert torch_engine.find_device("cuda:1") == torch.device("cuda:1")
        with pytest.raises(ConfigError, match=r"no device 'cuda:2'.*cuda, mps, cpu"):
            torch_engine.find_device("cuda:2")

    @pytest.mark.parametrize("name", ["cuda", "mps", "tpu", "meta", "", "cpu:1"])
    def test_a_device_that_is_not_there(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
        with pytest.raises(ConfigError, match=f"no device {name!r} here; use auto or one of: cpu"):
            Calibrator(device=name)


def test_threads_share_a_calibrator() -> None:
    shapes = [(480, 360), (360, 480), (401, 300)]
    truths = [truth(size, roll_deg=10 * i) for i, size in enumerate(shapes)]
    sources = [picture(size, i) for i, size in enumerate(shapes)]
    calibrator = knowing(*truths)
    models = ["pinhole", "simple_radial", "pinhole"]
    expected = [
        calibrator.calibrate(source, model).to_dict()
        for source, model in zip(sources, models, strict=True)
    ]
    start = threading.Barrier(3)

    def work(which: int) -> list[dict[str, Any]]:
        start.wait()
        return [calibrator.calibrate(sources[which], models[which]).to_dict() for _ in range(3)]

    with ThreadPoolExecutor(3) as pool:
        for answers, known in zip(pool.map(work, range(3)), expected, strict=True):
            assert answers == 3 * [known]
