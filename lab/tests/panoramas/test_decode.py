import csv
import json

import numpy as np
import pytest
import torch
from PIL import Image

from geocalib.errors import PanoramaError
from geocalib_lab.panoramas.decode import decode_folder
from geocalib_lab.panoramas.panorama import PanoramaBank, level_sizes


def photograph(path: str, width: int, seed: int) -> None:
    """A smooth random panorama in a file."""
    noise = np.random.default_rng(seed).integers(0, 256, (8, 16, 3), dtype=np.uint8)
    Image.fromarray(noise).resize((width, width // 2), Image.Resampling.BICUBIC).save(path)


class TestDecoding:
    @pytest.fixture
    def folder(self, tmp_path):
        for seed, (name, width) in enumerate([("a__x__1.webp", 64), ("b__x__1.jpg", 96)]):
            photograph(tmp_path / name, width, seed)
        return tmp_path

    NAMES = ("a__x__1.webp", "b__x__1.jpg")

    def test_pixels_are_those_of_the_pictures(self, folder) -> None:
        index = decode_folder(folder, folder / "cache" / "all.bin", self.NAMES)
        bank = PanoramaBank.load(folder / "cache" / "all.bin", index, "cpu")
        assert bank.names == self.NAMES
        assert bank.width.tolist() == [64, 96]
        assert bank.height.tolist() == [32, 48]
        for number, name in enumerate(self.NAMES):
            expected = np.asarray(Image.open(folder / name).convert("RGB")).reshape(-1, 3)
            start = int(bank.offset[number, 0])
            found = bank.pixels[start : start + len(expected)].view(torch.uint8).reshape(-1, 4)
            np.testing.assert_array_equal(found[:, :3], expected)

    def test_done_once(self, folder) -> None:
        out = folder / "all.bin"
        decode_folder(folder, out, self.NAMES)
        before = out.stat().st_mtime_ns
        decode_folder(folder, out, self.NAMES)
        assert out.stat().st_mtime_ns == before

    def test_done_again_when_something_changed(self, folder) -> None:
        out = folder / "all.bin"
        index = decode_folder(folder, out, self.NAMES)
        decode_folder(folder, out, self.NAMES[:1])
        assert out.stat().st_size == 3 * sum(w * h for w, h in level_sizes(64, 32))
        photograph(folder / self.NAMES[0], 64, seed=77)
        decode_folder(folder, out, self.NAMES[:1])
        expected = np.asarray(Image.open(folder / self.NAMES[0]).convert("RGB"))
        np.testing.assert_array_equal(
            np.fromfile(out, np.uint8, count=expected.size), expected.ravel()
        )
        index.write_text("{ cut off")
        decode_folder(folder, out, self.NAMES[:1])
        assert json.loads(index.read_text())[0]["width"] == 64

    def test_wide_ones_are_shrunk(self, folder) -> None:
        index = decode_folder(folder, folder / "all.bin", self.NAMES, width=80)
        bank = PanoramaBank.load(folder / "all.bin", index, "cpu")
        assert bank.width.tolist() == [64, 80]
        assert bank.height.tolist() == [32, 40]

    def test_scenes_come_from_the_manifest(self, folder) -> None:
        manifest = folder / "manifest.csv"
        with manifest.open("w", newline="") as lines:
            rows = [["file", "scene"], ["train/" + self.NAMES[0], "indoor"]]
            csv.writer(lines).writerows([*rows, ["train/" + self.NAMES[1], "forest"]])
        index = decode_folder(folder, folder / "all.bin", self.NAMES)
        bank = PanoramaBank.load(folder / "all.bin", index, "cpu", [manifest])
        assert [bank.scene_names[scene] for scene in bank.scene] == ["indoor", "forest"]
        without = PanoramaBank.load(folder / "all.bin", index, "cpu")
        assert without.scene.tolist() == [0, 0]
        manifest.write_text("file,scene\n")
        with pytest.raises(PanoramaError, match=r"no line for a__x__1.webp"):
            PanoramaBank.load(folder / "all.bin", index, "cpu", [manifest])

    def test_bad_pictures_are_named(self, folder) -> None:
        out = folder / "all.bin"
        with pytest.raises(PanoramaError, match=r"absent\.webp"):
            decode_folder(folder, out, ["absent.webp"])
        with pytest.raises(PanoramaError, match="at least one"):
            decode_folder(folder, out, [])
        Image.new("RGB", (64, 48)).save(folder / "photo.jpg")
        with pytest.raises(PanoramaError, match=r"photo\.jpg is 64x48"):
            decode_folder(folder, out, ["photo.jpg"])
        whole = (folder / self.NAMES[1]).read_bytes()
        (folder / "cut.jpg").write_bytes(whole[: len(whole) // 2])
        with pytest.raises(PanoramaError, match=r"cut\.jpg"):
            decode_folder(folder, out, ["cut.jpg"])
        assert not out.exists()

    def test_smaller_sizes_are_means(self, folder) -> None:
        index = decode_folder(folder, folder / "all.bin", self.NAMES)
        bank = PanoramaBank.load(folder / "all.bin", index, "cpu")
        whole = torch.from_numpy(np.array(Image.open(folder / self.NAMES[0]).convert("RGB")))
        directly = PanoramaBank.create([whole], self.NAMES[:1])
        size = len(directly.pixels)
        found, expected = (b.pixels[:size].view(torch.uint8).int() for b in (bank, directly))
        assert (found - expected).abs().max() <= 1

    def test_smaller_sizes_compressed_again(self, tmp_path) -> None:
        noise = np.random.default_rng(0).integers(0, 256, (64, 128, 3), dtype=np.uint8)
        Image.fromarray(noise).save(tmp_path / "noise.png")
        out = tmp_path / "all.bin"
        decode_folder(tmp_path, out, ["noise.png"])
        plain = np.fromfile(out, np.uint8).astype(int)
        decode_folder(tmp_path, out, ["noise.png"], compress_again=30)
        again = np.fromfile(out, np.uint8).astype(int)
        largest = noise.size
        np.testing.assert_array_equal(again[:largest], noise.ravel())
        # Compression takes much of the noise away, and leaves the brightness.
        assert np.std(again[largest:]) < 0.8 * np.std(plain[largest:])
        assert abs(np.mean(again[largest:]) - np.mean(plain[largest:])) < 3
