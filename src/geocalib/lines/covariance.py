"""How sure the answer is once the lines have been seen.

The inverse of the curvature at the minimum, and on top of it what a principal point that is not
quite where it is held, and a distortion that is not quite 0, would do to the answer: no number of
segments averages that out.
"""

from __future__ import annotations

import numpy as np

from geocalib.cameras import get_model
from geocalib.geometry.gravity import tangent_basis
from geocalib.lines.minimise import Normal, Problem, Scene
from geocalib.lines.prior import Prior
from geocalib.lines.residuals import look
from geocalib.lines.system import Arrow, assembled, reduced
from geocalib.lines.unknowns import Array, Guess, Layout, times
from geocalib.records import dataclass, replace

CENTRE = 0.004
"""One sigma of the principal point, of the image's longer side, where it is held fixed."""
DISTORTION = 0.03
"""One sigma of k1 in units of the image's height (k1 = that times (f / H)^2), of lenses that are
taken for pinholes."""


@dataclass(frozen=True)
class Told:
    """What lines alone tell around guesses."""

    arrow: Arrow
    """Their information, the headings eliminated."""
    pulls: tuple[tuple[Array, Array], ...]
    """(R, T, a) and (R, Q) each: how hard one sigma of what is neglected pulls at the answer."""

    def divided(self, repeats: float | Array) -> Told:
        """By segments that say as many times less, (R,) or all alike."""
        arrow, share = self.arrow, np.reshape(1 / np.asarray(repeats), (-1, 1, 1, 1))
        each = share[..., 0], share[..., 0, 0]
        pulls = tuple([(time * each[0], camera * each[1]) for time, camera in self.pulls])
        return Told(Arrow(arrow.A * share, arrow.B * share, arrow.C * each[0]), pulls)


def told_by_lines(problem: Problem, scene: Scene) -> Told:
    """That of the segments of a scene."""
    layout = problem.layout
    shared = layout.tangents + layout.intrinsics
    (hessian, gradient), forces = _neglected(problem, scene)
    lines, gradient, turns = reduced(hessian, gradient, shared)
    # Headings give way to every force as they do to the gradient.
    left = [each[..., :shared] - times(turns.slope.mT, each[..., shared:]) for each in forces]
    pulls = tuple([assembled(lines, force, layout)[1] for force in left])
    return Told(assembled(lines, gradient, layout)[0], pulls)


def covariance(prior: Prior, layout: Layout, guess: Guess, told: Told) -> Array:
    """(R, B, P, P) of each image's gravity, in its own tangent basis, and intrinsics, at guesses
    around which lines tell so much."""
    a, own = layout.tangents, layout.intrinsics
    pull = prior.pull(guess, layout, prior.forces(guess, layout))
    rest = (told.arrow + pull.arrow).eliminate()
    cameras = np.asarray(np.linalg.inv(rest.S), np.float64)
    AB, inner = rest.AB, cameras[:, None]
    gravities = rest.A_inverse + AB @ inner @ AB.mT
    blocks = _blocks(layout, gravities, -AB @ inner, cameras)
    for force in told.pulls:
        time, camera = rest.solve(*force)
        camera = camera.reshape(len(camera), layout.cameras, own)
        moved = np.concatenate([time[:, layout.time], camera[:, layout.camera]], 2)
        blocks = blocks + moved[..., :, None] * moved[..., None, :]
    if a and layout.rotation is not None:
        images = layout.images(guess)
        turn = np.tile(np.eye(a + own), (*blocks.shape[:2], 1, 1))
        turn[..., :a, :a] = tangent_basis(images.gravity).mT @ images.basis
        blocks = turn @ blocks @ turn.mT
    return np.asarray(0.5 * (blocks + blocks.mT))


def _neglected(problem: Problem, scene: Scene) -> tuple[Normal, list[Array]]:
    """The normal equations, and (R, B, P) each: how hard one sigma of what is neglected pulls at
    the answer: of the principal point along each axis where it is held, and of distortion where
    the model has none."""
    layout, images, sight = problem.layout, scene.view.images, scene.view.sight
    free, held = layout.free, not layout.free.principal_point
    size = layout.size[..., layout.camera, :]
    sigmas = []
    if not layout.model.parameters:
        images = images.bent(get_model("division"))
        sight = look(images, problem.bundle, sight.directions)
        free = replace(free, distortion=(0,))
        sigmas.append(DISTORTION * (images.focal[..., 1] / size[..., 1]) ** 2)
    if held:
        free = replace(free, principal_point=True)
        sigmas += [CENTRE * size.max(-1)] * 2
    hessian, gradient = problem.normal(scene, sight, free)
    # What is neglected is among the intrinsics: distortion before the principal point.
    first = layout.tangents + layout.intrinsics - 2 * int(not held)
    others = range(first, first + len(sigmas))
    known = np.array([i for i in range(hessian.shape[-1]) if i not in others])
    pulls = [
        np.ascontiguousarray(-hessian[..., known, i] * sigma[..., None])
        for i, sigma in zip(others, sigmas, strict=True)
    ]
    # How an indexed array lies in memory depends on its rows, and on that the bits of products.
    kept = np.ascontiguousarray(hessian[..., known[:, None], known])
    return (kept, np.ascontiguousarray(gradient[..., known])), pulls


def _blocks(layout: Layout, gravities: Array, side: Array, cameras: Array) -> Array:
    """(R, B, P, P) from the covariances of gravities (R, T, a, a), of these with cameras
    (R, T, a, Q), and of cameras (R, Q, Q)."""
    count, own = layout.cameras, layout.intrinsics
    # Indices apart put their axis first.
    split = cameras.reshape(-1, count, own, count, own)[:, layout.camera, :, layout.camera]
    sides = side.reshape(*side.shape[:-1], count, own)[:, layout.time, :, layout.camera]
    split, sides = split.swapaxes(0, 1), sides.swapaxes(0, 1)
    top = np.concatenate([gravities[:, layout.time], sides], -1)
    return np.concatenate([top, np.concatenate([sides.mT, split], -1)], -2)
