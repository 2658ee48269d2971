"""The layout of a record: every key, its kind, its unit, and where it is null.

Writers, readers, the columns of tables, Arrow's schema and the page ``docs/formats.md`` follow it.
"""

from __future__ import annotations

from geocalib.result.layout import Field, Many, Null, Scalar, Struct

SCHEMA = "geocalib/4"
"""The version of the layout; the number grows with every change."""

OLDER = ("geocalib/1", "geocalib/2", "geocalib/3")
"""Earlier versions, which ``geocalib.result.older`` reads."""

TEXT, WHOLE, COUNT, NUMBER = Scalar.TEXT, Scalar.WHOLE, Scalar.COUNT, Scalar.NUMBER
FLAG = Scalar.FLAG
NEVER, FAILED, POSSIBLE = Null.NEVER, Null.FAILED, Null.POSSIBLE

SIGMA = Struct(
    (
        Field("roll_deg", NUMBER, POSSIBLE, "one sigma; 0 for what was held fixed", "degrees"),
        Field("pitch_deg", NUMBER, POSSIBLE, "likewise", "degrees"),
        Field("gravity_deg", NUMBER, POSSIBLE, "along its most uncertain direction", "degrees"),
        Field("vfov_deg", NUMBER, POSSIBLE, "", "degrees"),
        Field("hfov_deg", NUMBER, POSSIBLE, "", "degrees"),
        Field("focal", NUMBER, POSSIBLE, "of fy", "pixels"),
        Field("aspect", NUMBER, POSSIBLE, "of fx / fy", "1"),
        Field("distortion", Many(NUMBER, gaps=True), NEVER, "of each", "as each"),
        Field(
            "principal_point", Many(NUMBER, length=2, gaps=True), NEVER, "of cx and cy", "pixels"
        ),
    )
)

LINES = Struct(
    (
        Field("verdict", TEXT, NEVER, "what they were used for, in a sentence"),
        Field("vertical", COUNT, NEVER, "those used as vertical", "segments"),
        Field("level", Many(COUNT), NEVER, "those used along each level direction", "segments"),
        Field("unused", COUNT, NEVER, "all others", "segments"),
        Field("probability", NUMBER, NEVER, "of the verdict", "1"),
        Field("roll_deg", NUMBER, POSSIBLE, "shift of the answer by lines", "degrees"),
        Field("pitch_deg", NUMBER, POSSIBLE, "likewise", "degrees"),
        Field("vfov_deg", NUMBER, POSSIBLE, "likewise", "degrees"),
    )
)

PRIOR = Struct(
    (
        Field("quantity", TEXT, NEVER, "`focal`, `gravity` or `distortion`"),
        Field("source", TEXT, NEVER, "where it comes from"),
        Field(
            "prior",
            Many(NUMBER),
            NEVER,
            "fy, gravity, or distortion",
            "pixels, or 1",
        ),
        Field("prior_sigma", NUMBER, NEVER, "one sigma; 0: held fixed", "pixels, or degrees"),
        Field("estimate", Many(NUMBER), NEVER, "by the picture alone", "pixels, or 1"),
        Field("estimate_sigma", NUMBER, POSSIBLE, "one sigma", "pixels, or degrees"),
        Field("tension", NUMBER, POSSIBLE, "difference of the two", "sigmas"),
        Field("used", FLAG, NEVER, "whether the answer uses it"),
    )
)

LENS_FAMILY = Struct(
    (
        Field("camera_model", TEXT, NEVER, "the model fitted for the family"),
        Field("probability", NUMBER, NEVER, "of the family", "1"),
        Field("vfov_deg", NUMBER, POSSIBLE, "by the network alone, between borders", "degrees"),
        Field("hfov_deg", NUMBER, POSSIBLE, "likewise", "degrees"),
        Field("roll_deg", NUMBER, POSSIBLE, "likewise", "degrees"),
        Field("pitch_deg", NUMBER, POSSIBLE, "likewise", "degrees"),
    )
)

DRAWN = Struct(
    (
        Field("x0", NUMBER, NEVER, "where the line begins", "pixels"),
        Field("y0", NUMBER, NEVER, "likewise", "pixels"),
        Field("x1", NUMBER, NEVER, "where it ends", "pixels"),
        Field("y1", NUMBER, NEVER, "likewise", "pixels"),
        Field("kind", TEXT, NEVER, "`up`, `level`, `parallel` or `horizon`"),
        Field("to", COUNT, POSSIBLE, "number, from 1, of the parallel line"),
        Field("sigma_deg", NUMBER, NEVER, "of the edge's direction", "degrees"),
        Field("off_deg", NUMBER, NEVER, "residual of the answer", "degrees"),
        Field("tension", NUMBER, NEVER, "difference from the network alone", "sigmas"),
        Field("used", FLAG, NEVER, "whether the answer follows it"),
    )
)

RULER = Struct(
    (
        Field("x0", NUMBER, NEVER, "where the length begins", "pixels"),
        Field("y0", NUMBER, NEVER, "likewise", "pixels"),
        Field("x1", NUMBER, NEVER, "where it ends", "pixels"),
        Field("y1", NUMBER, NEVER, "likewise", "pixels"),
        Field("kind", TEXT, NEVER, "`ground`, or `up`: upright on the ground"),
        Field("metres", NUMBER, NEVER, "its length", "metres"),
        Field("camera_height", NUMBER, NEVER, "above the ground", "metres"),
        Field("camera_height_sigma", NUMBER, POSSIBLE, "one sigma", "metres"),
    )
)

PHOTO = Struct(
    (
        Field("bytes", COUNT, POSSIBLE, "its size", "bytes"),
        Field("modified_ns", WHOLE, POSSIBLE, "when it changed last, since 1970", "nanoseconds"),
        Field("sha256", TEXT, POSSIBLE, "checksum; null if it changed meanwhile"),
        Field("set", TEXT, POSSIBLE, "key of the photos that share its camera"),
    )
)

ORIGIN = (
    Field("request", TEXT, POSSIBLE, "options of the run, as JSON"),
    Field("photo", PHOTO, POSSIBLE, "the file"),
)
"""What a resumed run compares, to skip photos that are done."""

RECORD = Struct(
    (
        Field("schema", TEXT, NEVER, f"`{SCHEMA}`"),
        Field("image", TEXT, POSSIBLE, "the path as it was given"),
        Field(
            "frame", TEXT, FAILED, "`upright`: as the photo is seen, or `stored`: as its pixels lie"
        ),
        Field("orientation", COUNT, POSSIBLE, "EXIF's, 1 to 8"),
        Field("width", COUNT, FAILED, "of the original image, in that frame", "pixels"),
        Field("height", COUNT, FAILED, "likewise", "pixels"),
        Field("camera_model", TEXT, FAILED, "a name of [cameras.md](cameras.md)"),
        Field("fx", NUMBER, FAILED, "focal length", "pixels"),
        Field("fy", NUMBER, FAILED, "likewise", "pixels"),
        Field("cx", NUMBER, FAILED, "the centre of the first pixel is at 0.5", "pixels"),
        Field("cy", NUMBER, FAILED, "likewise", "pixels"),
        Field("distortion", Many(NUMBER), NEVER, "in the model's order", "as each"),
        Field("roll_deg", NUMBER, FAILED, "of the camera", "degrees"),
        Field("pitch_deg", NUMBER, FAILED, "likewise", "degrees"),
        Field("vfov_deg", NUMBER, POSSIBLE, "null where a border has no ray", "degrees"),
        Field("hfov_deg", NUMBER, POSSIBLE, "likewise", "degrees"),
        Field("gravity", Many(NUMBER, length=3), FAILED, "unit vector down, camera frame", "1"),
        Field("sigma", SIGMA, FAILED, "standard deviations"),
        Field("parameters", Many(TEXT), NEVER, "names of the free parameters"),
        Field(
            "covariance", Many(Many(NUMBER, gaps=True)), NEVER, "of these, by rows", "of the two"
        ),
        Field("status", TEXT, FAILED, "how the fit ended; `converged` is the good one"),
        Field(
            "lens",
            Many(LENS_FAMILY),
            NEVER,
            "families compared, likeliest first; empty if named",
        ),
        Field("lines", LINES, POSSIBLE, "straight lines; null if not looked for"),
        Field("warnings", Many(TEXT), NEVER, "reasons to doubt the answer"),
        Field("trusted_gravity", FLAG, FAILED, "false if roll and pitch are in doubt"),
        Field("trusted_fov", FLAG, FAILED, "likewise field of view and focal length"),
        Field("trusted_lens", FLAG, FAILED, "likewise distortion and kind of lens"),
        Field("priors", Many(PRIOR), NEVER, "what was known beside the picture"),
        Field("drawn", Many(DRAWN), NEVER, "lines that a person drew"),
        Field("ruler", RULER, POSSIBLE, "a known length, and the scale by it; null if none"),
        Field("error", TEXT, POSSIBLE, "why there is no answer; null if there is one"),
        *ORIGIN,
    )
)
