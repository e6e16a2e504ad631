"""Job files are tried before anything is deployed, with nothing at hand but what a function has."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from stacks.composition import ROOT
from stacks.stages import STAGES
from tidemill.cdk import asset
from tidemill.cdk.config import SynthError
from tidemill.cdk.job_file_check import JobFileError, require_job_files

JOB = """from pydantic import BaseModel
from tidemill import job_type

@job_type("test.one", payload=BaseModel)
def one(payload, run): ...
"""
HERE = r"functions/jobs/one\.py"
Try = Callable[..., None]


@pytest.fixture
def try_(tmp_path: Path, built: Path) -> Try:
    """Try these job files in an installation of their own."""

    def try_(**files: str) -> None:
        jobs = tmp_path / "functions" / "jobs"
        jobs.mkdir(parents=True)
        for package in (jobs.parent, jobs):
            (package / "__init__.py").touch()
        for name, source in files.items():
            (jobs / f"{name}.py").write_text(source)
        require_job_files(["functions.jobs"], path=[tmp_path, built])

    return try_


def test_what_a_function_could_import_is_taken(try_: Try) -> None:
    try_(one=f"import boto3, ua_parser, aws_lambda_powertools\n{JOB}")


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (f"{JOB}import nothing\n", rf"{HERE}, line 6: ModuleNotFoundError: No module named 'nothing'; .*`make lock`"),
        # In the environment that synthesises, and in no function.
        ("import click\n", rf"{HERE}, line 1: ModuleNotFoundError: No module named 'click'"),
        ("\nfrom tidemill import nothing\n", rf"{HERE}, line 2: ImportError: cannot import name 'nothing'"),
        ("def one(:\n", rf"{HERE}, line 1: SyntaxError: invalid syntax"),
        (JOB.replace("payload=", "max_attempts=0, payload="), rf"{HERE}, line 4: ValueError: "),
        ("import os\nHOME = os.environ['HOME']\n", rf"{HERE}, line 2: KeyError: 'HOME'"),
        ("raise SystemExit\n", rf"{HERE}, line 1: SystemExit"),
    ],
)
def test_a_file_that_cannot_be_imported_is_told_with_its_line_and_why(try_: Try, source: str, says: str) -> None:
    with pytest.raises(JobFileError, match=rf"^Python 3\.\d+ cannot load the job types: {says}[^\n]*$"):
        try_(one=source)


def test_two_files_that_declare_one_name_are_both_told(try_: Try) -> None:
    says = rf"functions/jobs/two\.py, line 4: job type 'test.one' is already declared in {HERE}, line 4$"
    with pytest.raises(JobFileError, match=says):
        try_(one=JOB, two=JOB)


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("functions/jobs/broken.py", r"functions/jobs/broken\.py, line 1: SyntaxError: "),
        ("shared/tidemill/entrypoints/query.py", r"tidemill/entrypoints/query\.py, line 1: SyntaxError: "),
    ],
)
def test_nothing_is_built_of_files_that_cannot_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, built: Path, path: str, says: str
) -> None:
    for folder in ("functions", "shared"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    shutil.copyfile(ROOT / "pyproject.toml", tmp_path / "pyproject.toml")
    (tmp_path / path).write_text("def broken(:\n")
    (tmp_path / "packages").symlink_to(built.parent.parent / "packages")
    monkeypatch.setattr(asset, "ENGINE", tmp_path / "shared" / "tidemill")

    with pytest.raises(SynthError, match=says):
        asset.build(STAGES["local"](), asset.AppCode(root=tmp_path), into=tmp_path)
    assert not list((tmp_path / "asset").iterdir())
