"""The imports of a cold start."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
HEAVY = ("iptocc", "maxminddb", "ua_parser", "ua_parser_builtins")


@pytest.mark.parametrize(
    "module",
    [
        "functions.shorten.handler",
        "functions.redirect.handler",
        "functions.stats.handler",
        "functions.jobs.click_enrich",
    ],
)
def test_a_module_is_imported_without_an_environment_and_without_heavy_libraries(module: str) -> None:
    code = f"import sys, json, {module}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], env={}, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not set(HEAVY) & set(json.loads(done.stdout))
