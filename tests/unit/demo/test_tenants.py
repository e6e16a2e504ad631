"""The figure of `make figures FIGURE=tenants`: what it computes, and when it fails."""

import pytest

from demo.figures import tenants
from demo.figures.tenant_model import Lane, Load
from demo.figures.tenants import CAP, SECONDS, SETUPS, Row, Setup, broken, measure
from tidemill.local.wait import WaitError

UNFAIR, FAIR, CAPPED, PROTECTED = SETUPS
FLOOD = Load(others=5, rate=1, seconds=0.5, flood_rate=100, flood_seconds=5)


def test_a_flood_delays_the_others_without_a_fair_queue_only() -> None:
    unfair, fair = measure([UNFAIR, FAIR], [SECONDS], warm_up=20, measured=20)

    assert unfair.change > 10
    assert broken([unfair, fair]) == []
    assert fair.setup.bounded(SECONDS)


def test_a_flood_of_long_jobs_needs_the_cap() -> None:
    fair, protected = measure([FAIR, PROTECTED], [10.0], warm_up=30, measured=30)

    assert fair.change > 1
    assert protected.setup.bounded(10.0)
    assert broken([fair, protected]) == []
    assert protected.most_runs == CAP


def test_the_model_starts_all_jobs_that_the_cap_lets_run() -> None:
    lane = Lane(FLOOD, cap=10)
    lane.run_until(100)

    assert lane.most_flood_runs == 10
    # Ten slots, each for a run of five seconds and the way of the next job to its lane.
    assert lane.flood_started == pytest.approx(10 * 100 / 5.15, rel=0.05)


def test_a_change_above_the_bound_is_found() -> None:
    above, below = (Row(PROTECTED, 10.0, 1.0, change, CAP) for change in (0.21, 0.2))
    unbounded = Row(Setup("nothing", fair=False), SECONDS, 1.0, 9.0, 500)

    assert broken([above, below, unbounded]) == [above]


def test_the_figure_fails_if_the_bound_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tenants, "measure", lambda: iter([Row(FAIR, SECONDS, 1.0, 0.5, 500)]))

    with pytest.raises(WaitError, match="changes by more than 20%"):
        tenants.main()
