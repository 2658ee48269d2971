"""Shared cameras and rigs against the dense problem."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import least_squares
from torch import Tensor

from geocalib.cameras import Camera
from geocalib.errors import CouplingError
from geocalib.geometry import gravity as sphere
from geocalib.geometry.fields import Fields, perspective_field
from geocalib.solver import FitOptions, FitResult, Rig, Status, fit
from geocalib.solver.coupling import Arrow, Coupling, assemble_vector, couple, to_cameras
from geocalib.solver.observations import observe
from views import gravity_error_deg, random_cameras, random_gravity, see, with_noise

S2 = 2e-4
PLAIN = FitOptions(cells=None, huber=None, confidence_scale=S2)
CPU = torch.device("cpu")


def turn(axis: tuple[float, float, float], degrees: float) -> Tensor:
    """Rotation (3, 3) about an axis."""
    x, y, z = axis
    skew = torch.tensor([[0, -z, y], [z, 0, -x], [-y, x, 0]], dtype=torch.float64)
    rotation: Tensor = torch.linalg.matrix_exp(math.radians(degrees) * skew)
    return rotation


def interleaved(noise: float = 1.0) -> tuple[Camera, Tensor, Fields, list[int]]:
    """Six images of two cameras, taken in turns, whose numbers do not ascend."""
    groups = [7, 3, 7, 7, 3, 3]
    cameras = random_cameras("simple_radial", 2, seed=1, size=(16, 14), vfov_deg=(50, 90))
    camera = cameras[[0, 1, 0, 0, 1, 1]]
    gravity = random_gravity(6, seed=2, most_deg=25)
    return camera, gravity, with_noise(see(camera, gravity), noise, seed=3), groups


# The dense reference ----------------------------------------------------------------------------


class Dense:
    """All unknowns in one vector: gravities (tangent steps), then log f and k1 of each camera."""

    def __init__(
        self, fields: Fields, result: FitResult, camera: list[int], rotation: Tensor | None = None
    ) -> None:
        self.observed = observe(fields, None)
        self.camera = camera
        self.cameras = max(camera) + 1
        self.size = result.camera.size
        first = [camera.index(i) for i in range(self.cameras)]
        intrinsics = torch.stack([result.camera.f.log(), result.camera.distortion[:, 0]], 1)
        self.intrinsics = intrinsics[first]
        # With a rig one gravity, in its frame, serves all images.
        self.rotation = rotation
        self.gravity = result.gravity
        if rotation is not None:
            self.gravity = (rotation[:1].transpose(1, 2) @ result.gravity[:1, :, None])[..., 0]
        self.unknowns = 2 * len(self.gravity) + 2 * self.cameras

    def residuals(self, step: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Every residual, divided by its noise."""
        x = torch.from_numpy(step)
        split = 2 * len(self.gravity)
        gravity = sphere.move(self.gravity, x[:split].reshape(-1, 2))
        if self.rotation is not None:
            gravity = (self.rotation @ gravity[0])[:, :]
        log_f, k1 = (self.intrinsics + x[split:].reshape(-1, 2))[self.camera].unbind(1)
        camera = Camera.create("simple_radial", log_f.exp(), self.size, k1[:, None])
        o = self.observed
        up, latitude, _ = perspective_field(camera, gravity, o.up_places())
        parts = [
            (up[..., 0] - o.up_x) * o.up_weight.sqrt(),
            (up[..., 1] - o.up_y) * o.up_weight.sqrt(),
            (torch.sin(latitude) - o.sin_latitude) * o.latitude_weight.sqrt(),
        ]
        return torch.cat([part.flatten() for part in parts]).numpy() / math.sqrt(S2)

    def solve(self) -> Any:
        return least_squares(
            self.residuals, np.zeros(self.unknowns), xtol=1e-14, ftol=1e-14, gtol=1e-12
        )


def test_groups_equal_the_dense_problem() -> None:
    _, _, fields, groups = interleaved()
    result = fit(fields, "simple_radial", groups=groups, options=PLAIN)
    assert result.status == [Status.CONVERGED] * 6
    camera = [0, 1, 0, 0, 1, 1]
    dense = Dense(fields, result, camera)
    solution = dense.solve()
    covariance = torch.from_numpy(np.linalg.inv(solution.jac.T @ solution.jac))
    sigma = covariance.diagonal().sqrt()
    # From our optimum the dense solver has nowhere to go.
    assert np.abs(solution.x / sigma.numpy()).max() < 1e-3
    for i in range(6):
        own = [2 * i, 2 * i + 1, 12 + 2 * camera[i], 13 + 2 * camera[i]]
        expected = covariance[own][:, own]
        scale = torch.outer(sigma[own], sigma[own])
        torch.testing.assert_close(
            result.covariance[i] / scale, expected / scale, rtol=0, atol=5e-3
        )


def test_a_rig_equals_the_dense_problem() -> None:
    rotation = torch.stack([turn((0, 1, 0), 90.0 * i) @ turn((1, 0, 0), 5.0 * i) for i in range(3)])
    cameras = random_cameras("simple_radial", 3, seed=1, size=(16, 14), vfov_deg=(50, 90))
    gravity = (rotation @ random_gravity(1, seed=2, most_deg=20)[0])[:, :]
    fields = with_noise(see(cameras, gravity), 1, seed=3)
    rig = Rig(rotation, camera=[0, 1, 2], time=[4, 4, 4])
    result = fit(fields, "simple_radial", rig=rig, options=PLAIN)
    dense = Dense(fields, result, [0, 1, 2], rotation)
    solution = dense.solve()
    covariance = torch.from_numpy(np.linalg.inv(solution.jac.T @ solution.jac))
    sigma = covariance.diagonal().sqrt()
    assert np.abs(solution.x / sigma.numpy()).max() < 1e-3
    shared = sphere.tangent_basis(dense.gravity)[0]
    for i in range(3):
        own = [0, 1, 2 + 2 * i, 3 + 2 * i]
        # From the rig's tangent basis to the image's own.
        change = torch.eye(4, dtype=torch.float64)
        change[:2, :2] = sphere.tangent_basis(result.gravity[i]).T @ rotation[i] @ shared
        expected = change @ covariance[own][:, own] @ change.T
        scale = expected.diagonal().sqrt()
        scale = torch.outer(scale, scale)
        torch.testing.assert_close(
            result.covariance[i] / scale, expected / scale, rtol=0, atol=5e-3
        )


# Groups -----------------------------------------------------------------------------------------


def test_images_of_a_group_share_one_camera() -> None:
    camera, gravity, fields, groups = interleaved(noise=0.0)
    result = fit(fields, "simple_radial", groups=torch.tensor(groups))
    for label in (3, 7):
        images = [i for i, group in enumerate(groups) if group == label]
        assert len(set(result.camera.f[images].tolist())) == 1
        assert len(set(result.camera.distortion[images, 0].tolist())) == 1
    torch.testing.assert_close(result.camera.f, camera.f, rtol=1e-6, atol=0)
    assert gravity_error_deg(result.gravity, gravity).max() < 1e-4


def test_groups_that_converge_at_different_times_keep_their_cameras() -> None:
    # Whoever starts at the solution is done at once; the others go on without them.
    f = torch.tensor([0.7 * 32, 0.7 * 32, 0.7 * 32, 15.0, 60.0], dtype=torch.float64)
    cameras = Camera.create("pinhole", f, (32, 32))
    camera = cameras[[0, 0, 1, 2, 3, 4]]
    level = torch.tensor([[0.0, 1.0, 0.0]], dtype=torch.float64).expand(4, 3)
    gravity = torch.cat([level, random_gravity(2, seed=5, most_deg=40)])
    result = fit(see(camera, gravity), groups=[10, 10, 11, 12, 9, 8])
    torch.testing.assert_close(result.camera.f, camera.f, rtol=1e-6, atol=0)
    assert gravity_error_deg(result.gravity, gravity).max() < 1e-4
    assert result.iterations[0] < result.iterations[4]


def test_groups_of_one_are_images_alone() -> None:
    _, _, fields, _ = interleaved()
    alone = fit(fields, "simple_radial")
    grouped = fit(fields, "simple_radial", groups=[5, 1, 4, 0, 3, 2])
    assert torch.equal(alone.camera.f, grouped.camera.f)
    assert torch.equal(alone.covariance, grouped.covariance)


def test_permuting_images_permutes_results() -> None:
    _, _, fields, groups = interleaved()
    order = [4, 0, 5, 3, 1, 2]
    result = fit(fields, "simple_radial", groups=groups)
    permuted = fit(fields[order], "simple_radial", groups=[groups[i] for i in order])
    torch.testing.assert_close(permuted.camera.f, result.camera.f[order], rtol=1e-8, atol=0)
    torch.testing.assert_close(permuted.gravity, result.gravity[order], rtol=0, atol=1e-8)
    torch.testing.assert_close(permuted.covariance, result.covariance[order], rtol=1e-4, atol=1e-12)


@pytest.mark.parametrize("options", [PLAIN, FitOptions(cells=None)])
def test_the_shared_sigma_shrinks_with_the_number_of_images(options: FitOptions) -> None:
    camera = random_cameras("pinhole", 1, seed=1, size=(32, 32), vfov_deg=(60, 70))
    fields = with_noise(see(camera[[0] * 16], random_gravity(16, seed=2, most_deg=5)), 1, seed=3)
    alone = fit(fields, options=options).sigma.vfov_deg
    mean_information = (alone**-2).mean()
    for count in (4, 16):
        shared = fit(fields[:count], groups=[0] * count, options=options).sigma.vfov_deg
        assert float(shared.std()) < 1e-9
        expected = 1 / torch.sqrt(count * mean_information)
        assert float(shared[0] / expected) == pytest.approx(1, abs=0.2)


# Rigs -------------------------------------------------------------------------------------------


def make_rig(times: int) -> tuple[Camera, Tensor, Fields, Rig]:
    """Three cameras that look around, over several times."""
    rotation = torch.stack([turn((0, 1, 0), 120.0 * i) @ turn((1, 0, 0), 10.0) for i in range(3)])
    cameras = random_cameras("simple_radial", 3, seed=1, size=(40, 40), vfov_deg=(50, 90))
    index = [camera for _ in range(times) for camera in (2, 0, 1)]
    time = [10 - t for t in range(times) for _ in range(3)]
    of_rig = random_gravity(11, seed=2, most_deg=20)[time]
    gravity = (rotation[index] @ of_rig[..., None])[..., 0]
    camera = cameras[index]
    return camera, gravity, see(camera, gravity), Rig(rotation, index, time)


def test_a_rig_recovers_gravity_and_every_camera() -> None:
    camera, gravity, fields, rig = make_rig(times=3)
    noisy = with_noise(fields, 1, seed=3)
    result = fit(noisy, "simple_radial", rig=rig)
    assert result.status == [Status.CONVERGED] * 9
    # One gravity at each time, seen from each camera.
    in_rig = (rig.camera_from_rig[rig.camera].transpose(1, 2) @ result.gravity[..., None])[..., 0]
    for t in range(3):
        trio = in_rig[3 * t : 3 * t + 3]
        assert gravity_error_deg(trio, trio[[0, 0, 0]]).max() < 1e-9
    # One camera over time.
    assert torch.equal(result.camera.f[:3], result.camera.f[3:6])
    assert bool((gravity_error_deg(result.gravity, gravity) < 4 * result.sigma.gravity_deg).all())
    error = (result.vfov_deg - torch.rad2deg(camera.vfov)).abs()
    assert bool((error < 4 * result.sigma.vfov_deg).all())
    # Together they know more than each alone.
    alone = fit(noisy, "simple_radial")
    assert bool((result.sigma.gravity_deg < alone.sigma.gravity_deg).all())
    exact = fit(fields, "simple_radial", rig=rig)
    torch.testing.assert_close(exact.camera.f, camera.f, rtol=1e-5, atol=0)
    assert gravity_error_deg(exact.gravity, gravity).max() < 1e-3


def test_a_rig_camera_that_sees_nothing_fails_alone() -> None:
    _, _, fields, rig = make_rig(times=2)
    blind = torch.ones(6, 1, 1, dtype=torch.float64)
    # Camera 0 never sees anything, camera 1 only at the first time.
    blind[[1, 4, 5]] = 0
    noisy = with_noise(fields, 1, seed=3)
    dark = Fields(
        noisy.up, noisy.latitude, noisy.up_confidence * blind, noisy.latitude_confidence * blind
    )
    result = fit(dark, "simple_radial", rig=rig)
    seen = [0, 2, 3]
    for image in range(6):
        expected = Status.CONVERGED if image in seen else Status.NO_CONFIDENCE
        assert result.status[image] is expected
    assert bool(torch.isnan(result.camera.f[[1, 4, 5]]).all())
    assert isinstance(rig.camera, list)
    assert isinstance(rig.time, list)
    part = Rig(rig.camera_from_rig, [rig.camera[i] for i in seen], [rig.time[i] for i in seen])
    without = fit(noisy[seen], "simple_radial", rig=part)
    torch.testing.assert_close(result.gravity[seen], without.gravity, rtol=0, atol=1e-7)
    torch.testing.assert_close(result.camera.f[seen], without.camera.f, rtol=1e-7, atol=0)
    torch.testing.assert_close(result.covariance[seen], without.covariance, rtol=1e-4, atol=1e-12)


def test_cameras_mounted_against_each_other() -> None:
    # Two level cameras would cancel each other's gravity.
    rotation = torch.stack([turn((0, 0, 1), 0), turn((0, 0, 1), 180)])
    camera = random_cameras("pinhole", 2, seed=1, size=(40, 40), vfov_deg=(50, 90))
    gravity = rotation @ random_gravity(1, seed=2, most_deg=20)[0]
    result = fit(see(camera, gravity), rig=Rig(rotation, [0, 1], [0, 0]))
    assert result.status == [Status.CONVERGED] * 2
    assert gravity_error_deg(result.gravity, gravity).max() < 1e-3
    torch.testing.assert_close(result.camera.f, camera.f, rtol=1e-5, atol=0)


def test_rig_cameras_of_one_kind_share_intrinsics_by_groups() -> None:
    camera, gravity, _, rig = make_rig(times=2)
    # The second and third camera are of one make.
    camera = camera[[2, 1, 2, 2, 1, 2]]
    fields = with_noise(see(camera, gravity), 1, seed=4)
    result = fit(fields, "simple_radial", rig=rig, groups=[5, 8, 5, 5, 8, 5])
    apart = fit(fields, "simple_radial", rig=rig)
    assert len(set(result.camera.f[[0, 2, 3, 5]].tolist())) == 1
    assert bool((result.sigma.vfov_deg[[0, 2]] < apart.sigma.vfov_deg[[0, 2]]).all())
    error = (result.vfov_deg - torch.rad2deg(camera.vfov)).abs()
    assert bool((error < 4 * result.sigma.vfov_deg).all())
    assert bool((gravity_error_deg(result.gravity, gravity) < 4 * result.sigma.gravity_deg).all())


def test_a_rig_of_one_image_per_time_and_camera_stands_alone() -> None:
    rotation = turn((0, 0, 1), 20)[None].expand(3, 3, 3)
    camera, gravity = random_cameras("pinhole", 3, seed=1), random_gravity(3, seed=2, most_deg=20)
    fields = with_noise(see(camera, gravity), 1, seed=3)
    alone = fit(fields)
    rigged = fit(fields, rig=Rig(rotation, [0, 1, 2], [0, 1, 2]))
    torch.testing.assert_close(rigged.camera.f, alone.camera.f, rtol=1e-5, atol=0)
    torch.testing.assert_close(rigged.gravity, alone.gravity, rtol=0, atol=1e-5)
    torch.testing.assert_close(rigged.covariance, alone.covariance, rtol=1e-2, atol=1e-9)


# Errors -----------------------------------------------------------------------------------------


EYES = torch.eye(3).expand(2, 3, 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"groups": [0, 1]}, r"groups must hold one integer per image \(3\), got shape \(2,\)"),
        ({"groups": [0.5, 1.0, 1.0]}, "groups must hold one integer per image"),
        ({"groups": [[0, 1, 1]]}, "groups must hold one integer per image"),
        ({"rig": Rig(EYES, [0, 1], [0, 0, 0])}, r"rig\.camera must hold one integer per image"),
        ({"rig": Rig(EYES, [0, 1, 0], [0, 1])}, r"rig\.time must hold one integer per image"),
        ({"rig": Rig(EYES, [0, 1, 2], [0, 0, 1])}, r"rig\.camera must lie in 0 \.\. 1"),
        ({"rig": Rig(EYES, [0, 1, -1], [0, 0, 1])}, r"rig\.camera must lie in 0 \.\. 1"),
        ({"rig": Rig(EYES, [0, 1, 1], [0, 0, 0])}, "same camera at the same time"),
        ({"rig": Rig(torch.eye(3), [0, 0, 0], [0, 1, 2])}, r"must be \(cameras, 3, 3\)"),
        ({"rig": Rig(-EYES, [0, 1, 0], [0, 0, 1])}, r"camera_from_rig\[0\] is no rotation"),
        ({"rig": Rig(2 * EYES, [0, 1, 0], [0, 0, 1])}, "is no rotation"),
    ],
)
def test_wrong_couplings(arguments: dict[str, Any], message: str) -> None:
    camera = random_cameras("pinhole", 3, seed=1, size=(12, 10))
    fields = see(camera, random_gravity(3, seed=2, most_deg=20))
    with pytest.raises(CouplingError, match=message):
        fit(fields, **arguments)


def test_images_that_share_a_camera_have_one_size_and_aspect() -> None:
    parts = []
    for size in ((12, 10), (10, 12)):
        camera = random_cameras("pinhole", 1, seed=1, size=size)
        parts.append(see(camera, random_gravity(1, seed=2, most_deg=20)))
    with pytest.raises(CouplingError, match="another size or aspect"):
        fit(parts, groups=[0, 0])
    with pytest.raises(CouplingError, match="another size or aspect"):
        fit(Fields.concatenate([parts[0], parts[0]]), groups=[0, 0], aspect=[1.0, 1.1])


# The arrow-shaped system ------------------------------------------------------------------------


def several_components() -> Coupling:
    """Two rigs, one of two cameras over three times, one of three over two, and a lone image."""
    camera = [0, 1, 0, 1, 0, 1, 2, 3, 4, 2, 3, 4, 5]
    time = [0, 0, 1, 1, 2, 2, 3, 3, 3, 4, 4, 4, 5]
    return couple(13, None, Rig(torch.eye(3).expand(6, 3, 3), camera, time), CPU)


def dense_system(matrix: Tensor, vector: Tensor, coupling: Coupling) -> tuple[Tensor, Tensor]:
    """The same system over all unknowns: first the times', then the cameras'."""
    times, cameras = len(coupling.time_component), len(coupling.camera_component)
    own = matrix.shape[1] - 2
    full = matrix.new_zeros(2 * times + own * cameras, 2 * times + own * cameras)
    right = matrix.new_zeros(len(full))
    for i, (t, c) in enumerate(zip(coupling.time.tolist(), coupling.camera.tolist(), strict=True)):
        at = [2 * t, 2 * t + 1, *range(2 * times + own * c, 2 * times + own * (c + 1))]
        full[np.ix_(at, at)] += matrix[i]
        right[at] += vector[i]
    return full, right


def random_systems(images: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    root = torch.randn(images, 5, 9, generator=generator, dtype=torch.float64)
    vector = torch.randn(images, 5, generator=generator, dtype=torch.float64)
    return root @ root.transpose(1, 2), vector


@pytest.mark.parametrize("damping", [0.0, 0.3])
@pytest.mark.parametrize(
    "coupling",
    [
        several_components(),
        couple(6, [1, 0, 1, 1, 0, 2], None, CPU),
        couple(4, None, None, CPU),
    ],
)
def test_elimination_against_a_dense_solve(coupling: Coupling, damping: float) -> None:
    matrix, vector = random_systems(len(coupling.time))
    arrow = Arrow.assemble(matrix, coupling, 2)
    b_time, b_camera = assemble_vector(vector, coupling, 2)
    factor = torch.full((coupling.components,), damping, dtype=torch.float64)
    x_time, x_camera = (
        arrow.damped(factor, coupling).eliminate(coupling).solve(b_time, b_camera, coupling)
    )
    full, right = dense_system(matrix, vector, coupling)
    full = full + damping * torch.diag(full.diagonal())
    found = torch.cat([x_time.flatten(), to_cameras(x_camera, coupling).flatten()])
    torch.testing.assert_close(found, torch.linalg.solve(full, right))


def test_components_of_a_coupling() -> None:
    coupling = several_components()
    assert (coupling.components, coupling.slots) == (3, 3)
    assert coupling.time_component.tolist() == [0, 0, 0, 1, 1, 2]
    assert coupling.camera_component.tolist() == [0, 0, 1, 1, 1, 2]
    assert not coupling.separate
    # A chain through shared cameras is one component.
    chain = couple(
        6, None, Rig(torch.eye(3).expand(4, 3, 3), [0, 1, 1, 2, 2, 3], [0, 0, 1, 1, 2, 2]), CPU
    )
    assert chain.components == 1
    assert couple(3, [4, 2, 9], None, CPU).separate


@pytest.mark.parametrize(
    "keep", [[False, True, True], [True, False, True], [False, False, True], [True, True, True]]
)
def test_selected_components_solve_alike(keep: list[bool]) -> None:
    coupling = several_components()
    matrix, vector = random_systems(13)
    expected = torch.linalg.solve(*dense_system(matrix, vector, coupling))
    sub, images, times, cameras = coupling.select(torch.tensor(keep))
    assert sub.components == sum(keep)
    right = assemble_vector(vector[images], sub, 2)
    none = torch.zeros(sub.components, dtype=torch.float64)
    arrow = Arrow.assemble(matrix[images], sub, 2).damped(none, sub)
    x_time, x_camera = arrow.eliminate(sub).solve(*right, sub)
    torch.testing.assert_close(x_time, expected[:12].reshape(-1, 2)[times])
    torch.testing.assert_close(to_cameras(x_camera, sub), expected[12:].reshape(-1, 3)[cameras])
