"""The third stage: from fields, lines and priors to outcomes.

Within it: ``_fit_fields`` fits cameras and gravity to the network's fields, ``_refined`` refines
them with lines, and ``_judged`` compares the priors of files and sensors with the pictures
(``geocalib.priors.judge``). Each returns data, and none knows of the next.

If no camera model is named, ``geocalib.pipeline.lens`` chooses one first. Sensors' gravity is a
soft prior (``EnabledPriors.readings``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from geocalib.arrays import double, to_numpy
from geocalib.cameras.base import CameraModel
from geocalib.errors import ConfigError, CouplingError, ImageError
from geocalib.geometry.drawn import outside
from geocalib.geometry.fields import Fields
from geocalib.geometry.ruler import Ruler
from geocalib.geometry.segments import Segments
from geocalib.imaging import ImageSource, read_photo
from geocalib.imaging.enlarge import enlarge
from geocalib.lines.detect import SHORT_SIDE, detect
from geocalib.lines.drawn import follow, gained_focal_information, hold_to_drawn
from geocalib.lines.refine import refine_outcomes
from geocalib.lines.vanishing import TOO_FEW, calibrate_by_lines
from geocalib.pipeline.job import Job
from geocalib.pipeline.lens import choose, within_circle
from geocalib.pipeline.options import KeepFields
from geocalib.pipeline.predict import NetworkOutput
from geocalib.pipeline.prepare import path_of
from geocalib.priors.enabled import File, with_readings, with_starts
from geocalib.priors.judge import (
    Checks,
    Odds,
    agreement,
    annotated,
    as_sure_as_sensors,
    believed_readings,
    doubtful_rows,
    gravity_odds,
    held_against,
    held_against_files,
    left_out,
    rows_with_readings,
    strays,
    tells,
    unknown,
    with_usual_focal,
    worth_lines,
)
from geocalib.priors.lens import Choice, usual_distortion
from geocalib.priors.readings import Readings
from geocalib.priors.untold_lens import untold, usual_of
from geocalib.result.calibration import Calibration, Failure, Outcome
from geocalib.result.trust import BLANK, Doubt, doubts, judged
from geocalib.solver import FitOptions, FitResult, fit
from geocalib.solver.joint import Plane, fit_turned
from geocalib.solver.known import Given, Prior
from geocalib.solver.known import Mapping as PixelMapping
from geocalib.solver.sigma_calibration import FREE


def fit_outputs(job: Job, outputs: Sequence[NetworkOutput | Failure]) -> list[Outcome]:
    """The outcome of each image of a job, whose images have one camera model."""
    outcomes: dict[int, Outcome] = {}
    seen: dict[int, NetworkOutput] = {}
    for index, output in enumerate(outputs):
        if not isinstance(output, NetworkOutput):
            outcomes[index] = output
        elif misfit := _misfit(job, index, file := output.file):
            outcomes[index] = Failure(file.path, *file.size, f"{file.name}: {misfit}")
        else:
            seen[index] = output
    # Fields of one size are fitted as one batch.
    order = sorted(seen, key=lambda index: seen[index].fields.size)
    if order:
        answers = _fit_seen(job[order], [seen[index] for index in order])
        if (ruler := job.ruler) is not None:
            answers = [_measured(answer, ruler) for answer in answers]
        outcomes.update(zip(order, answers, strict=True))
    return [outcomes[index] for index in range(len(outputs))]


def _measured(outcome: Outcome, ruler: Ruler) -> Outcome:
    """With the scale by a known length, or why it tells none."""
    if not isinstance(outcome, Calibration):
        return outcome
    try:
        return outcome.measured(ruler)
    except ConfigError as error:
        image, size = outcome.image, (outcome.width, outcome.height)
        return Failure(image, *size, f"{image or 'image'}: {error}")


def _misfit(job: Job, index: int, file: File) -> str | None:
    """Say why what is known of an image cannot be true, given its size, if it cannot."""
    focal = job.given.impossible_focal(index, job.model, file.size)
    return focal or (outside(job.drawn, file.size) if job.drawn else None)


def _fit_seen(job: Job, outputs: Sequence[NetworkOutput]) -> list[Outcome]:
    """The outcomes of images that the network has seen, sorted by the size of their fields."""
    files = [output.file for output in outputs]
    given = job.enabled.placed(job.given, files)
    _check_sizes(files, job.camera.tolist(), given, job.rig is not None)
    if not job.unnamed[0]:
        return _fit_named(job, _with_lens_doubted(job, outputs, given), given)
    outputs = [within_circle(output) for output in outputs]
    choices = choose(job, outputs, given)
    outcomes = _fit_chosen(job, outputs, given, dict(enumerate(choices)))
    # Edges of one picture hint at the lens of all that its camera took.
    taken_by = job.camera.tolist()
    second = {
        row: changed
        for row, choice in enumerate(choices)
        if (
            changed := choice.second(
                outcomes[other] for other, camera in enumerate(taken_by) if camera == taken_by[row]
            )
        ).model
        != choice.model
    }
    if job.coupled and len(second) < len(choices):
        return [outcomes[row] for row in range(len(outputs))]
    anew = _fit_chosen(job, outputs, given, second)
    held = {row for row, each in second.items() if each.judged_by(anew[row]).model == each.model}
    if not job.coupled or len(held) == len(choices):
        outcomes |= {row: anew[row] for row in held}
    return [outcomes[row] for row in range(len(outputs))]


def _with_lens_doubted(
    job: Job, outputs: Sequence[NetworkOutput], given: Given
) -> list[NetworkOutput]:
    """What the network saw, with a note where the focal length is told of a lens that is not wide
    and the picture alone looks as through a wide one: so poor a fit contradicts no focal length."""
    if given.focal is None or given.distortion is not None or job.model.wide:
        return list(outputs)
    bare = [within_circle(output) for output in outputs]
    noted = []
    for output, choice in zip(outputs, choose(job, bare, unknown(given)), strict=True):
        if choice.model.wide:
            vfov_deg = choice.lens.families[0].vfov_deg
            words = (
                f"the picture alone looks as through a wide lens (vFoV {vfov_deg:.0f}°), "
                f"not through a {job.model.name} one; name such a model, with its focal length"
            )
            output = replace(output, notes=(*output.notes, words))
        noted.append(output)
    return noted


def _fit_chosen(
    job: Job, outputs: Sequence[NetworkOutput], given: Given, choices: Mapping[int, Choice]
) -> dict[int, Outcome]:
    """The outcomes of some of the images, by row, each with the model of its choice."""
    outcomes: dict[int, Outcome] = {}
    for model in dict.fromkeys(choice.model for choice in choices.values()):
        rows = [row for row, choice in choices.items() if choice.model == model]
        few = [choices[row] for row in rows]
        chosen = job[rows].with_lens(model, usual_distortion(few))
        answers = _fit_named(chosen, [outputs[row] for row in rows], given[rows], few)
        outcomes.update(zip(rows, answers, strict=True))
    return outcomes


def _fit_named(
    job: Job, outputs: Sequence[NetworkOutput], given: Given, choices: Sequence[Choice] = ()
) -> list[Outcome]:
    """The outcomes of images whose camera model is known. choices: where they chose it."""
    files = [output.file for output in outputs]
    readings = job.readings(given, files, job.model)
    outcomes, checks = _judged(job, outputs, given, readings)
    held = _held_against_given(job, outputs, given, outcomes)
    if choices:
        pairs = zip(choices, outcomes, strict=True)
        outcomes = [choice.applied(outcome) for choice, outcome in pairs]
    return [
        annotated(
            outcome,
            (*held.get(row, ()), *checks.get(row, ())),
            readings[row],
            (*job.warnings, *output.notes),
            output.file.metadata.orientation,
        )
        for row, (outcome, output) in enumerate(zip(outcomes, outputs, strict=True))
    ]


def _judged(
    job: Job, outputs: Sequence[NetworkOutput], given: Given, readings: Sequence[Readings]
) -> tuple[list[Outcome], dict[int, Checks]]:
    """The outcomes without their warnings, and by row how well what was read of photos agrees."""
    cameras = job.camera.tolist()
    informed = rows_with_readings(readings, job.coupled)
    # What is read from one photo must not change the answer for another.
    uninformed = [row for row in range(len(outputs)) if row not in informed]
    outcomes = _refined(job, outputs, given, uninformed)
    alone = _unrefined(job, outputs, given, informed)
    checks, odds = agreement(readings, alone), gravity_odds(readings, alone)
    heeded = _heeded(outputs, readings, odds)
    outcomes |= _refined_with(job, heeded, given, readings, informed, odds)
    doubtful = doubtful_rows(readings, checks, outcomes, job.coupled)
    alone = _refined(job.alone, outputs, given, doubtful)
    anew = agreement(readings, alone)
    checks, odds = checks | anew, odds | gravity_odds(readings, alone)
    left = believed_readings(readings, anew, odds, cameras)
    if changed := [row for row in doubtful if left[row] != readings[row]]:
        changed = doubtful if job.coupled else changed
        heeded = _heeded(outputs, left, odds)
        outcomes |= _refined_with(job, heeded, given, left, changed, odds)
        checks |= {row: left_out(checks[row], left[row]) for row in changed}
    return [outcomes[row] for row in range(len(outputs))], checks


def _refined_with(
    job: Job,
    outputs: Sequence[NetworkOutput],
    given: Given,
    readings: Sequence[Readings],
    rows: Sequence[int],
    odds: Mapping[int, Odds],
) -> dict[int, Outcome]:
    """Outcomes of some of the images, by row, with what was read of them. A picture that is
    lost about gravity does without lines that contradict its sensor, or all that is known else.
    """
    found = _refined_by_kind(job, outputs, given, readings, rows, odds)
    lost = [row for row in rows if row in odds and odds[row].picture_lost_likelier]
    astray = [row for row in lost if strays(readings[row].gravity, found[row])]
    if not astray:
        return found
    bare = list(outputs)
    for row in astray:
        bare[row] = replace(bare[row], segments=None)
    again = rows if job.coupled else astray
    return found | _refined_by_kind(job, bare, given, readings, again, odds)


def _refined_by_kind(
    job: Job,
    outputs: Sequence[NetworkOutput],
    given: Given,
    readings: Sequence[Readings],
    rows: Sequence[int],
    odds: Mapping[int, Odds],
) -> dict[int, Outcome]:
    """The same, with all lines. Those with a single angle of gravity are apart: their prior has a
    sigma for each angle, and that of the others one."""
    files, cameras = [output.file for output in outputs], job.camera.tolist()
    if given.focal is None:
        readings = [
            with_usual_focal(reading, files[row].size, odds.get(row))
            for row, reading in enumerate(readings)
        ]
    single = {row for row, reading in enumerate(readings) if reading.angle is not None}
    found: dict[int, Outcome] = {}
    for kind in (
        [row for row in rows if row in single],
        [row for row in rows if row not in single],
    ):
        kept = [reading if row in kind else Readings() for row, reading in enumerate(readings)]
        known = with_readings(given, kept, files, cameras, job.usual_distortion)
        found |= _refined(job, outputs, known, kind)
    return found


def _heeded(
    outputs: Sequence[NetworkOutput], readings: Sequence[Readings], odds: Mapping[int, Odds]
) -> list[NetworkOutput]:
    """What the network saw, with the weight that it has beside what sensors tell of gravity."""
    return [
        replace(output, fields=output.fields.weighted(odds[row].picture_weight))
        if row in odds and readings[row].gravity is not None
        else output
        for row, output in enumerate(outputs)
    ]


def _held_against_given(
    job: Job, outputs: Sequence[NetworkOutput], given: Given, outcomes: Sequence[Outcome]
) -> dict[int, Checks]:
    """By row, how well what the caller gave agrees with the answer without it, and with what the
    file says."""
    if not tells(given):
        return {}
    rows, bare = list(range(len(outputs))), unknown(given)
    checks = held_against(given, _unrefined(job, outputs, bare, rows))
    near = [row for row in checks if worth_lines(checks[row], outcomes[row])]
    if job.coupled and near:
        near = rows
    checks |= held_against(given, _refined(job.alone, outputs, bare, near))
    said = job.enabled.readings(bare, [output.file for output in outputs], job.model)
    beside = held_against_files(given, said, outcomes)
    return {row: (*checks[row], *beside.get(row, ())) for row in checks}


def _unrefined(
    job: Job, outputs: Sequence[NetworkOutput], given: Given, rows: Sequence[int]
) -> dict[int, Outcome]:
    """Outcomes of some of the images, by row, as the network alone has them."""
    if not rows:
        return {}
    job, outputs, given = job[rows], [outputs[row] for row in rows], given[rows]
    by_card, by_each = _fit_fields(job, outputs, given)
    result = by_card if by_each is None else by_each
    return dict(zip(rows, _outcomes(job, outputs, given, result), strict=True))


def _refined(
    job: Job, outputs: Sequence[NetworkOutput], given: Given, rows: Sequence[int]
) -> dict[int, Outcome]:
    """Outcomes of some of the images, by row, refined with the lines that were looked for."""
    if not rows:
        return {}
    job, outputs, given = job[rows], [outputs[row] for row in rows], given[rows]
    cameras, focal_information = job.camera.tolist(), given.focal_information
    by_card, by_each = _fit_fields(job, outputs, given)
    outcomes = _outcomes(job, outputs, given, by_card if by_each is None else by_each)
    before, lines_known = outcomes, any(output.segments is not None for output in outputs)
    # Lines were taught to weigh themselves against the card's sigmas.
    own_sigmas = by_each is not None and lines_known and not job.enabled.expects_photos
    if own_sigmas:
        before = _with_covariances(by_card, outcomes)
    else:
        focal_estimates = [output.focal_estimate for output in outputs]
        before = job.enabled.expected(outcomes, cameras, focal_information, focal_estimates)
    if job.drawn:
        bare = outcomes if own_sigmas else before
        outcomes = before = follow(bare, job.drawn)
        gained = gained_focal_information(bare, before)
        if focal_information is not None:
            gained = [sum(each) for each in zip(focal_information, gained, strict=True)]
        focal_information = gained
    # Here they are needed, and waited for.
    segments = [output.lines for output in outputs]
    refined = refine_outcomes(
        before, segments, cameras, job.rig, focal_information, given.gravity_information
    )
    known = given.gravity
    if isinstance(known, Prior) and known.sigma.shape[1] == 1 and not job.coupled:
        pairs = zip(refined, known.sigma[:, 0].tolist(), strict=True)
        refined = [as_sure_as_sensors(*each) for each in pairs]
    if own_sigmas:
        refined = [prefer_refined(*each) for each in zip(outcomes, refined, strict=True)]
    if job.drawn:
        refined = [hold_to_drawn(*each) for each in zip(refined, outcomes, strict=True)]
    else:
        refined = job.enabled.as_sure(refined, given, by_each is not None)
    return dict(zip(rows, refined, strict=True))


def prefer_refined(network: Outcome, refined: Outcome) -> Outcome:
    """The answer with lines; where these changed nothing, with the network's own sigmas."""
    if not isinstance(refined, Calibration) or not isinstance(network, Calibration):
        return refined
    if refined.lines is not None and refined.lines.verdict.used:
        return refined
    return replace(refined, covariance=network.covariance, sigma=network.sigma)


def _with_covariances(result: FitResult, outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Outcomes with the covariances of a fit with the same parameters, none of them in pixels.
    Their sigmas are unchanged, as lines will replace them."""
    return [
        replace(outcome, covariance=result.covariance[row])
        if isinstance(outcome, Calibration)
        else outcome
        for row, outcome in enumerate(outcomes)
    ]


def _outcomes(
    job: Job, outputs: Sequence[NetworkOutput], given: Given, result: FitResult
) -> list[Outcome]:
    """What a fit says of the originals."""
    outcomes: list[Outcome] = []
    for row, output in enumerate(outputs):
        file = output.file
        if result.status[row].failed:
            error = f"{file.name}: {result.status[row]}"
            outcomes.append(Failure(file.path, *file.size, error))
            continue
        camera = given.restored(output.view.to_original(result.camera[row], file.size), row)
        kept = _kept_fields(output, job.keep_fields)
        outcomes.append(Calibration.from_fit(result, row, camera, file.path, fields=kept))
    return outcomes


def _kept_fields(output: NetworkOutput, keep_fields: KeepFields) -> Fields | None:
    """What an answer holds of what the network saw."""
    if not keep_fields:
        return None
    fields = output.fields.map(to_numpy)
    return enlarge(fields, output.view, output.file.size) if keep_fields == "full" else fields


def _fit_fields(
    job: Job, outputs: Sequence[NetworkOutput], given: Given
) -> tuple[FitResult, FitResult | None]:
    """Cameras, in pixels of the fields, and gravity, with the sigmas that the network's card
    calibrates; and the same with the sigmas learnt for single photos, which hold for images
    with unknowns of their own and without priors."""
    alone = not job.coupled and given.focal is None and given.gravity is None
    given = with_starts(given, [output.down for output in outputs])
    result = _fit_sizes(job, outputs, given)
    if not alone or job.errors.learnt is None or result.parameters != FREE:
        return result, None
    return result, job.errors.with_learnt_sigmas(
        result, [BLANK not in output.notes for output in outputs]
    )


def _fit_sizes(job: Job, outputs: Sequence[NetworkOutput], given: Given) -> FitResult:
    """One fit; of images that share nothing, one for each size of their fields: beside larger
    fields the last bits of an answer would be others."""
    if job.coupled or len({output.fields.size for output in outputs}) == 1:
        return _fit_batch(job, outputs, given)
    runs = groupby(range(len(outputs)), lambda row: outputs[row].fields.size)
    sizes = [list(rows) for _, rows in runs]
    return FitResult.concatenate(
        [_fit_batch(job[rows], [outputs[row] for row in rows], given[rows]) for rows in sizes]
    )


def _fit_batch(job: Job, outputs: Sequence[NetworkOutput], given: Given) -> FitResult:
    """One fit of all images; once more of those that tell nothing of their lens, with what is
    usual of lenses."""
    result = _fit_once(job, outputs, given)
    lost = [] if given.distortion is not None else untold(result)
    if not lost:
        return result
    every = list(range(len(outputs)))
    rows = every if job.coupled else lost
    given = replace(given, distortion=usual_of(result, lost))
    anew = _fit_once(job[rows], [outputs[row] for row in rows], given[rows])
    order = [len(every) + rows.index(row) if row in rows else row for row in every]
    return FitResult.concatenate([result, anew]).select(order)


def _fit_once(job: Job, outputs: Sequence[NetworkOutput], given: Given) -> FitResult:
    """One fit of all images."""
    fields = [output.fields for output in outputs]
    sizes = [output.file.size for output in outputs]
    mapping = PixelMapping.create(
        [output.view for output in outputs], [part.size for part in fields]
    )
    model = job.errors.model_to_fit(job.model)
    options = FitOptions(confidence_scale=job.errors.confidence_scale)
    if given.distortion is None:
        given = replace(given, distortion=job.usual_distortion)
    given = job.errors.before_correction(given)
    if _some_turned(sizes, job.camera.tolist()):
        assert isinstance(given.principal_point, np.ndarray)
        plane = Plane.create(mapping, sizes, given.principal_point)
        here = [part.map(to_numpy) for part in fields]
        turned = fit_turned(here, plane, given, model, job.camera, options)
        return job.errors.corrected(turned)
    known = mapping.to_fields(given)
    # In double precision the fit takes fewer steps and no longer.
    batches = [
        Fields.concatenate(list(batch)).map(double)
        for _, batch in groupby(fields, lambda part: part.size)
    ]
    result = fit(
        batches,
        model,
        known.focal,
        known.gravity,
        known.distortion,
        known.principal_point,
        job.camera,
        job.rig,
        aspect=mapping.aspect_of(given),
        options=options,
    )
    return job.errors.corrected(result.in_numpy())


def _check_sizes(files: Sequence[File], cameras: Sequence[int], given: Given, rig: bool) -> None:
    """One camera takes pictures of one size; turned by a quarter, if nothing else turns along."""
    may_turn = isinstance(given.principal_point, np.ndarray) and given.aspect is None and not rig
    first: dict[int, File] = {}
    for file, camera in zip(files, cameras, strict=True):
        other = first.setdefault(camera, file)
        if file.size != other.size and not (may_turn and file.size == other.size[::-1]):
            sizes = ["x".join(map(str, seen.size)) for seen in (file, other)]
            raise CouplingError(
                f"{file.name} is {sizes[0]} pixels, but {other.name}, of the same camera, "
                f"{sizes[1]}; resize them alike, or give them cameras of their own"
            )


def _some_turned(sizes: Sequence[tuple[int, int]], cameras: Sequence[int]) -> bool:
    """Whether a camera took both portrait and landscape pictures."""
    return len(set(zip(cameras, sizes, strict=True))) > len(set(cameras))


def lines_of_image(source: ImageSource, model: CameraModel) -> Outcome:
    """What straight lines alone say of one image, without the network: ``lines="only"``."""
    try:
        photo = read_photo(source, SHORT_SIDE)
    except ImageError as error:
        return Failure(path_of(source), None, None, str(error))
    file = File(path_of(source), photo.name, photo.size, photo.metadata)
    return _by_lines(file, detect(photo), photo.notes, model)


def lines_of_output(output: NetworkOutput | Failure, model: CameraModel) -> Outcome:
    """The same of one that has been through the network."""
    if isinstance(output, Failure):
        return output
    if (segments := output.lines) is None:
        raise ConfigError('lines="only" needs lines; look for them when images are prepared')
    return _by_lines(output.file, segments, output.notes, model)


def _by_lines(
    file: File, segments: Segments, notes: tuple[str, ...], model: CameraModel
) -> Outcome:
    answer = calibrate_by_lines(segments, file.size, model, file.path)
    if answer is None:
        return Failure(file.path, *file.size, f"{file.name}: {TOO_FEW}")
    orientation = file.metadata.orientation
    return judged(replace(answer, orientation=orientation), (*map(Doubt, notes), *doubts(answer)))


def without_lines(output: NetworkOutput | Failure) -> NetworkOutput | Failure:
    """What the network saw, as if no lines had been looked for."""
    return output if isinstance(output, Failure) else replace(output, segments=None)
