from __future__ import annotations

import dataclasses
import json
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from safetensors import safe_open
from torch import Tensor, nn

from geocalib.errors import MissingPackageError, WeightsError
from geocalib.nets import encoders, published
from geocalib.nets.folding import fold_batch_norm
from geocalib.nets.lean import LeanConfig, LeanNetwork
from geocalib.nets.published import MscanShape, PublishedNetwork, published_name
from geocalib.nets.weights import catalogue
from geocalib.nets.weights.card import WeightCard
from geocalib.nets.weights.catalogue import PUBLISHED, WEIGHT_NAMES
from geocalib.nets.weights.files import load_network, read_weights, save_weights
from little_encoder import LITTLE

LITTLE_MSCAN = MscanShape(widths=(4, 6, 8, 10), depths=(1, 1, 1, 1), mlp_ratios=(2, 2, 2, 2))
CONFIG = LeanConfig("little", (4, 6, 32), blocks=1)
CARD = WeightCard(
    name="mine",
    architecture="lean",
    largest_aspect=2.0,
    confidence_scale=3e-4,
    sigma_scale={"gravity": 1.5, "focal": 2},
    trained=True,
    licence="Apache-2.0",
    source="a test",
    description="small",
)


@pytest.fixture(autouse=True)
def little_networks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A small encoder, a small published network, and a folder for downloads."""
    monkeypatch.setitem(encoders.ENCODERS, "little", LITTLE)
    monkeypatch.setattr(published, "PublishedNetwork", little_published)
    monkeypatch.setenv("GEOCALIB_CACHE", str(tmp_path / "cache"))


def little_published() -> PublishedNetwork:
    return PublishedNetwork(LITTLE_MSCAN, width=6, context_width=12, rank=4)


def lived_in(network: nn.Module) -> nn.Module:
    """With batch norms that have seen something."""
    generator = torch.Generator().manual_seed(1)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.2, generator=generator)
            module.running_var.uniform_(0.5, 2, generator=generator)
            module.num_batches_tracked.fill_(70_000)
    return network.eval()


def little_lean() -> LeanNetwork:
    torch.manual_seed(0)
    return lived_in(LeanNetwork(CONFIG))


def image() -> Tensor:
    return torch.rand(1, 3, 64, 96, generator=torch.Generator().manual_seed(2))


def released(path: Path, change: Callable[[dict[str, Tensor]], object] = lambda _: None) -> Path:
    """A checkpoint as published, of the little network."""
    torch.manual_seed(0)
    network = lived_in(little_published())
    state = {published_name(name): value for name, value in network.state_dict().items()}
    change(state)
    torch.save({"model": state, "epoch": 3}, path)
    return path


def complaint(path: Path) -> str:
    """What is said of a file that cannot be loaded: one line that names it and what to do."""
    with pytest.raises(WeightsError) as caught:
        load_network(path)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    assert message.endswith("; copy it again, or use one of " + ", ".join(WEIGHT_NAMES))
    return message


class TestCard:
    @pytest.mark.parametrize("card", [CARD, *PUBLISHED.values()], ids=lambda card: card.name)
    def test_json_and_back(self, card: WeightCard) -> None:
        assert WeightCard.from_json(card.to_json()) == card

    def test_json_is_standard(self) -> None:
        def refuse(constant: str) -> None:
            raise AssertionError(constant)

        text = PUBLISHED["published-pinhole"].to_json()
        values = json.loads(text, parse_constant=refuse)
        assert values["largest_aspect"] is None
        assert values.keys() == {f.name for f in dataclasses.fields(WeightCard)}

    def test_the_config_rebuilds_the_network(self) -> None:
        card = dataclasses.replace(CARD, config=dataclasses.asdict(CONFIG))
        assert LeanConfig(**WeightCard.from_json(card.to_json()).config) == CONFIG

    def test_defaults_may_be_left_out(self) -> None:
        card = WeightCard.from_json(
            '{"name": "a", "architecture": "lean", "trained": false, "licence": "b",'
            ' "source": "c", "description": "d"}'
        )
        assert card.confidence_scale is None
        assert card.sigma_scale == {}
        assert card.short_side == 320

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"colour": 1}, "unknown 'colour'"),
            ({"trained": "yes"}, "trained of a weight card cannot be 'yes'"),
            ({"architecture": "big"}, "architecture of a weight card cannot be 'big'"),
            ({"short_side": 320.5}, "short_side of a weight card cannot be 320.5"),
            ({"short_side": True}, "short_side of a weight card cannot be True"),
            ({"short_side": 0}, "short_side >= 1"),
            ({"largest_aspect": 0.5}, "largest_aspect >= 1"),
            ({"confidence_scale": 0}, "confidence_scale must be positive"),
            ({"confidence_scale": "1"}, "confidence_scale of a weight card cannot be '1'"),
            ({"sigma_scale": {"roll": 1.0}}, "no 'roll'; there are gravity, focal, distortion"),
            ({"sigma_scale": {"focal": -1.0}}, "focal must be positive"),
            ({"sigma_scale": {"focal": None}}, "focal must be positive"),
            ({"sigma_scale": {"focal": "2"}}, "focal must be positive"),
            ({"config": [1]}, "config of a weight card cannot be"),
            ({"sha256": 5}, "sha256 of a weight card cannot be 5"),
        ],
    )
    def test_bad_values(self, change: dict[str, Any], message: str) -> None:
        values = json.loads(CARD.to_json()) | change
        with pytest.raises(WeightsError, match=message):
            WeightCard.from_json(json.dumps(values))

    def test_missing_values(self) -> None:
        values = json.loads(CARD.to_json())
        del values["trained"]
        with pytest.raises(WeightsError, match="lacks 'trained'"):
            WeightCard.from_json(json.dumps(values))

    @pytest.mark.parametrize(("text", "message"), [("{", "no JSON"), ("[]", "a list")])
    def test_other_text(self, text: str, message: str) -> None:
        with pytest.raises(WeightsError, match=message):
            WeightCard.from_json(text)

    def test_a_config_of_objects(self) -> None:
        with pytest.raises(WeightsError, match="plain values"):
            dataclasses.replace(CARD, config={"encoder": nn.Identity()})


class TestRoundTrip:
    def test_fields_stay_within_half_precision(self, tmp_path: Path) -> None:
        network, path = little_lean(), tmp_path / "mine.safetensors"
        save_weights(path, network, CARD)
        loaded = load_network(path)
        with torch.no_grad():
            expected = network(image())
        for found, value in zip(loaded.network(image()), expected, strict=True):
            torch.testing.assert_close(found, value, rtol=0, atol=3e-3)
            assert not torch.equal(found, torch.zeros_like(found))

    def test_the_network_is_ready_for_use(self, tmp_path: Path) -> None:
        save_weights(tmp_path / "a", little_lean().train(), CARD)
        network = load_network(tmp_path / "a").network
        assert isinstance(network, LeanNetwork)
        assert network.config == CONFIG
        assert not any(module.training for module in network.modules())
        assert not any(isinstance(module, nn.BatchNorm2d) for module in network.modules())
        assert {p.dtype for p in network.parameters()} == {torch.float32}
        assert not any(p.requires_grad for p in network.parameters())

    def test_the_card_comes_along(self, tmp_path: Path) -> None:
        save_weights(tmp_path / "a", little_lean(), dataclasses.replace(CARD, sha256="old"))
        card = load_network(str(tmp_path / "a")).card
        assert card.sha256 is not None
        assert len(card.sha256) == 64
        config = {"encoder": "little", "widths": [4, 6, 32], "blocks": 1}
        config |= {"ranks": [], "expansion": 4}
        assert card == dataclasses.replace(CARD, config=config, sha256=card.sha256)

    def test_the_file_holds_the_network_as_trained(self, tmp_path: Path) -> None:
        network = little_lean()
        save_weights(tmp_path / "a", network, CARD)
        stored = safetensors.torch.load_file(tmp_path / "a")
        assert stored.keys() == network.state_dict().keys()
        counts = {v.item() for n, v in stored.items() if n.endswith("num_batches_tracked")}
        assert counts == {70_000}
        assert stored["fuse4.refine.0.weight"].dtype == torch.float16

    def test_what_half_precision_would_spoil_is_kept(self, tmp_path: Path) -> None:
        network = little_lean()
        spoilt = {
            "fuse4.refine.1.running_var": 1e-7,
            "fuse8.refine.1.running_var": 1e6,
            "fuse8.narrow.weight": 1e-30,
        }
        state = network.state_dict()
        for name, value in spoilt.items():
            state[name][0] = value
        save_weights(tmp_path / "a", network, CARD)
        stored = safetensors.torch.load_file(tmp_path / "a")
        kept = {n for n, v in stored.items() if v.dtype == torch.float32}
        assert set(spoilt) <= kept
        for name, value in stored.items():
            expected = state[name].float()
            error = (value.float() - expected).flatten(1 if value.dim() > 1 else 0)
            if value.dim() > 1:
                assert (error.norm(dim=1) <= 1e-2 * expected.flatten(1).norm(dim=1)).all(), name
            else:
                assert (error.abs() <= 1e-2 * expected.abs().flatten()).all(), name

    def test_tiny_entries_of_a_kernel_do_not_matter(self, tmp_path: Path) -> None:
        network = little_lean()
        network.state_dict()["fuse4.refine.0.weight"][:, 0] = 1e-9
        save_weights(tmp_path / "a", network, CARD)
        stored = safetensors.torch.load_file(tmp_path / "a")
        assert stored["fuse4.refine.0.weight"].dtype == torch.float16

    def test_any_memory_format(self, tmp_path: Path) -> None:
        network = little_lean()
        save_weights(tmp_path / "a", network, CARD)
        save_weights(tmp_path / "b", network.to(memory_format=torch.channels_last), CARD)
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()

    def test_random_numbers_are_left_alone(self, tmp_path: Path) -> None:
        network, checkpoint = little_lean(), released(tmp_path / "b")
        before = torch.get_rng_state()
        save_weights(tmp_path / "a", network, CARD)
        load_network(tmp_path / "a")
        load_network(checkpoint)
        assert torch.equal(torch.get_rng_state(), before)


class TestSaving:
    def test_a_folded_network_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(WeightsError, match=r"is missing.*not folded"):
            save_weights(tmp_path / "a", fold_batch_norm(little_lean()), CARD)

    @pytest.mark.parametrize("value", [math.nan, math.inf])
    def test_a_failed_training_is_refused_and_the_old_file_stays(
        self, tmp_path: Path, value: float
    ) -> None:
        network = little_lean()
        save_weights(tmp_path / "a", network, CARD)
        before = (tmp_path / "a").read_bytes()
        network.state_dict()["heads.mix.bias"][0] = value
        with pytest.raises(WeightsError, match=r"heads\.mix\.bias has values"):
            save_weights(tmp_path / "a", network, CARD)
        assert (tmp_path / "a").read_bytes() == before

    def test_the_card_of_another_network_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(WeightsError, match="'published'"):
            save_weights(tmp_path / "a", little_lean(), PUBLISHED["published-pinhole"])


class TestBadFiles:
    @pytest.mark.parametrize("name", ["huge", "missing/lean.safetensors"])
    def test_no_such_name_or_file(self, name: str) -> None:
        with pytest.raises(WeightsError, match=f"named '{name}'.*{', '.join(WEIGHT_NAMES)}"):
            load_network(name)

    def test_a_path_is_never_a_name(self, tmp_path: Path) -> None:
        with pytest.raises(WeightsError, match="named 'lean'"):
            load_network(Path("lean"))

    @pytest.mark.parametrize("size", [9, 500, -1])
    def test_a_truncated_file_of_ours(self, tmp_path: Path, size: int) -> None:
        path = tmp_path / "a"
        save_weights(path, little_lean(), CARD)
        path.write_bytes(path.read_bytes()[:size])
        assert "is damaged" in complaint(path)

    @pytest.mark.parametrize("size", [9, 5000, -1])
    def test_a_truncated_checkpoint(self, tmp_path: Path, size: int) -> None:
        path = released(tmp_path / "a")
        path.write_bytes(path.read_bytes()[:size])
        assert "damaged" in complaint(path)

    @pytest.mark.parametrize("content", [b"", b"12345678", b"<!DOCTYPE html><html>"])
    def test_another_kind_of_file(self, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "a.safetensors"
        path.write_bytes(content)
        assert "neither a safetensors file nor a torch checkpoint" in complaint(path)

    def test_a_safetensors_file_of_others(self, tmp_path: Path) -> None:
        path = tmp_path / "a"
        safetensors.torch.save_file({"x": torch.zeros(2)}, path)
        assert "no weight card" in complaint(path)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"colour": 1}, "unknown 'colour': update geocalib"),
            ({"architecture": "published", "config": {}}, "claims to be 'published'"),
            ({"config": {"encoder": "nothing"}}, "no encoder is named 'nothing'"),
            ({"config": {"layers": 3}}, "layers"),
            ({"config": {"encoder": "little", "widths": 3}}, "not iterable"),
            ({"config": {"encoder": "little", "widths": [4, 6, 64], "blocks": 1}}, "instead of"),
            ({"config": {"encoder": "little", "widths": [4, 6, 32]}}, "is missing, and "),
            ({"config": {"encoder": "little", "widths": [4, 6, 32], "blocks": 0}}, "has no place"),
        ],
    )
    def test_a_card_that_does_not_fit(
        self, tmp_path: Path, change: dict[str, Any], message: str
    ) -> None:
        path = tmp_path / "a"
        save_weights(path, little_lean(), CARD)
        with safe_open(path, framework="pt") as file:
            card = json.loads(file.metadata()["geocalib"]) | change
        tensors = safetensors.torch.load_file(path)
        safetensors.torch.save_file(tensors, path, {"geocalib": json.dumps(card)})
        assert message in complaint(path)

    def test_a_checkpoint_of_another_network(self, tmp_path: Path) -> None:
        path = released(tmp_path / "a", lambda state: state.pop("ll_enc.conv1.conv.bias"))
        assert "missing: ll_enc.conv1.conv.bias" in complaint(path)


class TestLean:
    def test_without_a_file_it_is_a_placeholder_that_says_so(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setattr(catalogue, "files", lambda _: tmp_path)
        torch.manual_seed(5)
        before = torch.get_rng_state()
        first = load_network()
        assert torch.equal(torch.get_rng_state(), before)
        torch.manual_seed(6)
        second = load_network("lean")
        assert not first.card.trained
        assert "never trained" in first.card.description
        assert first.card == second.card
        assert LeanConfig(**first.card.config) == LeanConfig()
        pairs = zip(
            first.network.state_dict().values(), second.network.state_dict().values(), strict=True
        )
        assert all(torch.equal(a, b) for a, b in pairs)

    def test_the_file_in_the_package(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setattr(catalogue, "files", lambda _: tmp_path)
        (tmp_path / "weights").mkdir()
        path = tmp_path / "weights" / "lean.safetensors"
        save_weights(path, little_lean(), CARD)
        assert load_network().card.name == "mine"
        path.write_bytes(path.read_bytes()[:-1])
        with pytest.raises(WeightsError, match=r"damaged.*; install geocalib again$"):
            load_network()


def test_weights_in_another_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(catalogue.PACKAGES, "large", "no_such_package")
    for use in (load_network, catalogue.identify):
        with pytest.raises(
            MissingPackageError, match=r"pip install ./large in a checkout, .* no-such-package$"
        ):
            use("large")
    (tmp_path / "there" / "weights").mkdir(parents=True)
    save_weights(tmp_path / "there" / "weights" / "large.safetensors", little_lean(), CARD)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(catalogue.PACKAGES, "large", "there")
    assert load_network("large").card.name == "mine"
    alone = catalogue.identify("large")
    assert alone.startswith("large ")
    # A second network makes other answers.
    (tmp_path / "there" / "weights" / "opinion.safetensors").write_bytes(b"another network")
    assert catalogue.identify("large").startswith(f"{alone} ")


class TestPublished:
    @pytest.mark.parametrize(
        ("name", "legacy"),
        [("geocalib-pinhole.tar", False), ("geocalib-distorted.tar", True), ("weights.pth", False)],
    )
    def test_a_checkpoint_by_its_path(self, tmp_path: Path, name: str, legacy: bool) -> None:
        loaded = load_network(released(tmp_path / name))
        assert isinstance(loaded.network, PublishedNetwork)
        assert loaded.card.name == name
        assert loaded.card.architecture == "published"
        assert loaded.card.legacy_up_field == legacy
        assert loaded.card.trained
        assert loaded.card.largest_aspect == math.inf

    def test_its_fields(self, tmp_path: Path) -> None:
        loaded = load_network(released(tmp_path / "a"))
        torch.manual_seed(0)
        expected = lived_in(little_published())(image())
        for found, value in zip(loaded.network(image()), expected, strict=True):
            torch.testing.assert_close(found, value, rtol=0, atol=1e-4)

    @pytest.fixture
    def release(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """The file that published-distorted is downloaded from."""
        path = released(tmp_path / "geocalib-distorted.tar")
        card = dataclasses.replace(PUBLISHED["published-distorted"], url=path.as_uri())
        monkeypatch.setitem(PUBLISHED, "published-distorted", card)
        return path

    def test_by_name_it_is_downloaded_once(self, release: Path, tmp_path: Path) -> None:
        first = load_network("published-distorted")
        assert first.card.name == "published-distorted"
        assert first.card.legacy_up_field
        kept = tmp_path / "cache" / release.name
        record = (tmp_path / "cache" / f"{release.name}.sha256").read_text()
        assert record == f"{first.card.sha256}  {release.name}\n"
        assert kept.read_bytes() == release.read_bytes()
        release.unlink()
        assert load_network("published-distorted").card == first.card

    def test_a_damaged_file_is_found_out_and_mended(self, release: Path, tmp_path: Path) -> None:
        first = load_network("published-distorted")
        kept = tmp_path / "cache" / release.name
        content = bytearray(kept.read_bytes())
        content[len(content) // 2] ^= 1
        kept.write_bytes(content)
        with pytest.raises(WeightsError) as caught:
            load_network("published-distorted")
        assert str(caught.value) == (
            f"{kept} is damaged: its SHA-256 is not the one in {kept.name}.sha256; "
            "delete it and any .sha256 beside it, and it is fetched again"
        )
        kept.unlink()
        assert load_network("published-distorted").card == first.card

    def test_a_bad_download_is_not_recorded(self, release: Path, tmp_path: Path) -> None:
        release.write_text("<html>please log in</html>")
        with pytest.raises(WeightsError, match=r"damaged.*; delete it .* fetched again$"):
            load_network("published-distorted")
        assert [path.name for path in (tmp_path / "cache").iterdir()] == [release.name]

    def test_the_official_addresses(self) -> None:
        release = "https://github.com/cvg/GeoCalib/releases/download/v1.0"
        assert {name: card.url for name, card in PUBLISHED.items()} == {
            "published-pinhole": f"{release}/geocalib-pinhole.tar",
            "published-distorted": f"{release}/geocalib-distorted.tar",
        }
        assert {card.licence for card in PUBLISHED.values()} == {"CC-BY-4.0"}


def test_importing_needs_torch_alone_and_reading_not_its_compiler() -> None:
    script = (
        "import sys, geocalib.nets.weights.files\n"
        "print(*{'safetensors', 'platformdirs', 'rich', 'cv2', 'scipy'} & set(sys.modules))\n"
        "geocalib.nets.weights.files.load_network('lean')\n"
        "print(*{'torch._dynamo'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []


def test_published_weights_are_not_read_to_be_saved_again(tmp_path: Path) -> None:
    save_weights(tmp_path / "mine", little_lean(), CARD)
    assert read_weights(tmp_path / "mine")[1].sigma_scale == CARD.sigma_scale
    file = released(tmp_path / "geocalib-pinhole.tar")
    with pytest.raises(WeightsError, match="holds the published network; give a file"):
        read_weights(file)
