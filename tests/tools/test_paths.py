"""The tools that set up the repository and the engine's local commands use the same folders."""

import pytest

from tidemill.local import paths as local
from tools import paths as tools


@pytest.mark.parametrize(
    ("local_path", "tools_path"),
    [
        pytest.param(local.ROOT, tools.ROOT, id="root"),
        pytest.param(local.STATE, tools.STATE, id="state"),
        pytest.param(local.EMULATOR_PYTHON, tools.python_of(tools.EMULATOR_VENV), id="the emulator's Python"),
        pytest.param(local.CDK, tools.CDK, id="the CDK command line"),
    ],
)
def test_setup_and_local_commands_use_the_same_path(local_path: object, tools_path: object) -> None:
    assert local_path == tools_path
