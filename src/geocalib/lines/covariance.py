"""How sure the answer is once the lines have been seen.

The inverse of the curvature at the minimum, and on top of it what a principal point that is not
quite where it is held, and a distortion that is not quite 0, would do to the answer: no number of
segments averages that out.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from geocalib.cameras import get_model
from geocalib.geometry.gravity import tangent_basis
from geocalib.lines.minimise import Normal, Problem, Scene
from geocalib.lines.residuals import look
from geocalib.lines.system import Arrow, assembled, reduced
from geocalib.lines.unknowns import Array, Layout

CENTRE = 0.003
"""One sigma of the principal point, of the image's longer side, where it is held fixed."""
DISTORTION = 0.03
"""One sigma of k1 in units of the image's height (k1 = that times (f / H)^2), of lenses that are
taken for pinholes."""


def covariance(problem: Problem, scene: Scene) -> Array:
    """(B, P, P) of each image's gravity, in its own tangent basis, and intrinsics, at one guess."""
    layout, view = problem.layout, scene.view
    a, own = layout.tangents, layout.intrinsics
    (hessian, gradient), forces = _neglected(problem, scene)
    lines, gradient, _ = reduced(hessian, gradient, a + own)
    pull = problem.prior.pull(view.guess, layout, scene.forces)
    rest = (assembled(lines, gradient, layout)[0] + pull.arrow).eliminate()
    cameras = np.linalg.inv(rest.S)[0]
    AB = rest.AB[0]
    gravities = rest.A_inverse[0] + AB @ cameras @ AB.mT
    blocks = _blocks(layout, gravities, -AB @ cameras, cameras)
    for force in forces:
        _, force, _ = reduced(hessian, force, a + own)
        time, camera = rest.solve(*assembled(lines, force, layout)[1])
        camera = camera.reshape(len(layout.size), own)
        moved = np.concatenate([time[0, layout.time], camera[layout.camera]], 1)
        blocks = blocks + moved[:, :, None] * moved[:, None]
    if a:
        turn = np.tile(np.eye(a + own), (len(blocks), 1, 1))
        basis = tangent_basis(view.images.gravity[0])
        turn[:, :a, :a] = basis.mT @ view.images.basis[0]
        blocks = turn @ blocks @ turn.mT
    return np.asarray(0.5 * (blocks + blocks.mT))


def information(problem: Problem, scene: Scene) -> Arrow:
    """What lines alone tell around one guess, the headings eliminated."""
    layout = problem.layout
    hessian, gradient = problem.normal(scene)
    hessian, gradient, _ = reduced(hessian, gradient, layout.tangents + layout.intrinsics)
    return assembled(hessian, gradient, layout)[0]


def _neglected(problem: Problem, scene: Scene) -> tuple[Normal, list[Array]]:
    """The normal equations, and (1, B, P) each: how hard one sigma of what is neglected pulls at
    the answer: of the principal point along each axis where it is held, and of distortion where
    the model has none."""
    layout, images, sight = problem.layout, scene.view.images, scene.view.sight
    free, held = layout.free, not layout.free.principal_point
    size = layout.size[layout.camera]
    sigmas = []
    if not layout.model.parameters:
        images = images.bent(get_model("division"))
        sight = look(images, problem.bundle, sight.directions)
        free = replace(free, distortion=(0,))
        sigmas.append(DISTORTION * (images.focal[0, :, 1] / size[:, 1]) ** 2)
    if held:
        free = replace(free, principal_point=True)
        sigmas += [CENTRE * size.max(1)] * 2
    hessian, gradient = problem.normal(scene, sight, free)
    # What is neglected is among the intrinsics: distortion before the principal point.
    first = layout.tangents + layout.intrinsics - 2 * int(not held)
    others = range(first, first + len(sigmas))
    known = np.array([i for i in range(hessian.shape[-1]) if i not in others])
    pulls = [
        -hessian[..., known, i] * sigma[:, None] for i, sigma in zip(others, sigmas, strict=True)
    ]
    return (hessian[..., known[:, None], known], gradient[..., known]), pulls


def _blocks(layout: Layout, gravities: Array, side: Array, cameras: Array) -> Array:
    """(B, P, P) from the covariances of gravities (T, a, a), of these with cameras (T, a, Q), and
    of cameras (Q, Q)."""
    count, own = len(layout.size), layout.intrinsics
    split = cameras.reshape(count, own, count, own)[layout.camera, :, layout.camera]
    sides = side.reshape(*side.shape[:-1], count, own)[layout.time, :, layout.camera]
    top = np.concatenate([gravities[layout.time], sides], 2)
    return np.concatenate([top, np.concatenate([np.swapaxes(sides, 1, 2), split], 2)], 1)
