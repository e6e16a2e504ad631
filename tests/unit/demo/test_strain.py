"""The figure of `make figures FIGURE=strain`: what it computes, when it fails, and what it draws."""

import xml.etree.ElementTree as ET

import pytest

from demo.figures import strain
from demo.figures.strain import (
    Governing,
    Point,
    Share,
    allowed_seconds,
    drain_seconds,
    falls,
    measure,
    measure_foreground,
    measure_swings,
    swings_of,
    unkept,
)
from demo.figures.strain_model import CAPACITY, Model
from demo.figures.strain_plot import svg
from tidemill.local.wait import WaitError


def test_goodput_stays_flat_beyond_saturation_with_the_limit_and_falls_without() -> None:
    light, heavy = measure((0.5, 5), warm_up=30, measured=30)

    assert light.limited == pytest.approx(light.unlimited, rel=0.05)
    assert falls([light, heavy]) == []
    assert heavy.unlimited < CAPACITY / 2


def test_a_fall_beyond_saturation_is_found_and_a_light_load_is_not_one() -> None:
    light, fallen = Point(0.5, 25, 25), Point(2, 0.8 * CAPACITY, 10)

    assert falls([light, fallen]) == [fallen]


def test_a_metastable_start_drains_with_the_limit_only() -> None:
    drained = drain_seconds(adaptive=True, backlog_seconds=200)

    assert drained is not None
    assert drained <= allowed_seconds(200)
    assert drain_seconds(adaptive=False, backlog_seconds=200) is None


def test_the_model_keeps_each_job() -> None:
    model = Model(offered=2 * CAPACITY, adaptive=False, backlog=100)
    submitted = 100
    arrive = model._arrive

    def counted() -> None:
        nonlocal submitted
        submitted += 1
        arrive()

    model._arrive = counted  # type: ignore[method-assign]
    model.run_until(20)

    assert model.succeeded + model.dead + model.live == submitted


def test_the_command_fails_when_goodput_falls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strain, "measure", lambda: [Point(1, 49, 49), Point(2, 30, 10)])
    monkeypatch.setattr(strain, "drain_seconds", lambda *, adaptive: 100.0 if adaptive else None)
    monkeypatch.setattr(type(strain.PLOT), "write_text", lambda *_: None)

    with pytest.raises(WaitError, match=r"goodput with Adaptive falls beyond saturation: 30\.0 at 2 x"):
        strain._limits()


@pytest.mark.parametrize("drained", [None, allowed_seconds() + 1])
def test_the_command_fails_when_a_backlog_does_not_drain(
    monkeypatch: pytest.MonkeyPatch, drained: float | None
) -> None:
    monkeypatch.setattr(strain, "measure", lambda: [Point(1, 49, 49)])
    monkeypatch.setattr(strain, "drain_seconds", lambda *, adaptive: drained if adaptive else None)
    monkeypatch.setattr(type(strain.PLOT), "write_text", lambda *_: None)

    with pytest.raises(WaitError, match="the backlog did not drain within 4320 s"):
        strain._limits()


def test_the_plot_is_xml_with_a_curve_for_each() -> None:
    root = ET.fromstring(svg("with", [(0.1, 0.1), (10, 1)], [(0.1, 0.1), (10, 0.2)]))

    curves = [element.get("points") for element in root.iter("{http://www.w3.org/2000/svg}polyline")]
    assert len(curves) == len({*curves}) == 2


def test_the_governor_keeps_the_foreground_fast_under_a_load_that_drowns_it_without() -> None:
    light, heavy = measure_foreground((0.3, 5), warm_up=60, measured=60)

    assert unkept([light, heavy]) == []
    assert light.governed == light.ungoverned
    assert heavy.ungoverned.in_time < 0.1
    assert heavy.governed.goodput > 5 * heavy.ungoverned.goodput


@pytest.mark.parametrize(
    ("levels", "swings"),
    [([], 0), ([1, 2, 3], 0), ([1, 2, 1, 0], 0), ([1, 0, 1], 1), ([1, 2, 1, 2, 1, 0, 1], 2), ([2, 1, 3], 1)],
)
def test_a_rise_after_a_fall_is_a_swing(levels: list[int], swings: int) -> None:
    assert swings_of(levels) == swings


def test_a_steady_load_swings_no_level() -> None:
    assert measure_swings((0.3, 5), watched=300) == {0.3: 0, 5: 0}


def test_a_level_that_swings_fails_the_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strain, "measure_foreground", lambda: [Governing(1, Share(0.9, 25), Share(0, 2))])
    monkeypatch.setattr(strain, "measure_swings", lambda: {0.5: strain.MOST_SWINGS + 1})
    monkeypatch.setattr(type(strain.PLOT), "write_text", lambda *_: None)
    with pytest.raises(WaitError, match="swings"):
        strain._foreground()


@pytest.mark.parametrize("failed", [Share(0.7, 25), Share(0.9, 15)])
def test_a_foreground_or_a_goodput_that_falls_is_found(failed: Share) -> None:
    fine = Governing(1, Share(0.8, 25), Share(0, 2))

    assert unkept([fine, Governing(2, failed, Share(0, 2))]) == [Governing(2, failed, Share(0, 2))]


def test_the_command_fails_when_the_governor_does_not_keep_the_foreground(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strain, "measure_foreground", lambda: [Governing(2, Share(0.5, 25), Share(0, 2))])
    monkeypatch.setattr(type(strain.PLOT), "write_text", lambda *_: None)

    with pytest.raises(WaitError, match=r"50% and 25\.0 at 2 x"):
        strain._foreground()
