"""Many photographs at once: threads, worker processes, and streams of batches through them."""
