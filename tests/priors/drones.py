"""XMP packets of drones, for the tests of sensors."""

from __future__ import annotations

DRONE = """<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/">
 <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
  <rdf:Description rdf:about="DJI Meta Data"
    xmlns:tiff="http://ns.adobe.com/tiff/1.0/"
    xmlns:drone-dji="http://www.dji.com/drone-dji/1.0/"
   tiff:Make="DJI"
   tiff:Model="FC6310"
   drone-dji:AbsoluteAltitude="+120.00"
   drone-dji:GimbalRollDegree="{roll}"
   drone-dji:GimbalYawDegree="{yaw}"
   drone-dji:GimbalPitchDegree="{pitch}"
   drone-dji:FlightRollDegree="+12.00"
   drone-dji:FlightPitchDegree="+21.00">
  </rdf:Description>
 </rdf:RDF>
</x:xmpmeta>
<?xpacket end="w"?>"""
"""As it stands in a photo of a Phantom 4 Pro, shortened."""


def packet(roll: str = "+0.00", pitch: str = "-90.00", yaw: str = "+45.00") -> bytes:
    return DRONE.format(roll=roll, pitch=pitch, yaw=yaw).encode()
