"""Real processes killed at random moments; ``python -m tests.kill`` does it for longer."""

from tests.kill import run_case


def test_a_killed_fit_goes_on_to_the_same_optimum():
    found = run_case("softmax", kills=2, size=600, seed=0)
    assert found.same
