"""Settings all tests share."""

from hypothesis import settings

# No deadline: the first example compiles kernels. Derandomised: a failure here is a failure
# everywhere, and the seeds that searched further are in the batteries themselves.
settings.register_profile("shortlist", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("shortlist")
