"""What is known of a photo beside its pixels: by its caller, its file and instruments beside it.

Each reading is a soft prior with a sigma of its own, all in the frame of the upright picture
(``docs/priors.md``). Nothing here raises on behalf of a photo: what cannot be used is left out, and
a note says why.
"""
