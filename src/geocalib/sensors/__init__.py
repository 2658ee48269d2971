"""What instruments say of a photo: its EXIF and XMP data, and files that lie beside it.

Each reading is a soft prior with a sigma of its own, all in the frame of the upright picture
(``docs/priors.md``). Nothing here raises on behalf of a photo: what cannot be used is left out, and
a note says why.
"""
