"""Priors against the picture: how well the two agree, which of them is believed, and the warning.

Every photo is fitted with its priors, and once more without them, but without lines, which take
most of the time: that shows whether the priors agree with the network (``agreement``). Lines, which
start from the priors, may pull the answer away from them. Only where one of the two comes
near a contradiction (``doubtful_rows``), the photo is fitted with lines and without priors, and it
is decided which of the two is believed (``believed_readings``).

What a caller gave, hard or soft, is never left out; it is held against the answer without it in
the same way, and against what the file says of the same (``held_against_files``), which the answer
makes no use of then. A contradiction is a warning.

EXIF and picture may both be wrong: a program cropped the photo and kept its EXIF data, or network
and lines were misled. Errors of pictures have the heavy tails of Student's distribution; the focal
length of a cropped photo is anywhere beyond that of its tag. The likelier explanation is taken.

Of sensor and picture the likelier one is believed. Sensors of unedited pictures are not
wrong. Pictures are lost now and then: of phones' photographs one in fourteen, and nearly every
other of those that look steeply up or down, where nothing says that a table is no wall. So the
angle between the two comes from a normal distribution as wide as both sigmas, or from a wide one of
pictures that are lost; or from anywhere, for sensors that belong to another picture: one
turned by a program that kept the notes of the camera. ``lab/benchmarks/sensors.py``
fits all of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from geocalib.arrays import Array
from geocalib.chi_square import chi2_sf
from geocalib.geometry import gravity as sphere
from geocalib.geometry.conventions import TRIVIAL_FOCAL
from geocalib.geometry.fields import ALONG_PITCH
from geocalib.geometry.gravity import LEAST_COSINE, from_roll_pitch, to_roll_pitch
from geocalib.priors.exif import FocalReading
from geocalib.priors.gravity_reading import GravityReading
from geocalib.priors.lens_reading import LensReading
from geocalib.priors.readings import Readings
from geocalib.records import dataclass
from geocalib.result.calibration import Calibration, Outcome
from geocalib.result.evidence import CONTRADICTION, GIVEN, PriorCheck, Verdict
from geocalib.result.trust import Doubt, disagreements, doubts, judged
from geocalib.result.uncertainty import EVERYTHING
from geocalib.solver.known import Given, Prior

WRONG = 0.03
"""Share of photos whose EXIF focal length is not theirs."""
CROPPED, LARGEST_CROP = 0.9, 1.2
"""Share of crops among them; the largest enlargement by a crop, in log f."""
ANYWHERE = 2.0
"""Range of log f of all others, of wrong tags."""
FREEDOM = 4.0
"""Degrees of freedom of Student's distribution, as in ``geocalib.lines.prior``."""
MOVED = 2.0
"""Sigmas of a prior by which lines may pull an answer off it before both are compared again."""
NEAR = 1.5
"""Sigmas between what a caller gave and the network's answer without it, from which on the answer
of lines is compared as well: it may be much surer."""
NOTHING_DEG = 1e3
"""A sigma of an angle beyond this means that nothing is known of it."""
STEP = 1e-4
"""Of distortion parameters, for derivatives."""
HARDLY_KNOWN = 1.05
"""Relative sigma of a focal length that is only held from what no lens has: more than 1, beside
which what is usual of photographs still counts (``priors.photos.SILENT``)."""
LEAST_CHANCE = 1e-300
"""Probabilities below it are taken for it: their sigmas would be infinite."""

Checks = tuple[PriorCheck, ...]


def rows_with_readings(readings: Sequence[Readings], together: bool) -> list[int]:
    """The photos of which files or sensors tell something. together: whether the photos share
    unknowns, so that what is known of one concerns all."""
    informed = [
        row
        for row, reading in enumerate(readings)
        if reading.focal or reading.gravity or reading.angle or reading.lens
    ]
    return list(range(len(readings))) if together and informed else informed


def agreement(readings: Sequence[Readings], alone: Mapping[int, Outcome]) -> dict[int, Checks]:
    """How well some photos agree with what was read of them. alone: by their rows, the outcomes
    that the pictures give without it."""
    return {
        row: check(readings[row], seen) if isinstance(seen, Calibration) else ()
        for row, seen in alone.items()
    }


def doubtful_rows(
    readings: Sequence[Readings],
    checks: Mapping[int, Checks],
    outcomes: Mapping[int, Outcome],
    together: bool,
) -> list[int]:
    """The photos, of those that were checked, whose network or lines may contradict what was read:
    all of them where they share unknowns and one is doubtful."""
    checked = list(checks)
    doubtful = [row for row in checked if _is_doubtful(readings[row], checks[row], outcomes[row])]
    return checked if together and doubtful else doubtful


def _is_doubtful(reading: Readings, checks: Checks, outcome: Outcome) -> bool:
    """Whether the network contradicts a prior, lines were not believed beside it, or they pulled
    the answer off it."""
    if any(each.contradicts for each in checks):
        return True
    if reading.focal is None or not isinstance(outcome, Calibration) or outcome.lines is None:
        return False
    moved = abs(math.log(outcome.fy / reading.focal.focal_px))
    unlikely = outcome.lines.verdict is Verdict.UNLIKELY
    return unlikely or moved > MOVED * reading.focal.relative


def gravity_odds(readings: Sequence[Readings], alone: Mapping[int, Outcome]) -> dict[int, Odds]:
    """Compare sensor and picture on gravity, by the rows of photos whose sensors measured it.

    alone: as for ``agreement``."""
    return {
        row: Odds.create(said, seen)
        for row, seen in alone.items()
        if isinstance(seen, Calibration) and (said := readings[row].gravity) is not None
    }


def believed_readings(
    readings: Sequence[Readings],
    checks: Mapping[int, Checks],
    odds: Mapping[int, Odds],
    cameras: Sequence[int],
) -> list[Readings]:
    """What was read, without the focal lengths and the gravity that pictures make unlikely, and
    without the lenses that they contradict.

    checks: of the photos that were looked at once more, by row. cameras: equal integers for photos
    of one camera, whose focal length is believed of all or of none. A picture that is lost about
    gravity has no say about the focal length.
    """
    sensors = {row: odds[row] for row in checks if row in odds}
    lost = {row for row, each in sensors.items() if each.picture_lost_likelier}
    wrong = {
        cameras[row]
        for row, each in checks.items()
        if row not in lost and not all(believed(one) for one in each if one.quantity == "focal")
    }
    bent = {
        cameras[row]
        for row, each in checks.items()
        if any(one.contradicts for one in each if one.quantity == "distortion")
    }
    misread = {row for row, each in sensors.items() if not each.sensor_believed}
    return [
        replace(
            reading,
            focal=None if cameras[row] in wrong else reading.focal,
            lens=None if cameras[row] in bent else reading.lens,
            gravity=None if row in misread else reading.gravity,
        )
        for row, reading in enumerate(readings)
    ]


def with_usual_focal(reading: Readings, size: tuple[int, int], odds: Odds | None) -> Readings:
    """What was read of a photo of this size; with a usual focal length, hardly known, where nothing
    else tells it: of a picture whose gravity is not believed at all, any would do as well."""
    lost = odds is not None and odds.picture_weight <= LEAST_WEIGHT
    if not lost or reading.gravity is None or reading.focal is not None:
        return reading
    usual = TRIVIAL_FOCAL * max(size)
    return replace(reading, focal=FocalReading(usual, HARDLY_KNOWN * usual, "usual"))


def left_out(checks: Checks, left: Readings) -> Checks:
    """The checks of a photo of which no more than this was used."""
    used = {
        "focal": left.focal is not None,
        "gravity": left.gravity is not None or left.angle is not None,
        "distortion": left.lens is not None,
    }
    return tuple(replace(each, used=used[each.quantity]) for each in checks)


def as_sure_as_sensors(outcome: Outcome, sigma_rad: float) -> Outcome:
    """An answer whose gravity is at least as sure as the prior in it, of one sigma in radians:
    lines that may not stand upright widen it by how far pictures are off then, sensors or not."""
    if not isinstance(outcome, Calibration) or ALONG_PITCH not in outcome.parameters:
        return outcome
    values, vectors = np.linalg.eigh(outcome.covariance[:2, :2])
    if values[-1] <= sigma_rad**2:
        return outcome
    shrink = np.eye(len(outcome.parameters))
    factors = np.minimum(1.0, sigma_rad / np.sqrt(np.maximum(values, sigma_rad**2)))
    shrink[:2, :2] = (vectors * factors) @ vectors.T
    covariance = shrink @ outcome.covariance @ shrink.T
    return outcome.moved(outcome.cameras, outcome.gravity, covariance, outcome.lines)


def annotated(
    outcome: Outcome,
    checks: Checks,
    readings: Readings,
    notes: Sequence[str | Doubt],
    orientation: int,
) -> Outcome:
    """An answer with its warnings and with how well sensors and picture agree.

    notes: what else is to be said of it, first. orientation: of the file, by EXIF.
    """
    if not isinstance(outcome, Calibration):
        return outcome
    held = tuple(_held_to(prior, readings.gravity, outcome) for prior in checks)
    every = (*notes, *readings.notes)
    said = [note if isinstance(note, Doubt) else Doubt(note) for note in every]
    wrong = (
        _contradiction(prior, prior is before and followed(prior, outcome), outcome)
        for before, prior in zip(checks, held, strict=True)
        if prior.contradicts
    )
    answer = replace(outcome, priors=held, orientation=orientation)
    return judged(answer, (*said, *wrong, *disagreements(outcome.drawn), *doubts(answer)))


def _held_to(prior: PriorCheck, reading: GravityReading | None, answer: Calibration) -> PriorCheck:
    """The check of a sensor, whose tension is also that of the answer: straight lines can draw it
    away from a gravity with which the picture is too unsure to disagree."""
    if reading is None or prior.source != reading.source or not prior.used:
        return prior
    strayed = _strayed(reading, answer)
    return replace(prior, tension=strayed) if strayed > max(CONTRADICTION, prior.tension) else prior


def strays(reading: GravityReading | None, outcome: Outcome) -> bool:
    """Whether lines drew an answer to what contradicts a sensor, or what came before them."""
    if reading is None or not isinstance(outcome, Calibration) or outcome.lines is None:
        return False
    return max(_strayed(reading, outcome), outcome.lines.focal_sigmas) > CONTRADICTION


def _strayed(reading: GravityReading, answer: Calibration) -> float:
    """How far an answer is from a sensor, in its sigmas."""
    off = math.degrees(sphere.angle_between(answer.gravity, np.array(reading.gravity)))
    return off / reading.sigma_deg


def _contradiction(prior: PriorCheck, kept: bool, answer: Calibration) -> Doubt:
    """What is known moves all that the picture tells; a focal length that was left out does not
    turn gravity."""

    def vfov_deg(focal_px: float) -> float:
        camera = replace(answer.cameras, f=np.array([focal_px]))
        return replace(answer, cameras=camera).vfov_deg

    return Doubt(prior.report(kept, vfov_deg), EVERYTHING if prior.used else ("fov", "lens"))


def followed(prior: PriorCheck, answer: Calibration) -> bool:
    """Whether an answer is nearer to what was known than to what the picture alone shows, or as
    near to it as its sigma allows."""
    known, seen = np.array(prior.prior), np.array(prior.estimate)
    if prior.quantity == "gravity":
        off, other = (
            math.degrees(sphere.angle_between(answer.gravity, each)) for each in (known, seen)
        )
    else:
        lens = np.asarray(answer.cameras.distortion, float).reshape(-1)
        found = np.array([answer.fy]) if prior.quantity == "focal" else lens
        if found.shape != known.shape:  # The answer has another model.
            return False
        off, other = (float(np.linalg.norm(found - each)) for each in (known, seen))
    return off <= max(other, CONTRADICTION * prior.prior_sigma)


def tells(given: Given) -> bool:
    """Whether a caller gave anything that a picture shows, too."""
    return not (given.focal is None and given.gravity is None and given.distortion is None)


def unknown(given: Given) -> Given:
    """Nothing known of focal length, gravity and distortion: what the picture is to be fitted
    without."""
    return replace(given, focal=None, gravity=None, distortion=None)


def given_checks(given: Given, row: int, alone: Calibration) -> Checks:
    """What the caller gave of a photo, hard or soft, against the calibration without it."""
    checks = []
    if given.focal is not None:
        value, sigma = _row(given.focal, row)
        checks.append(_focal_check(GIVEN, value[0], sigma[0], alone.fy, alone.sigma.focal))
    if given.gravity is not None:
        checks.append(_given_gravity(given.gravity, row, Direction.by_picture(alone)))
    if given.distortion is not None:
        value, sigma = _row(given.distortion, row)
        checks.append(_distortion_check(GIVEN, value, sigma, alone))
    return tuple(checks)


def _given_gravity(known: Array | Prior, row: int, other: Direction) -> PriorCheck:
    """What the caller gave of one photo's gravity, against another source."""
    value, sigma = _row(known, row)
    x, y, z = (value / np.linalg.norm(value)).tolist()
    angles = np.rad2deg(sigma)
    if len(angles) == 1 and other.covariance is not None:
        return _gravity_check(GravityReading((x, y, z), float(angles[0]), GIVEN), other)
    roll, pitch = (angles if len(angles) == 2 else _of_angles(z, angles[0])).tolist()
    return _angles_check(GIVEN, (x, y, z), (roll, pitch), other)


def held_against_files(
    given: Given, said: Sequence[Readings], outcomes: Sequence[Outcome]
) -> dict[int, Checks]:
    """How well what the caller gave of photos agrees with what their files say of the same, by row.

    said: all that the files say. outcomes: whose cameras tell how far a lens bends.
    """
    return {
        row: _file_checks(given, row, said[row], outcome)
        for row, outcome in enumerate(outcomes)
        if isinstance(outcome, Calibration)
    }


def _file_checks(given: Given, row: int, said: Readings, answer: Calibration) -> Checks:
    """The same of one photo."""
    checks = []
    if given.focal is not None and (focal := said.focal) is not None:
        value, sigma = _row(given.focal, row)
        by, seen = f"EXIF {focal.source}", (focal.focal_px, focal.sigma_px)
        checks.append(_focal_check(GIVEN, value[0], sigma[0], *seen, by))
    if given.gravity is not None:
        every = (_given_gravity(given.gravity, row, each) for each in Direction.by_file(said))
        checks += [check for check in every if not math.isnan(check.tension)]
    if given.distortion is not None and (lens := said.lens) is not None:
        value, sigma = _row(given.distortion, row)
        checks.append(_lens_check(value, sigma, lens, answer))
    return tuple(checks)


def _row(known: Array | Prior, row: int) -> tuple[Array, Array]:
    """The value of one photo, and its sigmas; 0 for what is held fixed."""
    if isinstance(known, Prior):
        return np.asarray(known.value[row], float), np.asarray(known.sigma[row], float)
    value = np.asarray(known[row], float)
    return value, np.zeros(1 if len(value) == 3 else len(value))


def held_against(given: Given, alone: Mapping[int, Outcome]) -> dict[int, Checks]:
    """How well what the caller gave of some photos agrees with the outcomes without it, by row."""
    return {
        row: given_checks(given, row, seen) if isinstance(seen, Calibration) else ()
        for row, seen in alone.items()
    }


def worth_lines(checks: Checks, outcome: Outcome) -> bool:
    """Whether the answer without what the caller gave is to be fitted with lines, too: where the
    network's is some way off, or lines were not believed beside what was given."""
    lines = outcome.lines if isinstance(outcome, Calibration) else None
    unlikely = lines is not None and lines.verdict is Verdict.UNLIKELY
    return unlikely or any(each.tension > NEAR for each in checks)


def check(readings: Readings, alone: Calibration) -> Checks:
    """What was read of a photo, against the calibration that its picture alone gives."""
    checks = []
    if readings.focal is not None:
        checks.append(focal_check(readings.focal, alone.fy, alone.sigma.focal))
    if readings.gravity is not None:
        checks.append(_gravity_check(readings.gravity, Direction.by_picture(alone)))
    elif (angle := readings.angle) is not None:
        seen = Direction.by_picture(alone)
        checks.append(_angles_check(angle.source, angle.gravity, angle.sigmas_deg, seen))
    if (lens := readings.lens) is not None:
        value, sigma = np.array(lens.distortion), np.array(lens.sigma)
        checks.append(_distortion_check(lens.source, value, sigma, alone))
    return tuple(checks)


def focal_check(hint: FocalReading, focal_px: float, sigma_px: float) -> PriorCheck:
    """EXIF against a picture's own focal length."""
    return _focal_check(f"EXIF {hint.source}", hint.focal_px, hint.sigma_px, focal_px, sigma_px)


def _focal_check(
    source: str,
    prior_px: float,
    prior_sigma_px: float,
    focal_px: float,
    sigma_px: float,
    against: str | None = None,
) -> PriorCheck:
    """In log f, in which both are close to normal."""
    apart = math.log(focal_px / prior_px)
    sigma = math.hypot(sigma_px / focal_px, prior_sigma_px / prior_px)
    return PriorCheck(
        "focal",
        source,
        (float(prior_px),),
        float(prior_sigma_px),
        (focal_px,),
        sigma_px,
        abs(apart) / sigma if sigma > 0 else math.nan,
        against=against,
    )


@dataclass(frozen=True)
class Direction:
    """Gravity by a picture or by a file, to hold a prior against."""

    gravity: Array
    """(3,)."""
    covariance: Array | None
    """(2, 2) on its tangent plane, square radians; None where one angle alone is known."""
    sigma_deg: float
    """Along the most uncertain direction."""
    angles_deg: tuple[float, float]
    """Sigmas of roll and pitch; that of an unknown angle is practically infinite."""
    source: str | None = None
    """What in the file tells it; None: the picture."""

    @classmethod
    def by_picture(cls, alone: Calibration) -> Direction:
        sigma = alone.sigma
        angles = sigma.roll_deg, sigma.pitch_deg
        return cls(alone.gravity, alone.covariance[:2, :2], sigma.gravity_deg, angles)

    @classmethod
    def by_file(cls, said: Readings) -> list[Direction]:
        """As each instrument says it, those that contradict a surer one as well."""
        found = []
        for full in said.instruments:
            sigma = full.sigma_deg
            covariance = math.radians(sigma) ** 2 * np.eye(2)
            roll, pitch = _of_angles(full.gravity[2], sigma).tolist()
            down = np.array(full.gravity)
            found.append(cls(down, covariance, sigma, (roll, pitch), full.source))
        if (angle := said.angle) is not None:
            down = np.array(angle.gravity)
            found.append(cls(down, None, angle.sigma_deg, angle.sigmas_deg, angle.source))
        return found


def _of_angles(z: float, sigma_deg: float) -> Array:
    """Sigmas of roll and pitch of a gravity with this component ahead and one sigma in all
    directions: circles of equal pitch are shorter, the steeper a camera looks."""
    return np.array([sigma_deg / max(math.sqrt(max(1 - z * z, 0)), LEAST_COSINE), sigma_deg])


def _gravity_check(hint: GravityReading, other: Direction) -> PriorCheck:
    """On the tangent plane at the estimate, where both angles of it are known."""
    assert other.covariance is not None
    said = np.array(hint.gravity)
    apart = sphere.difference(other.gravity, said, sphere.tangent_basis(other.gravity))
    covariance = other.covariance + math.radians(hint.sigma_deg) ** 2 * np.eye(2)
    return PriorCheck(
        "gravity",
        hint.source,
        hint.gravity,
        hint.sigma_deg,
        tuple(other.gravity.tolist()),
        other.sigma_deg,
        _tension(apart, covariance),
        against=other.source,
    )


def _angles_check(
    source: str,
    known: tuple[float, float, float],
    sigma_deg: tuple[float, float],
    other: Direction,
) -> PriorCheck:
    """Roll and pitch with a sigma each. An angle of which one source knows nothing is the
    other's."""
    stated = np.array(to_roll_pitch(np.array(known)))
    seen = np.array(to_roll_pitch(other.gravity))
    least, own = np.array(sigma_deg), np.array(other.angles_deg)
    silent, unseen = least > NOTHING_DEG, own > NOTHING_DEG
    stated, seen = np.where(silent, seen, stated), np.where(unseen & ~silent, stated, seen)
    both = ~(silent | unseen)
    apart = np.rad2deg(np.arctan2(np.sin(stated - seen), np.cos(stated - seen)))[both]
    prior, estimate = (np.asarray(from_roll_pitch(*each)).tolist() for each in (stated, seen))
    return PriorCheck(
        "gravity",
        source,
        (prior[0], prior[1], prior[2]),
        float(least[~silent].max(initial=0.0)),
        tuple(estimate),
        other.sigma_deg,
        _tension(apart, np.diag((own**2 + least**2)[both])) if both.any() else math.nan,
        against=other.source,
    )


def _lens_check(value: Array, sigma: Array, lens: LensReading, answer: Calibration) -> PriorCheck:
    """Known distortion against that of the lens by name: how far a point of the picture is moved
    otherwise at most, in sigmas of the corner. Polynomials of other parameters may bend alike."""
    other, spread = np.array(lens.distortion), np.array(lens.sigma)
    edge = math.hypot(answer.width, answer.height) / (2 * answer.fy)
    radii = edge * np.arange(1, 9) / 8

    def bent(k: Array) -> Array:
        return answer.cameras.model.radius(radii, np.ones(8), tuple(np.array(x) for x in k))[0]

    steps = STEP * np.eye(len(other))
    slopes = np.array([(bent(other + h) - bent(other - h))[-1] for h in steps]) / (2 * STEP)
    corner = float(np.linalg.norm(np.hypot(sigma, spread) * slopes))
    return PriorCheck(
        "distortion",
        GIVEN,
        tuple(value.tolist()),
        float(sigma.max()),
        lens.distortion,
        float(spread.max()),
        float(abs(bent(value) - bent(other)).max()) / corner,
        against=lens.source,
    )


def _distortion_check(source: str, value: Array, sigma: Array, alone: Calibration) -> PriorCheck:
    """The check of all distortion parameters at once."""
    seen = np.asarray(alone.cameras.distortion, float).reshape(-1)
    at = [alone.parameters.index(name) for name in alone.cameras.model.parameters]
    covariance = np.asarray(alone.covariance)[np.ix_(at, at)] + np.diag(sigma**2)
    return PriorCheck(
        "distortion",
        source,
        tuple(value.tolist()),
        float(sigma.max()),
        tuple(seen.tolist()),
        float(max(alone.sigma.distortion)),
        _tension(value - seen, covariance),
    )


def _tension(apart: Array, covariance: Array) -> float:
    """How far apart two vectors are, given the covariance of their difference: in the sigmas that
    have the same chance in one dimension; NaN where the covariance says nothing."""
    try:
        squared = float(apart @ np.linalg.solve(covariance, apart))
    except np.linalg.LinAlgError:
        return math.nan
    if not (math.isfinite(squared) and squared >= 0):
        return math.nan
    chance = max(float(chi2_sf(squared, len(apart))), LEAST_CHANCE)
    from statistics import NormalDist  # Takes long to import, and is seldom needed.

    return abs(NormalDist().inv_cdf(0.5 * chance))


def believed(focal: PriorCheck) -> bool:
    """Whether EXIF is likelier right than wrong, given what the picture alone shows."""
    if not math.isfinite(focal.tension):
        return True
    (stated,), (seen,) = focal.prior, focal.estimate
    sigma = math.hypot(focal.prior_sigma / stated, focal.estimate_sigma / seen)
    wrong = (1 - CROPPED) / ANYWHERE + (CROPPED / LARGEST_CROP if seen > stated else 0.0)
    return (1 - WRONG) * _student(focal.tension) / sigma > WRONG * wrong


def _student(value: float) -> float:
    """The density of Student's distribution."""
    n = FREEDOM
    norm = math.gamma(0.5 * (n + 1)) / (math.sqrt(n * math.pi) * math.gamma(0.5 * n))
    return float(norm * (1 + value**2 / n) ** (-0.5 * (n + 1)))


SPREAD = 1.5
"""Errors of pictures that are not lost, in their sigmas."""
STEEP_DEG = 30.0
"""Pitch by the sensor beyond which a picture looks steeply up or down."""
LOST_LEVEL, LOST_STEEP = (0.07, 8.0), (0.45, 26.0)
"""Share of the pictures that are lost, and half of how far in the mean, degrees."""
WRONG_IF_EDITED = 0.1
"""Share of sensors that belong to another picture, among files that a program may have written;
among some nine hundred unedited photographs there is none."""
LEAST_WEIGHT = 0.01
"""Least weight of a picture, which may be the only source for the lens."""
SPHERE = 4 * math.pi * math.degrees(1) ** 2
"""Area of the sphere, square degrees."""


@dataclass(frozen=True)
class Odds:
    """Densities, per square degree, of what sensor and picture say, by what may be the case."""

    both_right: float
    picture_lost: float
    sensor_wrong: float

    @classmethod
    def create(cls, said: GravityReading, alone: Calibration) -> Odds:
        """The comparison of a sensor with the calibration by the picture without it."""
        down = np.array(said.gravity)
        basis = sphere.tangent_basis(alone.gravity)
        apart = np.rad2deg(sphere.difference(alone.gravity, down, basis))
        picture = np.rad2deg(np.rad2deg(alone.covariance[:2, :2]))
        covariance = SPREAD**2 * picture + said.sigma_deg**2 * np.eye(2)
        steep = abs(said.gravity[2]) > math.sin(math.radians(STEEP_DEG))
        share, half = LOST_STEEP if steep else LOST_LEVEL
        wrong = WRONG_IF_EDITED if said.edited else 0.0
        squared = float(apart @ np.linalg.solve(covariance, apart))
        normal = math.exp(-0.5 * squared) / (2 * math.pi * math.sqrt(np.linalg.det(covariance)))
        scale = math.hypot(half, said.sigma_deg)
        wide = math.exp(-math.hypot(*apart) / scale) / (2 * math.pi * scale**2)
        return cls((1 - wrong) * (1 - share) * normal, (1 - wrong) * share * wide, wrong / SPHERE)

    @property
    def sensor_believed(self) -> bool:
        """Whether the sensor is likelier right than wrong."""
        return self.both_right + self.picture_lost >= self.sensor_wrong

    @property
    def picture_lost_likelier(self) -> bool:
        """Whether the sensor is believed, and the picture not."""
        return self.sensor_believed and self.picture_weight < 0.5

    @property
    def picture_weight(self) -> float:
        """How much the picture weighs beside the sensor, 0 to 1: the probability that it is not
        lost, where the sensor is right."""
        right = self.both_right + self.picture_lost
        return max(LEAST_WEIGHT, self.both_right / right) if right > 0 else LEAST_WEIGHT
