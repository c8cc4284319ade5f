"""Step sizes and scores to draw from: moderate ones, ties, and all that floating point allows."""

from hypothesis import strategies as st

ETAS = [0.0, 1e-12, 1e-6, 0.03, 1.0, 20.0, 1e6, 1e12]

STEP_SIZES = st.one_of(st.just(0.0), st.floats(-12.0, 12.0).map(lambda e: 10.0**e))
SCORES = st.one_of(
    st.floats(-20.0, 20.0),
    st.integers(-3, 3).map(float),
    st.sampled_from([0.0, 1.0, -1.0, 1e-300, 1e9, -1e9, 1e5, 745.0, -745.0, 88.0, -104.0]),
)
