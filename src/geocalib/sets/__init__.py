"""Many images of few cameras: who shares a camera, the joint fit, and who does not belong."""
