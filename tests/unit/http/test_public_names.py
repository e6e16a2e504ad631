"""`tidemill.http` offers what functions of the app need, and loads no more than a caller uses."""

import subprocess
import sys

import tidemill.http

_IMPORTS = """
import sys
{statement}
print(*sorted(set({modules!r}) & sys.modules.keys()))
"""
HEAVY = {"aws_lambda_powertools", "tidemill.http.openapi", "tidemill.http.router"}


def loaded_by(statement: str) -> set[str]:
    """The heavy modules that a fresh interpreter has loaded after `statement`."""
    script = _IMPORTS.format(statement=statement, modules=HEAVY)
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    return set(done.stdout.split())


def test_every_public_name_is_there_and_is_not_a_module() -> None:
    for name in tidemill.http.__all__:
        value = getattr(tidemill.http, name)
        assert isinstance(value, dict) or value.__module__.startswith("tidemill.http."), name


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(tidemill.http, "problem")


def test_modules_that_need_no_router_load_none() -> None:
    assert loaded_by("import tidemill.http.cursors, tidemill.application.job_view") == set()


def test_the_public_names_do_not_load_the_description_of_the_api() -> None:
    names = ", ".join(tidemill.http.__all__)
    assert loaded_by(f"from tidemill.http import {names}") == HEAVY - {"tidemill.http.openapi"}
