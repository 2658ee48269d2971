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
    """A camera model or its parameters cannot be what was wanted."""


class FormatError(GeoCalibError):
    """A file or record is not what it should be, or a format cannot hold what it is given."""


class WeightsError(GeoCalibError):
    """Weights or a network's description do not fit the network they are meant for."""


class ImageError(GeoCalibError):
    """An image cannot be read, or does not fit the camera it came with."""


class PanoramaError(GeoCalibError):
    """A panorama, or the file a bank of them is kept in, cannot be used."""


class ConfigError(GeoCalibError):
    """A setting is unknown or has a value of the wrong kind."""


class MissingPackageError(GeoCalibError):
    """What was wanted needs a package that is not installed. (A photo or a panorama that needs
    one fails alone, with its own error.)"""


def how_to_get(name: str) -> str:
    """The command that installs an extra, in the quotes that every shell takes."""
    return f'pip install "geocalib[{name}]"'


GET_TORCH = how_to_get("torch")
"""What to do about a torch that is missing."""


class MatchError(GeoCalibError):
    """Matches between an image and 3D points are malformed."""


class DownloadError(GeoCalibError):
    """A file cannot be had from the web, or is not what it should be."""


class VideoError(GeoCalibError):
    """A video or a camera cannot be read, or a video cannot be written."""


class OutputError(GeoCalibError):
    """A file may not be written: it is an input, it exists, or somebody else is writing it."""
