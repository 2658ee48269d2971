"""What can be wrong with a call. Each error names the bad value and what would be accepted."""


class GeoCalibError(ValueError):
    """Base of every error this package raises on purpose."""


class FieldError(GeoCalibError):
    """A perspective field has the wrong shape, dtype or size."""


class PriorError(GeoCalibError):
    """A prior or hard constraint is malformed, impossible, or contradicts another one."""


class CouplingError(GeoCalibError):
    """The groups or the rig do not describe the images they come with."""


class CameraError(GeoCalibError):
    """A camera model or its parameters cannot be what was asked for."""
