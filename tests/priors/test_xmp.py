"""Gimbal angles, as drones write them, as programs rewrite them, and as nobody should."""

from __future__ import annotations

import math
from contextlib import suppress

import pytest
from drones import packet
from hypothesis import given
from hypothesis import strategies as st

from geocalib.errors import FormatError
from geocalib.priors.readings import gimbal_gravity, pose_gravity

REWRITTEN = b"""<x:xmpmeta xmlns:x="adobe:ns:meta/">
 <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
  <rdf:Description rdf:about="" xmlns:drone-dji="http://www.uav.com/drone-dji/1.0/">
   <drone-dji:GimbalRollDegree>+0.00</drone-dji:GimbalRollDegree>
   <drone-dji:GimbalPitchDegree>-30.00</drone-dji:GimbalPitchDegree>
  </rdf:Description>
 </rdf:RDF>
</x:xmpmeta>"""

BOMB = b"""<!DOCTYPE x [<!ENTITY a "0000000000"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>
<x xmlns:drone-dji="d" drone-dji:GimbalRollDegree="&b;" drone-dji:GimbalPitchDegree="0"/>"""


def test_straight_down() -> None:
    assert gimbal_gravity(packet()) == pytest.approx((0, 0, 1), abs=1e-12)


def test_signs() -> None:
    # Looking up, gravity points behind the camera; rolled clockwise, to its right.
    up = gimbal_gravity(packet(pitch="+30.00"))
    assert up == pytest.approx((0, math.sqrt(0.75), -0.5))
    clockwise = gimbal_gravity(packet(roll="+30.00", pitch="+0.00"))
    assert clockwise == pytest.approx((0.5, math.sqrt(0.75), 0))


def test_a_level_gimbal() -> None:
    assert gimbal_gravity(packet(pitch="+0.00")) == (0, 1, 0)
    assert gimbal_gravity(REWRITTEN.replace(b"-30.00", b"+0.00")) == (0, 1, 0)


def test_elements_and_another_namespace() -> None:
    assert gimbal_gravity(REWRITTEN) == pytest.approx((0, math.sqrt(0.75), 0.5))


def test_parrot() -> None:
    angles = "drone-parrot:CameraRollDegree='30' drone-parrot:CameraPitchDegree='0'"
    packet = f"<x xmlns:drone-parrot='p' {angles}/>".encode()
    assert gimbal_gravity(packet) == pytest.approx((0.5, math.sqrt(0.75), 0))
    assert pose_gravity(packet) is None


@pytest.mark.parametrize(
    ("projection", "pitch", "told"),
    [("", "30", True), ("equirectangular", "30", False), ("", "0", False)],
)
def test_the_pose_of_a_flat_picture(projection: str, pitch: str, told: bool) -> None:
    pose = f"GPano:PosePitchDegrees='{pitch}' GPano:ProjectionType='{projection}'"
    found = pose_gravity(f"<x xmlns:GPano='g' {pose}/>".encode())
    assert found == (pytest.approx((0, math.sqrt(0.75), -0.5)) if told else None)


def test_padding_after_the_packet() -> None:
    assert gimbal_gravity(packet() + b" \n\0\0") is not None


def test_a_packet_without_a_gimbal() -> None:
    assert gimbal_gravity(b"<x:xmpmeta xmlns:x='adobe:ns:meta/'/>") is None
    half = packet().replace(b"GimbalRollDegree", b"GimbalRoll")
    assert gimbal_gravity(half) is None


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (packet(roll="level"), "GimbalRollDegree.*'level'"),
        (packet(pitch="NaN"), "GimbalPitchDegree"),
        (packet(pitch="-900"), "within 180"),
        (packet(pitch="+0.00", yaw="+0.00"), "all 0"),
        (packet()[:200], "damaged"),
        (b"", "damaged"),
        (BOMB, "document type"),
        (BOMB.decode().encode("utf-16"), "document type"),
        (b" " * (2 << 20), "larger than"),
    ],
    ids=["word", "nan", "range", "unknown", "cut", "empty", "bomb", "wide bomb", "huge"],
)
def test_what_is_wrong_is_said_in_one_line(bad: bytes, says: str) -> None:
    with pytest.raises(FormatError, match=says) as error:
        gimbal_gravity(bad)
    assert "\n" not in str(error.value)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with suppress(FormatError):
        gimbal_gravity(data)
