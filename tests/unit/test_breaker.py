"""The declaration of a breaker, and the option `depends_on`."""

from typing import Any

import pytest

from tests.support.builders import SECOND
from tidemill import Breaker
from tidemill.declarations.breaker import policies
from tidemill.domain.errors import DeclarationError


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"name": "Payments!"}, "the name of the downstream is 'Payments!'"),
        ({"name": "payments", "failure_threshold": 0}, "failure_threshold is 0; it must be at least 1"),
        ({"name": "payments", "failure_threshold": 1.5}, "failure_threshold is 1.5; it must be a whole number"),
        ({"name": "payments", "failure_ratio": 1.1}, "failure_ratio is 1.1; it must be above 0 and at most 1"),
        ({"name": "payments", "window_seconds": 0}, "window_seconds is 0; it must be positive"),
        ({"name": "payments", "probe_seconds": 901}, "probe_seconds is 901; it must be at most 900"),
    ],
)
def test_a_wrong_declaration_says_what_is_wrong(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(DeclarationError, match=text.replace("(", r"\(")):
        Breaker(**arguments)


def test_a_name_alone_has_the_defaults() -> None:
    (named,) = policies(["payments"])
    assert named == Breaker("payments").policy
    assert (named.failure_threshold, named.window, named.probe_interval) == (5, 10 * SECOND, 15 * SECOND)


@pytest.mark.parametrize("depends_on", ["payments", 5, ["payments", Breaker("payments")]])
def test_depends_on_is_a_list_of_different_downstreams(depends_on: Any) -> None:
    with pytest.raises(DeclarationError, match="depends_on"):
        policies(depends_on)
