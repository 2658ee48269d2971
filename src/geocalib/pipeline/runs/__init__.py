"""Long runs: answers on disk as they come, such that an interrupted run goes on."""
