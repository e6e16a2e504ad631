"""Arguments whose bytes are not UTF-8."""

import pytest

from tests.integration.cli.conftest import run


@pytest.mark.parametrize(
    "arguments",
    [
        ("undo", "\udcff"),
        ("undo", "ID", "--tenant", "\udcff", "--reason", "x"),
        ("publish", "order.placed", '{"\udcff": 1}'),
        ("signal", "\udcff", "paid"),
        ("config", "set", "caps.\udcff", "1", "--yes"),
    ],
    ids=["undo", "tenant", "publish", "signal", "config"],
)
def test_an_argument_that_is_not_text_is_refused_before_anything_is_read(arguments: tuple[str, ...]) -> None:
    result = run(*arguments)

    assert result.exit_code == 2
    assert r"\udcff" in result.stderr
    assert "is not UTF-8 text" in result.stderr
