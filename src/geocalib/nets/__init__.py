"""Networks: an image to its perspective fields with confidences."""
