"""Metric math, by the examples of the AWS documentation.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/using-metric-math.html
"""

import pytest

from tidemill.local.alarms.metric_math import UnsupportedError, parse_expression

#: The metrics of the examples, where None stands for a missing data point.
METRIC_1 = [30, 20, 0, 0]
METRIC_2 = [20, None, 20, None]
CONDITION = [1, 1, 0, 0, None]
THEN = [30, None, 0, 0, 30]
OTHERWISE = [0, 0, 20, None, 20]


def _series(expression: str, **metrics: list[float | None]) -> list[float | None]:
    evaluate = parse_expression(expression).evaluate
    return [evaluate(dict(zip(metrics, values, strict=True))) for values in zip(*metrics.values(), strict=True)]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("(metric1 < metric2)", [0, 0, 1, 0]),
        ("(metric1 >= 30)", [1, 0, 0, 0]),
        ("(metric1 > 15 AND metric2 > 15)", [1, 0, 0, 0]),
        ("metric1 + metric2", [50, 20, 20, 0]),
        ("metric2 + 1", [21, None, 21, None]),
        ("metric1 / metric2", [1.5, None, 0, None]),
        ("MAX([metric1, metric2])", [30, 20, 20, 0]),
        ("FILL(metric2, 7)", [20, 7, 20, 7]),
        ("metric1 > 25 OR metric2 > 15", [1, 0, 1, 0]),
    ],
)
def test_operators_and_functions(expression: str, expected: list[float | None]) -> None:
    assert _series(expression, metric1=[*METRIC_1], metric2=[*METRIC_2]) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("IF(metric1, metric2, metric3)", [30, 0, 20, None, None]),
        ("IF(metric1, 5, metric3)", [5, 5, 20, None, None]),
        ("IF(metric1, metric2, 5)", [30, 0, 5, 5, None]),
    ],
)
def test_if(expression: str, expected: list[float | None]) -> None:
    assert _series(expression, metric1=[*CONDITION], metric2=[*THEN], metric3=[*OTHERWISE]) == expected


def test_an_expression_names_its_metrics_and_its_value_without_data() -> None:
    expression = parse_expression("IF(FILL(calls, 0) < 1, 1, other)")
    assert expression.ids == {"calls", "other"}
    assert expression.when_idle == 1
    assert parse_expression("calls + other").when_idle is None


@pytest.mark.parametrize("expression", ["SUM(m1)", "m1 ^ 2", "SEARCH('x')", "m1 +", "FILL(m1, REPEAT)", "-m1"])
def test_what_is_not_implemented_is_refused(expression: str) -> None:
    with pytest.raises(UnsupportedError):
        parse_expression(expression)
