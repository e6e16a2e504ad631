"""The commands of other programs that the documents show: CDK with settings, modules of Python, the AWS CLI and pip."""

import argparse
import re
import runpy
import sys
import tomllib
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NoReturn

import botocore.session
import pytest
from botocore import xform_name
from botocore.model import ServiceModel

from stacks.composition import read_settings
from tests.support.document_blocks import DOCUMENTS, ROOT, page_of
from tests.support.document_commands import Command, commands_of

#: Words that stand for the user's own, and one that the program accepts in their place.
CHOSEN: Final = {"NAME": "all"}
#: The same for the value of a setting.
VALUES: Final = {
    "alarm_email": "ops@example.com",
    "ticket_email": "ops@example.com",
    "archive": "a-bucket",
    "jobs_stream": "arn:aws:dynamodb:eu-central-1:123456789012:table/jobs/stream/2026-11-22T18:03:42.123",
    "stage": "dev",
    "jwt_issuer": "https://example.com",
    "jwt_audience": "jobs",
    "tracing_layer": "arn:aws:lambda:eu-central-1:123456789012:layer:traces:1",
}
#: No settings: the form of all, and one that a page adds to an app.
NO_SETTINGS: Final = {"-c name=value", "-c report_days=7"}
#: The options of the AWS CLI, beside the members of each operation.
OPTIONS_OF_AWS: Final = {"--query", "--output", "--cli-binary-format"}
#: Further commands of the AWS CLI, with their options in the documents.
COMMANDS_OF_AWS: Final = {
    # https://docs.aws.amazon.com/cli/latest/reference/logs/tail.html
    ("logs", "tail"): {"--since", "--filter-pattern"},
    # https://docs.aws.amazon.com/cli/latest/reference/s3/rm.html
    ("s3", "rm"): {"--recursive"},
}
#: A sentence of CONTRIBUTING.md names the layers, of which one is called so.
CDK: Final = [command for command in commands_of("cdk") if command.words[1].isascii()]
SETTINGS_OF_TEXT: Final = sorted(
    {span for path in DOCUMENTS for span in re.findall(r"`(-c \w+=[^`]+)`", page_of(path).prose)} - NO_SETTINGS
)


class Parsed(Exception):  # noqa: N818 - no error
    """The parser of a module has accepted its arguments."""


def _pairs(settings: list[str]) -> dict[str, object]:
    named = [setting.partition("=") for setting in settings]
    return {name: VALUES.get(name, value) if re.fullmatch("…|[A-Z]+", value) else value for name, _, value in named}


def _cdk() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("cdk", exit_on_error=False, allow_abbrev=False)
    parser.add_argument("action", choices=["bootstrap", "deploy", "destroy", "synth"])
    parser.add_argument("stacks", nargs="*")
    for flag in ("--all", "--exclusively"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("-q", "--quiet", action="store_true")
    parser.add_argument("--cloudformation-execution-policies")
    parser.add_argument("-c", "--context", action="append", default=[])
    return parser


@pytest.mark.parametrize("command", CDK, ids=str)
def test_the_app_accepts_the_settings_of_a_command(command: Command) -> None:
    given = _cdk().parse_intermixed_args(command.words[1:])
    stage = read_settings(_pairs(given.context)).stage.stage

    assert all(re.fullmatch(rf"Tidemill-{stage}-(Pipeline|Shortener)", stack) for stack in given.stacks)


@pytest.mark.parametrize("text", SETTINGS_OF_TEXT)
def test_the_app_accepts_the_settings_of_a_text(text: str) -> None:
    given = _pairs(re.findall(r"-c (\S+)", text))
    # A scope needs the issuer of its tokens.
    issuer = {name: VALUES[name] for name in ("jwt_issuer", "jwt_audience") if "jwt_scopes" in given}

    read_settings({"stage": "dev", **issuer, **given})


@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")
@pytest.mark.parametrize("command", commands_of("python"), ids=str)
def test_the_module_of_a_command_takes_its_options(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    flag, module, *arguments = command.words[1:]
    assert flag == "-m"
    source = _source(module)
    assert source.is_relative_to(ROOT)
    if "parse_args()" in source.read_text():
        parse = argparse.ArgumentParser.parse_args

        def parse_only(parser: argparse.ArgumentParser) -> NoReturn:
            raise Parsed(parse(parser))

        monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse_only)
        monkeypatch.setattr(sys, "argv", [module, *(CHOSEN.get(word, word) for word in arguments)])
        with pytest.raises(Parsed):
            runpy.run_module(module, run_name="__main__")
    else:
        # It reads them itself.
        assert all(f'"{word}"' in source.read_text() for word in arguments if word.startswith("-"))
        assert not arguments or "sys.argv" in source.read_text()


def _source(module: str) -> Path:
    """The file that Python runs."""
    found = find_spec(module)
    if found is not None and found.submodule_search_locations is not None:
        found = find_spec(f"{module}.__main__")
    assert found is not None, f"{module} does not exist"
    assert found.origin is not None
    assert '__name__ == "__main__"' in Path(found.origin).read_text()
    return Path(found.origin)


@cache
def _service(name: str) -> ServiceModel:
    session: Any = botocore.session.get_session()
    model: ServiceModel = session.get_service_model(name)
    return model


@pytest.mark.parametrize("command", commands_of("aws"), ids=str)
def test_the_service_of_a_command_has_its_action_and_options(command: Command) -> None:
    service, action, *words = command.words[1:]
    if (own := COMMANDS_OF_AWS.get((service, action))) is not None:
        assert {word for word in words if word.startswith("--")} <= own
        return
    if action == "wait":
        session: Any = botocore.session.get_session()
        waiters = session.get_waiter_model(service)
        waits = {xform_name(name, "-"): waiters.get_waiter(name).operation for name in waiters.waiter_names}
        action, words = xform_name(waits[words[0]], "-"), words[1:]
    actions = {xform_name(name, "-"): name for name in _service(service).operation_names}
    operation = _service(service).operation_model(actions[action])

    members = [f"--{xform_name(name, '-')}" for name in operation.input_shape.members] if operation.input_shape else []
    options = {word.replace("--no-", "--") for word in words if word.startswith("--")}
    assert options <= {*members, *OPTIONS_OF_AWS}


@pytest.mark.parametrize("command", commands_of("pip"), ids=str)
def test_the_files_of_an_installation_exist(command: Command) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    words = command.words[1:]

    assert all((ROOT / name).is_file() for option, name in pairwise(words) if option == "-r")
    for word in words:
        if wheel := re.fullmatch(r"dist/(\w+)-([\d.]+)-py3-none-any\.whl\[([\w,]+)\]", word):
            assert (wheel[1], wheel[2]) == (project["name"], project["version"])
            assert set(wheel[3].split(",")) <= project["optional-dependencies"].keys()
