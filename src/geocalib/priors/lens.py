"""The kind of lens that took a picture: how probable each is before its perspective is looked at,
by the names in its file and by the circle that circular fisheyes leave black around; and what the
answer is once all were compared.

The answer is that of the most probable family; its sigmas include what the others answer.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from PIL.ExifTags import Base

from geocalib.arrays import Array
from geocalib.cameras.base import CameraModel
from geocalib.cameras.camera import Camera
from geocalib.cameras.tangent_polynomial import TangentPolynomial
from geocalib.geometry import gravity as sphere
from geocalib.geometry.fields import ALONG_PITCH, ALONG_ROLL, LOG_F
from geocalib.imaging.content import Circle
from geocalib.imaging.metadata import Metadata
from geocalib.records import dataclass
from geocalib.result.calibration import Calibration, Outcome
from geocalib.result.evidence import Lens, LensFamily
from geocalib.solver.families import (
    BENT,
    FAMILIES,
    RECTILINEAR,
    Candidate,
    Odds,
    log_normal,
    probabilities,
)
from geocalib.solver.known import Prior
from geocalib.solver.result import border_slopes

IN_A_CIRCLE: Odds = (0.01, 0.01, 0.98)
FISHEYE: Odds = (0.02, 0.08, 0.90)
ACTION_CAMERA: Odds = (0.20, 0.30, 0.50)
PHONE: Odds = (0.90, 0.099, 0.001)
"""Phones straighten what their wide lenses bend."""

HINT = 1.5
"""Sigmas of a bend by long edges from which on a slightly bent lens is tried."""

FISHEYE_NAMES = re.compile(r"fish[ -]?eye", re.IGNORECASE)
ACTION_NAMES = re.compile(
    r"gopro|\bhero ?\d|insta ?360|osmo ?action|\bsjcam\b|\bakaso\b|\byi ?(4k|action)"
    r"|\bvirb\b|\bhdr-as\d|\bfdr-x\d",
    re.IGNORECASE,
)
PHONE_NAMES = re.compile(
    r"^(apple|samsung|google|xiaomi|huawei|oneplus|oppo|vivo|realme|motorola|honor|htc|lge?)\b",
    re.IGNORECASE,
)


def odds_of_lenses(pictures: Iterable[tuple[Metadata, Circle | None]]) -> Odds | None:
    """Of pictures of one camera, by what their files say and the circles that they fill; None if
    nothing is known."""
    return next((odds for each in pictures if (odds := _odds(*each)) is not None), None)


def _odds(metadata: Metadata, circle: Circle | None) -> Odds | None:
    if circle is not None:
        return IN_A_CIRCLE
    make, model, lens = (
        str(metadata.tags.get(tag) or "") for tag in (Base.Make, Base.Model, Base.LensModel)
    )
    names = f"{make} {model} {lens}"
    if FISHEYE_NAMES.search(names):
        return FISHEYE
    if ACTION_NAMES.search(names):
        return ACTION_CAMERA
    return PHONE if PHONE_NAMES.search(make) else None


@dataclass(frozen=True)
class Choice:
    """The family of one picture's lens."""

    candidates: tuple[Candidate, ...]
    """The most probable first."""
    probabilities: tuple[float, ...]
    """Of each."""
    odds: tuple[float, ...]
    """Of each, before the picture was seen."""

    @property
    def model(self) -> CameraModel:
        """Of the most probable family."""
        return self.candidates[0].family.model

    @property
    def distortion(self) -> tuple[float, float] | None:
        """Mean and sigma of what is usual of its distortion."""
        return self.candidates[0].distortion

    def focal(self) -> float:
        """Of the most probable family; -1 where its fit failed."""
        focal = self.candidates[0].camera.f.item()
        return focal if math.isfinite(focal) else -1.0

    def moved(self, carry: Callable[[Camera], Camera], gravity: bool = True) -> Choice:
        """With cameras in other pixels, such as those of the original. gravity: whether it is that
        of the same picture still."""
        moved = [
            replace(
                each,
                camera=carry(each.camera),
                gravity=each.gravity if gravity else np.full(3, math.nan),
            )
            for each in self.candidates
        ]
        return replace(self, candidates=tuple(moved))

    def judged_by(self, outcome: Outcome) -> Choice:
        """The choice once the answer is there, with what straight lines say of a slight bend.

        Lenses that bend nothing are among those that bend slightly, as those with k1 = 0. So the
        odds of the two are those before, times the density of k1 at 0 by the answer over that
        before (the ratio of Savage and Dickey). All that the two share goes by them.
        """
        families = [candidate.family for candidate in self.candidates]
        # A lens that its name tells has been compared with no other.
        compared = families[0] == BENT and RECTILINEAR in families
        if not compared or not isinstance(outcome, Calibration):
            return self
        straight, usual = families.index(RECTILINEAR), self.distortion
        bend, sigma = outcome.distortion[0], outcome.sigma.distortion[0]
        if usual is None or not 0 < sigma < usual[1]:
            return self
        log_ratio = log_normal(0.0, bend, sigma) - log_normal(0.0, *usual)
        ratio = math.exp(log_ratio) * self.odds[straight] / self.odds[0]
        # Rounded, the two may be more than all.
        both = min(1.0, self.probabilities[0] + self.probabilities[straight])
        found = list(self.probabilities)
        found[0], found[straight] = both / (1 + ratio), both * ratio / (1 + ratio)
        return replace(self, probabilities=tuple(found)).ranked()

    def tried_bent(self, outcome: Outcome) -> Choice:
        """A slightly bent lens in place of a pinhole, where long edges of the answer hint at one
        for which fields are too coarse: to be judged by the answer with it."""
        straight = self.candidates[0]
        lines = outcome.lines if isinstance(outcome, Calibration) else None
        if straight.family != RECTILINEAR or lines is None or lines.bend is None:
            return self
        bend, sigma = lines.bend
        if not (lines.verdict.used and abs(bend) > HINT * sigma):
            return self
        places = [each.family for each in self.candidates]
        if BENT in places:
            order = sorted(range(len(places)), key=lambda place: places[place] != BENT)
            return self._ordered(order)
        camera = straight.camera
        width, height = camera.size[0].tolist()
        bent = replace(
            straight,
            family=BENT,
            camera=replace(
                camera, model=BENT.model, distortion=np.full_like(camera.c[:, :1], bend)
            ),
            distortion=BENT.prior(self.focal(), (width, height)),
        )
        return Choice((bent, straight), (0.0, 1.0), (BENT.odds, RECTILINEAR.odds))

    def second(self, outcomes: Iterable[Outcome]) -> Choice:
        """The choice after the answers to pictures of that camera: at most one of ``judged_by`` and
        ``tried_bent`` has another, as the first leaves what is no slight bend and the second what
        is no pinhole."""
        every = list(outcomes)
        ways = (way(each) for way in (self.judged_by, self.tried_bent) for each in every)
        return next((other for other in ways if other.model != self.model), self)

    def ranked(self) -> Choice:
        """With the most probable family first."""
        shares = self.probabilities
        return self._ordered(sorted(range(len(shares)), key=shares.__getitem__, reverse=True))

    def _ordered(self, order: Sequence[int]) -> Choice:
        return Choice(
            tuple(self.candidates[place] for place in order),
            tuple(self.probabilities[place] for place in order),
            tuple(self.odds[place] for place in order),
        )

    @property
    def lens(self) -> Lens:
        """The comparison of families as answers hold it."""
        pairs = zip(self.candidates, self.probabilities, strict=True)
        return Lens(tuple(_told(*pair) for pair in pairs))

    def applied(self, outcome: Outcome) -> Outcome:
        """An answer with that model, with what the other families add to its sigmas."""
        if not isinstance(outcome, Calibration):
            return outcome
        judged = self.judged_by(outcome)
        shown = judged if judged.model == self.model else self
        covariance = outcome.covariance.copy()
        best, *rivals = shown.candidates
        for rival, share in zip(rivals, shown.probabilities[1:], strict=True):
            off = _difference(best, rival, outcome)
            covariance += share * off[:, None] * off
        return outcome.with_lens(shown.lens, covariance)


def chosen(
    candidates: Sequence[Sequence[Candidate]],
    cameras: Sequence[int],
    odds: Mapping[int, Odds | None],
) -> list[Choice]:
    """The choice of each of B pictures, the same for all of one camera, in the pixels of the fits.

    cameras: (B,) integers, equal where the camera is. odds: of each camera, as ``compare`` takes
    them.
    """
    shares = {
        camera: probabilities(
            [found for found, own in zip(candidates, cameras, strict=True) if own == camera],
            odds.get(camera),
        )
        for camera in set(cameras)
    }
    choices = []
    for found, camera in zip(candidates, cameras, strict=True):
        common = odds.get(camera) or tuple(family.odds for family in FAMILIES)
        choice = Choice(tuple(found), tuple(shares[camera]), common[: len(found)])
        choices.append(choice.ranked())
    return choices


def usual_distortion(choices: Sequence[Choice]) -> Prior | None:
    """What is usual of the distortion of lenses of one model (B, D); None if it has none."""
    usual = [choice.distortion for choice in choices]
    told = [each for each in usual if each is not None]
    if len(told) < len(usual):
        return None
    prior, model = prior_of(told), choices[0].model
    count = len(model.parameters)
    if count == 1 or not isinstance(model, TangentPolynomial):
        return prior
    # Each parameter may bend as much as that of the slightly bent family.
    sizes = np.array([choice.candidates[0].camera.size[0].tolist() for choice in choices])
    X = (sizes.min(1) / np.array([choice.focal() for choice in choices])) ** 2
    spread = [prior.sigma[:, 0] * X / power for power, _ in model.powers(X, count)]
    return Prior(np.repeat(prior.value, count, 1), np.stack(spread, -1))


def prior_of(usual: Sequence[tuple[float, float]]) -> Prior:
    """Means and sigmas of the one distortion parameter of B lenses, (B, 1) each."""
    values = np.array(usual)
    return Prior(values[:, :1], values[:, 1:])


def _told(candidate: Candidate, probability: float) -> LensFamily:
    camera = candidate.camera
    roll, pitch = sphere.to_roll_pitch(candidate.gravity)
    return LensFamily(
        candidate.family.model.name,
        probability,
        math.degrees(camera.border_vfov.item()),
        math.degrees(camera.border_hfov.item()),
        math.degrees(roll.item()),
        math.degrees(pitch.item()),
    )


def _difference(best: Candidate, rival: Candidate, answer: Calibration) -> Array:
    """(P,) by how much a rival differs from the best, in the parameters of an answer: in its focal
    length by as much as makes up for the field of view. 0 where either has no answer."""
    turn = sphere.difference(best.gravity, rival.gravity, sphere.tangent_basis(best.gravity))
    wider = rival.camera.border_vfov - best.camera.border_vfov
    slope = border_slopes(answer.cameras, 1, answer.cameras.border_vfov)[LOG_F]
    values = {ALONG_ROLL: turn[0], ALONG_PITCH: turn[1], LOG_F: (wider / slope).item()}
    off = np.array([values.get(name, 0.0) for name in answer.parameters])
    return np.nan_to_num(off, nan=0.0, posinf=0.0, neginf=0.0)
