"""Where to start: focal lengths within the prior, and the headings that most segments follow."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from geocalib import gravity as sphere
from geocalib.cameras.camera import Camera
from geocalib.fields import Free
from geocalib.lines.minimise import Guess, Problem, minimise
from geocalib.lines.mixture import CLUTTER
from geocalib.lines.prior import FREEDOM, Prior, given_log_f, log_f_sigma
from geocalib.lines.segments import Bundle
from geocalib.solver.coupling import Arrow, couple
from geocalib.solver.state import Frame, State

FOCALS = 21
"""Focal lengths tried."""
SPREAD = 3.0
"""Sigmas of the prior on either side that they span."""
BORDER = 0.7
"""Of log f: they keep off the end of what a fit may answer."""
HEADINGS = 45
"""Headings tried in a quarter turn."""
MOST = 180
"""Segments looked at, the longest."""
COARSE = math.radians(1.0)
"""By how much segments may miss their direction while the grid is coarse."""
PLUMB_ROUNDS = ((3 * COARSE, 3), (COARSE, 2))
"""Widths and iterations with which verticals are sought for each focal length."""
TINY_TURN = 1e-3
"""Half the length, in normalised coordinates, of the piece of a segment that tells its plane."""


@dataclass(frozen=True)
class Landscape:
    """How well the segments of one image fit a grid of F focal lengths and H headings, which span
    a quarter turn."""

    states: State
    """F of them: focal lengths, and the likeliest rest."""
    level: Tensor
    """(F, 3, 3) rotations to level frames."""
    crossed: Tensor
    """(F, H) log likelihood of pairs of headings at a right angle, and the vertical."""
    penalty: Tensor
    """(F,) half the cost of the prior."""

    def heading(self, focal: int) -> Tensor:
        """(3,) the best one for a focal length, in the camera frame."""
        best = int(self.crossed[focal].argmax())
        return _compass(2 * HEADINGS)[best] @ self.level[focal]


def _compass(count: int) -> Tensor:
    """(count, 3) headings over half a turn, in a level frame."""
    angle = math.pi / count * torch.arange(count, dtype=torch.float64)
    return torch.stack([torch.cos(angle), torch.zeros_like(angle), torch.sin(angle)], -1)


def survey(prior: Prior, frame: Frame, bundle: Bundle, repeats: float) -> Landscape:
    """The landscape of one image, whose prior and segments these are."""
    log_f = _focals(prior, frame)
    count = len(log_f)
    states = given_log_f(prior, log_f, frame)
    frame = frame.select(torch.zeros(count, dtype=torch.long))
    bundle = bundle.longest(MOST)[[0] * count]
    penalty = torch.zeros_like(log_f)
    if frame.free.focal:
        squared = ((log_f - prior.mean.log_f) / log_f_sigma(prior)) ** 2
        penalty = 0.5 * (FREEDOM + 1) * torch.log1p(squared / FREEDOM)
    if frame.free.gravity:
        states = _plumb(prior, frame, bundle, states, repeats)
    alone = couple(count, None, None, log_f.device)
    camera, gravity, _ = frame.images(states, alone, torch.float64)
    level = sphere.world_from_camera(gravity)
    directions = torch.cat([gravity[:, None], _compass(2 * HEADINGS) @ level], 1)
    ratio = likelihood_ratios(camera, bundle, directions)
    first, second = ratio[:, 1:].chunk(2, 1)
    every = (first + second).add_(ratio[:, :1])
    crossed = torch.log(every.mul_((1 - CLUTTER) / 3).add_(CLUTTER)).sum(-1)
    return Landscape(states, level, crossed, penalty)


def _focals(prior: Prior, frame: Frame) -> Tensor:
    """(F,) log focal lengths to try."""
    mean = prior.mean.log_f[:1]
    if not frame.free.focal:
        return mean
    reach = SPREAD * log_f_sigma(prior)
    low = torch.maximum(mean - reach, torch.minimum(mean, frame.log_f_low[:1] + BORDER))
    high = torch.minimum(mean + reach, torch.maximum(mean, frame.log_f_high[:1] - BORDER))
    return torch.linspace(low.item(), high.item(), FOCALS, dtype=torch.float64)


def _plumb(prior: Prior, frame: Frame, bundle: Bundle, states: State, repeats: float) -> State:
    """The states with gravity where the vertical segments say."""
    count = len(states.log_f)
    none = states.gravity.new_zeros(count, 2, 0)
    stiffness = Arrow(prior.stiffness.A[:1].expand(count, 2, 2), none, none[:, :0])
    problem = Problem(
        bundle,
        torch.ones(count, 1, dtype=torch.bool),
        couple(count, None, None, states.gravity.device),
        replace(frame, free=Free(True, False)),
        Prior(states, sphere.tangent_basis(states.gravity), stiffness),
        repeats,
    )
    guess = Guess(states, states.gravity.new_zeros(count, 0, 3))
    for width, iterations in PLUMB_ROUNDS:
        guess = minimise(problem, guess, problem.noise(guess, width), iterations)
    return guess.state


def likelihood_ratios(camera: Camera, bundle: Bundle, directions: Tensor) -> Tensor:
    """(F, K, N) likelihood ratio of segments against many directions (F, K, 3), on the sphere and
    in single precision: it only says where to start."""
    parameters = tuple(k[:, None] for k in camera.distortion.unbind(-1))
    m = (bundle.middle - camera.c[:, :, None]) / camera.focal[:, :, None]
    rays = []
    for step in (-TINY_TURN, 0.0, TINY_TURN):
        at = m + step * bundle.along
        s = (at * at).sum(1)
        depth, _ = camera.model.depth(s, parameters)
        rays.append(torch.cat([at, depth.expand_as(s)[:, None]], 1))
    normal = _unit(torch.linalg.cross(rays[0], rays[2], dim=1)).float()
    middle = _unit(rays[1]).float()
    directions = directions.float()
    residual, cosine = directions @ normal, directions @ middle
    lever = cosine.square_().neg_().add_(1).clamp_(min=1e-4)
    noise = bundle.noise[:, None].float()
    turn = 2 * (noise / bundle.length.float().clamp(min=1)) ** 2 + COARSE**2
    shift = 0.5 * (noise / camera.f[:, None].float()) ** 2
    variance = torch.addcmul(shift[:, None], lever, turn[:, None])
    ratio = residual.square_().div_(variance).mul_(-0.5).exp_()
    ratio.mul_(lever.div_(variance).mul_(0.5 * math.pi).sqrt_())
    return ratio.mul_((bundle.length > 0)[:, None])


def _unit(vector: Tensor) -> Tensor:
    length = torch.sqrt((vector * vector).sum(1, keepdim=True))
    return vector / length.clamp(min=torch.finfo(vector.dtype).tiny)


def peaks(profile: Tensor, count: int) -> list[int]:
    """Indices of the highest values (F,), no two of them close to each other."""
    left = profile.clone()
    found: list[int] = []
    while len(found) < count and bool(torch.isfinite(left).any()):
        at = int(left.argmax())
        found.append(at)
        left[max(0, at - 1) : at + 2] = -torch.inf
    return found
