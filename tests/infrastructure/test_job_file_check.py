"""Synth imports the job files with only the modules that a function has."""

import shutil
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from stacks.composition import ROOT
from stacks.stages import STAGES
from tidemill.cdk import asset
from tidemill.cdk.job_file_check import JobFileError, require_job_files
from tidemill.cdk.synth_errors import SynthError

JOB = """from pydantic import BaseModel
from tidemill import job_type

@job_type("test.one", payload=BaseModel)
def one(payload, run): ...
"""
HERE = r"functions/jobs/one\.py"
Check = Callable[..., None]


@pytest.fixture
def check(tmp_path: Path, built: Path) -> Check:
    """Check these job files in a temporary installation."""

    def check(**files: str) -> None:
        jobs = tmp_path / "functions" / "jobs"
        jobs.mkdir(parents=True)
        for package in (jobs.parent, jobs):
            (package / "__init__.py").touch()
        for name, source in files.items():
            file = jobs / f"{name}.py"
            file.parent.mkdir(exist_ok=True)
            file.write_text(source)
        require_job_files(["functions.jobs"], path=[tmp_path, built], lane_seconds={"default": 25})

    return check


def test_modules_that_a_function_can_import_are_accepted(check: Check) -> None:
    check(one=f"import boto3, ua_parser, aws_lambda_powertools\n{JOB}")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (f"{JOB}import nothing\n", rf"{HERE}, line 6: ModuleNotFoundError: No module named 'nothing'; .*`make lock`"),
        # Installed in the environment of synth, but not in functions.
        ("import click\n", rf"{HERE}, line 1: ModuleNotFoundError: No module named 'click'"),
        ("\nfrom tidemill import nothing\n", rf"{HERE}, line 2: ImportError: cannot import name 'nothing'"),
        ("def one(:\n", rf"{HERE}, line 1: SyntaxError: invalid syntax"),
        (JOB.replace("payload=", "max_attempts=0, payload="), rf"{HERE}, line 4: ValueError: "),
        ("import os\nHOME = os.environ['HOME']\n", rf"{HERE}, line 2: KeyError: 'HOME'"),
        ("raise SystemExit\n", rf"{HERE}, line 1: SystemExit"),
        (
            JOB.replace("@", "class Jobs:\n    @").replace("def", "    def"),
            rf"{HERE}, line 5: job type 'test\.one' is not found, because no name of its module leads to it: bind",
        ),
    ],
)
def test_a_file_that_fails_to_import_is_reported_with_its_line_and_the_error(
    check: Check, source: str, message: str
) -> None:
    with pytest.raises(JobFileError, match=rf"^Python 3\.\d+ cannot load the job types: {message}[^\n]*$"):
        check(one=source)


def test_two_files_that_declare_the_same_name_are_both_reported(check: Check) -> None:
    message = rf"functions/jobs/two\.py, line 4: job type 'test.one' is already declared in {HERE}, line 4$"
    with pytest.raises(JobFileError, match=message):
        check(one=JOB, two=JOB)


@pytest.mark.parametrize(
    ("other", "refused"),
    [("concurrency_per_key=2", True), ("concurrency_per_key=1", False), ("concurrency_per_key=1, per_lane=True", True)],
)
def test_two_shared_limits_of_one_name_are_the_same_limit(check: Check, other: str, *, refused: bool) -> None:
    def source(options: str) -> str:
        limit = f'limit=SharedLimit("payments", {options}), payload='
        return JOB.replace("import job_type", "import SharedLimit, job_type").replace("payload=", limit)

    files = {"one": source("concurrency_per_key=1"), "two": source(other).replace("test.one", "test.two")}
    differs = r"two\.py, line 4: the shared limit 'payments' of 'test\.two' differs from that of 'test\.one'"
    message = rf"{differs} in {HERE}, line 4: declare it once"
    with pytest.raises(JobFileError, match=message) if refused else nullcontext():
        check(**files)


def test_a_shared_limit_beside_an_own_one_is_reported_with_its_line(check: Check) -> None:
    limit = 'limit=SharedLimit("payments", concurrency_per_key=1), per_lane=True, payload='
    source = JOB.replace("import job_type", "import SharedLimit, job_type").replace("payload=", limit)
    with pytest.raises(
        JobFileError, match=rf"{HERE}, line 4: DeclarationError: the type has the shared limit 'payments'"
    ):
        check(one=source)


def test_a_type_that_asks_for_more_time_than_its_lane_allows_is_refused(check: Check) -> None:
    message = rf"{HERE}, line 4: timeout_seconds of 'test\.one' is 25\.5, and lane default allows 25: lower it"
    with pytest.raises(JobFileError, match=message):
        check(one=JOB.replace("payload=", "timeout_seconds=25.5, payload="))


def test_a_type_may_use_all_the_time_of_its_lane(check: Check) -> None:
    check(one=JOB.replace("payload=", "timeout_seconds=25, payload="))


def test_a_broken_file_of_a_sub_package_is_reported(check: Check) -> None:
    with pytest.raises(JobFileError, match=r"functions/jobs/mail/one\.py, line 1: NameError"):
        check(**{"mail/__init__": "", "mail/one": "nothing\n"})


def test_a_folder_of_job_files_without_its_init_file_is_reported(check: Check) -> None:
    with pytest.raises(JobFileError, match=r"functions/jobs/mail has no __init__\.py, .*: add one$"):
        check(**{"mail/one": JOB})


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("functions/jobs/broken.py", r"functions/jobs/broken\.py, line 1: SyntaxError: "),
        ("shared/tidemill/entrypoints/query.py", r"tidemill/entrypoints/query\.py, line 1: SyntaxError: "),
    ],
)
def test_a_broken_file_stops_the_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, built: Path, path: str, message: str
) -> None:
    for folder in ("functions", "shared"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    shutil.copyfile(ROOT / "pyproject.toml", tmp_path / "pyproject.toml")
    (tmp_path / path).write_text("def broken(:\n")
    (tmp_path / "packages").symlink_to(built.parent.parent / "packages")
    monkeypatch.setattr(asset, "ENGINE", tmp_path / "shared" / "tidemill")

    with pytest.raises(SynthError, match=message):
        asset.build(STAGES["local"](), asset.AppCode(root=tmp_path), into=tmp_path)
    assert not list((tmp_path / "asset").iterdir())
