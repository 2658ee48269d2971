"""Lines that a person drew on a photo: observations beside what the network saw.

A line with end rays N0 and N1 whose edge runs along the unit direction d of the world satisfies
F = (N0 x N1) . d = 0, and an end of a drawn horizon F = N . g = 0. By its noise F has the variance

    var F = e^2 |dF/dp|^2 + s^2 |dF/dd|^2

with e, one sigma of where a person puts an end p, and s, one sigma by which edges miss their
direction. Residuals are F / sqrt(var F), for any lens. d is gravity, or the level direction that
all parallel lines share, whose heading is the best one for each guess at the camera: one level line
alone tells nothing.

The answer minimises the sum of squared residuals, those of the network's answer among them. Its
gravity is Student's (``prior``): stiff nearby, and yielding to a person far from it. A line that
costs more than a mistake of the person would is left out. Lines that were found are weighed against
that answer afterwards (``refine``), and left out where they contradict it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from geocalib.arrays import quiet
from geocalib.cameras import Camera
from geocalib.geometry.drawn import END, DrawnLine, LineKind, root
from geocalib.geometry.fields import LOG_F
from geocalib.lines.prior import NetworkPrior, network_prior, student_cost
from geocalib.lines.unknowns import Array, Flags, Guess, Layout, cross, level_frame
from geocalib.records import dataclass, replace
from geocalib.result.calibration import Calibration, Outcome
from geocalib.result.evidence import DrawnCheck, Lines, Traces, Verdict
from geocalib.solver.coupling import couple

STEPS = 30
"""Most steps of Levenberg-Marquardt."""
DAMPING = 1e-3
"""The damping of the first step."""
LONGEST_STEP = 0.3
"""Longest step of gravity, radians, and of log f."""
SETTLED = 1e-3
"""Sigmas: a step that goes no further is the last."""
BEHIND = 4.0
HOPELESS = 30.0
"""By how much a guess may cost more than the best one, and how many steps like its next one may not
make up for the rest: then it is given up."""
DIFFERENCE = 1e-3
"""Sigmas by which unknowns are moved to see how residuals change."""
ROUNDS = 4
"""Iterations of the heading of parallel lines and the noise of its residuals."""
HALF_PIXEL = np.array([[0.0, 0.0], [0.5, 0.0], [-0.5, 0.0], [0.0, 0.5], [0.0, -0.5]])
TURNS = 36
"""Ways to turn the picture from which the fit may begin: what is drawn may be far from them."""
MISTAKE = 16.0
"""What it costs to take a line for a mistake: two that agree, but not one, move gravity by any
number of sigmas."""
LEFT_OUT = 1e9
"""One sigma, radians, by which a line that is left out may miss its direction."""
DISAGREE = 9.0
"""Sum of squared residuals by which an answer with lines that were found may be worse."""


@dataclass(frozen=True)
class Sketch:
    """The drawn lines of one photo as arrays: N edges, and H ends of horizons."""

    edges: Array
    """(N, 2, 2) ends, pixels."""
    groups: tuple[tuple[int, ...], ...]
    """Edges that share a level direction; edges in no group are upright."""
    spread: Array
    """(N,) one sigma by which each misses its direction, radians; (R, N) where it differs among R
    guesses."""
    horizon: Array
    """(H, 2) pixels."""
    horizon_spread: Array
    """(H,) or (R, H), radians."""
    order: tuple[tuple[int, ...], ...]
    """For each line the places of its residuals: first those of edges, then those of horizons."""

    @classmethod
    def of(cls, lines: Sequence[DrawnLine]) -> Sketch:
        """That of lines that were checked."""
        flat = [i for i, line in enumerate(lines) if line.kind == LineKind.HORIZON]
        kept = [i for i in range(len(lines)) if i not in flat]
        roots = [root(lines, i) for i in kept]
        level = dict.fromkeys(r for r in roots if lines[r].kind == LineKind.LEVEL)
        order: dict[int, tuple[int, ...]] = {i: (at,) for at, i in enumerate(kept)}
        order |= {i: (len(kept) + 2 * at, len(kept) + 2 * at + 1) for at, i in enumerate(flat)}
        return cls(
            np.array([lines[i].ends for i in kept]).reshape(-1, 2, 2),
            tuple(tuple(at for at, r in enumerate(roots) if r == each) for each in level),
            np.radians([lines[i].sigma_deg for i in kept]),
            np.array([lines[i].ends for i in flat]).reshape(-1, 2),
            np.radians([lines[i].sigma_deg for i in flat for _ in range(2)]),
            tuple(order[i] for i in range(len(lines))),
        )

    def without(self, line: int) -> Sketch:
        """The same, as if a line said nothing."""
        spread = np.concatenate([self.spread, self.horizon_spread])
        spread[list(self.order[line])] = LEFT_OUT
        count = len(self.spread)
        return replace(self, spread=spread[:count], horizon_spread=spread[count:])

    @classmethod
    def stacked(cls, sketches: Sequence[Sketch]) -> Sketch:
        """Those of the same lines that differ in their spreads, one for each guess."""
        spread = np.stack([each.spread for each in sketches])
        return replace(
            sketches[0],
            spread=spread,
            horizon_spread=np.stack([each.horizon_spread for each in sketches]),
        )

    def __getitem__(self, rows: npt.NDArray[Any]) -> Sketch:
        """Some of those that are stacked, or one of them several times."""
        return replace(self, spread=self.spread[rows], horizon_spread=self.horizon_spread[rows])

    @quiet
    def residuals(self, camera: Camera, gravity: Array) -> tuple[Array, Array]:
        """(R, N + 2 H) residuals in sigmas as R cameras with gravities (R, 3) see the lines, and by
        how many radians (R, N + 2 H) each misses what it is said to be."""
        end = END * float(camera.size[0].max())
        edges = 2 * len(self.edges)
        every = _rays(camera, np.concatenate([self.edges.reshape(-1, 2), self.horizon]))
        rays, seen = every[:, :, :edges].reshape(len(every), 5, -1, 2, 3), every[:, :, edges:]
        first, last = rays[..., 0, :], rays[..., 1, :]
        normal = cross(first[:, 0], last[:, 0])
        # By which F changes as an end moves by a pixel along x or y: a vector to multiply by d.
        slopes = np.concatenate(
            [cross(_per_pixel(first), last[:, :1]), cross(first[:, :1], _per_pixel(last))], 1
        )
        direction = np.broadcast_to(gravity[:, None], normal.shape).copy()
        for group in self.groups:
            own = list(group)
            noise = end, self.spread[..., own]
            heading = _shared_heading(normal[:, own], slopes[:, :, own], gravity, *noise)
            direction[:, own] = heading[:, None]
        parts = _weighed(normal, slopes, direction, end, self.spread)
        down = np.broadcast_to(gravity[:, None], seen[:, 0].shape)
        ends = _weighed(seen[:, 0], _per_pixel(seen), down, end, self.horizon_spread)
        found, off = (np.concatenate(pair, 1) for pair in zip(parts, ends, strict=True))
        return np.nan_to_num(found), np.nan_to_num(off)


def _rays(camera: Camera, points: Array) -> Array:
    """(R, 5, M, 3) unit rays of R cameras at points (M, 2), and half a pixel to each side."""
    places = (HALF_PIXEL[:, None] + points).reshape(-1, 2)
    rays, _ = camera.unproject(np.broadcast_to(places, (len(camera), *places.shape)))
    return np.asarray(rays).reshape(len(camera), 5, -1, 3)


def _per_pixel(rays: Array) -> Array:
    """(R, 2, M, 3) how rays (R, 5, M, 3) change along x and along y."""
    return np.stack([rays[:, 1] - rays[:, 2], rays[:, 3] - rays[:, 4]], 1)


def _weighed(
    value: Array, slopes: Array, direction: Array, end: float, spread: Array
) -> tuple[Array, Array]:
    """Residuals (R, M) of products F of vectors (R, M, 3) with directions (R, M, 3), and the angles
    of which F are the sines. slopes: (R, S, M, 3) of the vectors, per pixel."""
    F = np.vecdot(value, direction)
    length = np.sqrt(np.vecdot(value, value))
    along = np.vecdot(slopes, direction[:, None])
    variance = end**2 * (along * along).sum(1) + (spread * length) ** 2
    sine = F / np.maximum(length, 1e-12)
    return F / np.sqrt(np.maximum(variance, 1e-24)), np.arcsin(np.clip(sine, -1.0, 1.0))


def _shared_heading(
    normal: Array, slopes: Array, gravity: Array, end: float, spread: Array
) -> Array:
    """(R, 3) the level direction that suits edges with normals (R, M, 3) best, all together."""
    right, _, ahead = np.moveaxis(level_frame(gravity), -2, 0)
    a, b = np.vecdot(normal, right[:, None]), np.vecdot(normal, ahead[:, None])
    weight = 1 / np.maximum(np.vecdot(normal, normal), 1e-24)
    found = right
    for _ in range(ROUNDS):
        both = (weight * a * b).sum(1)
        # Of a sum of squares of sines: the smaller axis of an ellipse.
        turn = 0.5 * np.arctan2(2 * both, (weight * (a * a - b * b)).sum(1)) + 0.5 * np.pi
        found = np.cos(turn)[:, None] * right + np.sin(turn)[:, None] * ahead
        along = np.vecdot(slopes, found[:, None, None])
        variance = end**2 * (along * along).sum(1) + spread**2 * np.vecdot(normal, normal)
        weight = 1 / np.maximum(variance, 1e-24)
    return found


def follow(outcomes: Sequence[Outcome], lines: Sequence[DrawnLine]) -> list[Outcome]:
    """The answers to one photo as the network has them, with lines that a person drew on it."""
    return [_followed(each, lines) if isinstance(each, Calibration) else each for each in outcomes]


def _followed(calibration: Calibration, lines: Sequence[DrawnLine]) -> Calibration:
    """The likeliest answer given the lines, with its covariance, and which lines it follows."""
    sketch, used = Sketch.of(lines), [True] * len(lines)
    answer = calibration
    if not calibration.parameters:
        tension = _at(sketch, calibration)[0]
    else:
        search = _DrawnSearch.of(calibration)
        tension = _tension(sketch, search, calibration.covariance)
        _, best = search.minimum([sketch])
        # A horizon is drawn on purpose, so it is never taken for a mistake.
        believed = [i for i, line in enumerate(lines) if line.kind != LineKind.HORIZON]
        while believed and best.cost[0] > MISTAKE:
            # Which line has to be left out so that the others agree best?
            rest = [sketch.without(i) for i in believed]
            wrong, end = search.minimum(rest)
            if end.cost[0] + MISTAKE >= best.cost[0]:
                break
            sketch, best = rest[wrong], end
            used[believed.pop(wrong)] = False
        camera, gravity = search.layout.camera_of(best.guess, 0), best.guess.gravity[0, 0]
        answer = calibration.moved(camera, gravity, np.linalg.inv(best.equations[0][0]))
    checks = [
        DrawnCheck(*line.values, 0.0, float(np.abs(tension[list(places)]).max()), on)
        for line, places, on in zip(lines, sketch.order, used, strict=True)
    ]
    return replace(answer, drawn=tuple(checks))


@dataclass(frozen=True)
class _States:
    """R guesses, and the residuals of the lines and of what the network said there."""

    guess: Guess
    residual: Array
    """(R, M + P)."""
    jacobian: Array
    """(R, M + P, P)."""

    @property
    def cost(self) -> Array:
        """(R,) twice the negative log posterior, up to a constant."""
        return np.vecdot(self.residual, self.residual)

    @property
    def equations(self) -> tuple[Array, Array]:
        """The normal equations (R, P, P) and (R, P) of half the cost."""
        return self.jacobian.mT @ self.jacobian, np.matvec(self.jacobian.mT, self.residual)

    def __getitem__(self, rows: npt.NDArray[Any]) -> _States:
        """Return some of the guesses."""
        return _States(self.guess[rows], self.residual[rows], self.jacobian[rows])

    def improved(self, other: _States) -> tuple[_States, Flags]:
        """The better state of each row, and (R,) whether that is the other one."""
        better = other.cost <= self.cost

        def pick(new: Array, old: Array) -> Array:
            return np.where(better.reshape(-1, *[1] * (new.ndim - 1)), new, old)

        mine, theirs = self.guess, other.guess
        guess = Guess(
            pick(theirs.gravity, mine.gravity),
            pick(theirs.log_f, mine.log_f),
            pick(theirs.distortion, mine.distortion),
            pick(theirs.c, mine.c),
            mine.headings,
        )
        residual = pick(other.residual, self.residual)
        return _States(guess, residual, pick(other.jacobian, self.jacobian)), better


@dataclass(frozen=True)
class _DrawnSearch:
    """What is minimised beside the residuals of lines, and over what."""

    layout: Layout
    prior: NetworkPrior
    units: Array
    """(P,) one sigma of each unknown before."""
    root: Array
    """(P, P) what deviations from the network's answer are multiplied by to be in sigmas."""
    root_of_gravity: Array
    """(a, a) the same of gravity, whatever the lens."""

    @classmethod
    def of(cls, calibration: Calibration) -> Self:
        prior, layout = network_prior([calibration], couple(1, None, None))
        covariance, a = calibration.covariance, layout.tangents
        return cls(
            layout,
            prior,
            np.sqrt(np.diagonal(covariance)),
            np.linalg.cholesky(prior.whole[0]),
            np.linalg.cholesky(np.linalg.inv(covariance[:a, :a])),
        )

    def at(self, guess: Guess, sketch: Sketch) -> _States:
        """The residuals at R guesses and their derivatives, by differences. sketch: R stacked."""
        rows, count = len(guess), len(self.units)
        steps = DIFFERENCE * np.diag(self.units)
        every = np.concatenate([np.zeros((1, count)), steps, -steps])
        index = np.repeat(np.arange(rows), len(every))
        moved = _moved(self.layout, guess[index], np.tile(every, (rows, 1)))
        seen = self._residuals(moved, sketch[index]).reshape(rows, len(every), -1)
        slope = seen[:, 1 : count + 1] - seen[:, count + 1 :]
        return _States(guess, seen[:, 0], (slope / (2 * DIFFERENCE * self.units[:, None])).mT)

    def starts(self, sketch: Sketch) -> tuple[Guess, npt.NDArray[np.int64]]:
        """The network's answer for each of R stacked sketches, and the one turned in the plane of
        the picture that suits its lines best, where that is another; and of which sketch each is.
        """
        mean, count = self.prior.mean, len(sketch.spread)
        every = np.arange(count)
        if not self.layout.free.gravity:
            return mean[0 * every], every
        turns = 2 * np.pi / TURNS * np.arange(TURNS)
        cosine, sine = np.cos(turns), np.sin(turns)
        x, y, z = mean.gravity[0, 0]
        turned = np.stack([cosine * x - sine * y, sine * x + cosine * y, np.full(TURNS, z)], 1)
        tried = replace(mean[[0] * TURNS], gravity=turned[:, None])
        pairs = tried[np.tile(np.arange(TURNS), count)], sketch[np.repeat(every, TURNS)]
        cost = (self._residuals(*pairs) ** 2).sum(1).reshape(count, TURNS)
        best = cost.argmin(1)
        others = np.flatnonzero(best)
        return tried[np.concatenate([0 * every, best[others]])], np.concatenate([every, others])

    def minimum(self, sketches: Sequence[Sketch]) -> tuple[int, _States]:
        """The sketch of the same lines with the lowest cost, and its best guess."""
        stacked = Sketch.stacked(sketches)
        starts, of = self.starts(stacked)
        row, end = self._descend(starts, stacked[of])
        return int(of[row]), end

    def _descend(self, start: Guess, sketch: Sketch) -> tuple[int, _States]:
        """From which of R guesses Levenberg-Marquardt gets lowest, and what it finds there."""
        at, rows, damping = (
            self.at(start, sketch),
            np.arange(len(start)),
            np.full(len(start), DAMPING),
        )
        lowest = int(at.cost.argmin())
        found = at[rows[[lowest]]]
        for _ in range(STEPS):
            matrix, right = at.equations
            raised = damping[:, None, None] * matrix * np.eye(len(self.units))
            step = np.asarray(np.linalg.solve(matrix + raised, -right[..., None])[..., 0])
            gain = -np.vecdot(step, right)
            # Where steps were shortened, they tell little of what is to come.
            behind = at.cost - found.cost[0] > BEHIND + HOPELESS * gain
            given_up = behind & (damping <= DAMPING)
            (open_,) = np.nonzero((gain >= SETTLED**2) & ~given_up)
            if not len(open_):
                break
            rows, at, step = rows[open_], at[open_], step[open_]
            step = step * np.minimum(1.0, LONGEST_STEP / self.reach(step))[:, None]
            at, better = at.improved(self.at(_moved(self.layout, at.guess, step), sketch[rows]))
            damping = damping[open_] * np.where(better, 0.1, 10.0)
            best = int(at.cost.argmin())
            if at.cost[best] < found.cost[0]:
                lowest, found = int(rows[best]), at[np.array([best])]
        return lowest, found

    def _residuals(self, guess: Guess, sketch: Sketch) -> Array:
        """(R, M + P) by R guesses."""
        off, a = self.prior.deviation(guess, self.layout), self.layout.tangents
        turn = off[:, :a] @ self.root_of_gravity
        squared = (turn * turn).sum(1)
        yielding = np.sqrt(student_cost(squared) / np.maximum(squared, 1e-12))
        far = np.where(squared > 1e-6, yielding, 1.0)
        off = np.concatenate([far[:, None] * off[:, :a], off[:, a:]], 1)
        return np.concatenate([_seen(sketch, self.layout, guess), off @ self.root], 1)

    def reach(self, step: Array) -> Array:
        """(R,) how far steps (R, P) go in gravity and log f."""
        own = step[:, : self.layout.tangents + int(self.layout.free.focal)]
        return np.maximum(np.abs(own).max(1, initial=0.0), 1e-12)


def _seen(sketch: Sketch, layout: Layout, guess: Guess) -> Array:
    """(R, M) residuals by R guesses."""
    rows = [0] * len(guess)
    own = np.exp(guess.log_f[:, 0]), guess.c[:, 0], guess.distortion[:, 0]
    camera = Camera(layout.model, *own, layout.size[rows], layout.aspect[rows])
    return sketch.residuals(camera, guess.gravity[:, 0])[0]


def _moved(layout: Layout, guess: Guess, steps: Array) -> Guess:
    """Guesses after steps (R, P)."""
    a = layout.tangents
    return layout.moved(guess, steps[:, None, :a], steps[:, None, a:])


def gained_focal_information(before: Sequence[Outcome], after: Sequence[Outcome]) -> list[float]:
    """By how much drawn lines raise the inverse variance of log f of each answer."""
    gained = []
    for pair in zip(before, after, strict=True):
        information = [
            1 / float(each.covariance[at, at])
            for each in pair
            if isinstance(each, Calibration)
            and LOG_F in each.parameters
            and each.covariance[at := each.parameters.index(LOG_F), at] > 0
        ]
        gained.append(max(0.0, information[1] - information[0]) if len(information) == 2 else 0.0)
    return gained


def hold_to_drawn(found: Outcome, before: Outcome) -> Outcome:
    """The answer with lines that were found, unless it misses the drawn ones by more than chance:
    then the one before. Either says by how much it misses each."""
    if not isinstance(found, Calibration) or not isinstance(before, Calibration):
        return found
    sketch = Sketch.of([check.line for check in before.drawn])
    for line, check in enumerate(before.drawn):
        sketch = sketch if check.used else sketch.without(line)
    (lost, off), (least, off_before) = (_at(sketch, each) for each in (found, before))
    answer = found
    if _used(found) and lost @ lost > least @ least + DISAGREE:
        assert found.lines is not None
        assert found.lines.traces is not None
        astray = Traces.astray(found.lines.traces.segments)
        lines = Lines.create(Verdict.DRAWN, astray, 1.0, before, before)
        answer, off = replace(before, lines=lines), off_before
    checks = [
        replace(check, off_deg=math.degrees(float(np.abs(off[list(places)]).max())))
        for check, places in zip(before.drawn, sketch.order, strict=True)
    ]
    return replace(answer, drawn=tuple(checks))


def _used(answer: Calibration) -> bool:
    return answer.lines is not None and answer.lines.verdict.used


def _at(sketch: Sketch, answer: Calibration) -> tuple[Array, Array]:
    """Residuals (M,) and angles (M,) of an answer."""
    residual, off = sketch.residuals(answer.cameras, answer.gravity[None])
    return residual[0], off[0]


def _tension(sketch: Sketch, search: _DrawnSearch, covariance: Array) -> Array:
    """(M,) by how many sigmas lines contradict what the network alone says."""
    at = search.at(search.prior.mean, Sketch.stacked([sketch]))
    residual, jacobian = (each[0, : -len(search.units)] for each in (at.residual, at.jacobian))
    variance = 1 + np.einsum("mi,ij,mj->m", jacobian, covariance, jacobian)
    return np.asarray(residual / np.sqrt(variance))
