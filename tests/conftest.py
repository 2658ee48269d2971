"""Settings of the whole test suite."""

from hypothesis import settings

# The examples are the same on every run; no time limit, as the first call of torch is slow.
settings.register_profile("geocalib", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("geocalib")
