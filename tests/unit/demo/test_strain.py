"""The figure of `make figures FIGURE=strain`: what it computes, when it fails, and what it draws."""

import xml.etree.ElementTree as ET

import pytest

from demo.figures import strain
from demo.figures.strain import Point, allowed_seconds, drain_seconds, falls, measure
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
        strain.main()


@pytest.mark.parametrize("drained", [None, allowed_seconds() + 1])
def test_the_command_fails_when_a_backlog_does_not_drain(
    monkeypatch: pytest.MonkeyPatch, drained: float | None
) -> None:
    monkeypatch.setattr(strain, "measure", lambda: [Point(1, 49, 49)])
    monkeypatch.setattr(strain, "drain_seconds", lambda *, adaptive: drained if adaptive else None)
    monkeypatch.setattr(type(strain.PLOT), "write_text", lambda *_: None)

    with pytest.raises(WaitError, match="the backlog did not drain within 4320 s"):
        strain.main()


def test_the_plot_is_xml_with_a_curve_for_each() -> None:
    root = ET.fromstring(svg([(0.1, 0.1), (10, 1)], [(0.1, 0.1), (10, 0.2)]))

    curves = [element.get("points") for element in root.iter("{http://www.w3.org/2000/svg}polyline")]
    assert len(curves) == len({*curves}) == 2
