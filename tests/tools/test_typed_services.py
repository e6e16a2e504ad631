"""mypy reads the types of only those services of the CDK that are named in `pyproject.toml`."""

import re
import tomllib

from tools.paths import ROOT

SERVICE = re.compile(r"(?:from aws_cdk import |from aws_cdk\.|aws_cdk\.)(aws_\w+)")


def test_each_service_that_is_imported_has_types() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    typed = {
        module.removeprefix("aws_cdk.")
        for override in settings["tool"]["mypy"]["overrides"]
        if override.get("follow_imports") == "normal"
        for module in override["module"]
    }
    folders = ("demo", "functions", "shared", "stacks", "tests", "tools")
    used = {
        service
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
        for service in SERVICE.findall(path.read_text(encoding="utf-8"))
    }
    assert typed - {"aws_cdk"} == used
