"""Synth imports the job files with only the modules that a function has, and deploys what they declare."""

import shutil
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from stacks.composition import ROOT
from stacks.stages import STAGES
from tidemill.cdk.functions import asset
from tidemill.cdk.functions.job_manifest import DeclaredSource, DeclaredType, JobFileError, JobManifest, read, write
from tidemill.cdk.lanes.lane_config import LaneConfig
from tidemill.cdk.synth_errors import SynthError
from tidemill.names import Lane

JOB = """from pydantic import BaseModel
from tidemill import job_type

@job_type("test.one", payload=BaseModel)
def one(payload, run): ...
"""
HERE = r"functions/jobs/one\.py"
HOURLY = JOB.replace("payload=BaseModel", "payload=Nothing, schedule='rate(1 hour)'").replace(
    "@", "class Nothing(BaseModel): ...\n@"
)
Check = Callable[..., JobManifest]


@pytest.fixture
def check(tmp_path: Path, built: Path) -> Check:
    """The manifest of these job files in a temporary installation, and of a module of `shared`."""

    def check(shared: str = "", **files: str) -> JobManifest:
        jobs = tmp_path / "functions" / "jobs"
        jobs.mkdir(parents=True)
        for package in (jobs.parent, jobs):
            (package / "__init__.py").touch()
        for name, source in files.items():
            file = jobs / f"{name}.py"
            file.parent.mkdir(exist_ok=True)
            file.write_text(source)
        (tmp_path / "app_names.py").write_text(shared)
        write(["functions.jobs"], path=[tmp_path, built], into=tmp_path)
        return read(str(tmp_path))

    return check


def test_modules_that_a_function_can_import_are_accepted(check: Check) -> None:
    check(one=f"import boto3, ua_parser, aws_lambda_powertools\nsns = boto3.client('sns')\n{JOB}")


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
        # Installed beside boto3 in the environment of synth, and in no function.
        ("import aws_cdk\n", rf"{HERE}, line 1: ModuleNotFoundError: No module named 'aws_cdk'"),
        ("import jsii\n", rf"{HERE}, line 1: ModuleNotFoundError: No module named 'jsii'"),
        # It must not depend on the machine: its network, its profiles, its account.
        (
            "import socket\nsocket.create_connection(('127.0.0.1', 9))\n",
            rf"{HERE}, line 2: RuntimeError: .* the network",
        ),
        (
            "import boto3\nboto3.client('sts', region_name='eu-west-1').get_caller_identity()\n",
            rf"{HERE}, line 2: NoCredentialsError: ",
        ),
        ("import os\nos._exit(0)\n", "exit code 0"),
        (JOB.replace("payload=", "schedule='cron(0 24 * * ? *)', payload="), rf"{HERE}, line 4: .* the field hours is"),
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


@pytest.mark.parametrize(("timeout", "refused"), [("25.5", True), ("25", False)])
def test_a_type_may_use_all_the_time_of_its_lane_and_no_more(check: Check, timeout: str, *, refused: bool) -> None:
    """Also where an asset is used again, since the time of a lane is not part of it."""
    manifest = check(one=JOB.replace("payload=", f"timeout_seconds={timeout}, payload="))
    message = rf"{HERE}, line 4: timeout_seconds of 'test\.one' is 25\.5, and lane default allows 25: lower it"
    lane = LaneConfig(name=Lane.DEFAULT, function_timeout_seconds=30, job_timeout_seconds=25, max_concurrency=2)
    with pytest.raises(JobFileError, match=message) if refused else nullcontext():
        manifest.require_lane_time([lane])


@pytest.mark.parametrize(
    "files",
    [
        {"one": HOURLY},
        {"one": HOURLY.replace("import job_type", "import job_type as declare").replace("@job_type", "@declare")},
        {"one": HOURLY.replace("from tidemill import job_type", "import tidemill").replace("@", "@tidemill.")},
        {
            "one": HOURLY.replace("@job_type", "@hourly")
            .replace(", schedule='rate(1 hour)'", "")
            .replace("import job_type", "import *\nfrom functools import partial")
            .replace("\n@", "\nhourly = partial(job_type, schedule='rate(1 hour)')\n@"),
        },
        {
            "shared": "from tidemill import job_type\nNAME = 'test.one'\nHOURS = 1\n"
            "def hourly(name, **options):\n    return job_type(name, schedule=f'rate({HOURS} hour)', **options)\n",
            "one": HOURLY.replace("from tidemill import job_type", "from app_names import *")
            .replace("job_type", "hourly")
            .replace('"test.one"', "NAME")
            .replace(", schedule='rate(1 hour)'", ""),
        },
        {"one": HOURLY.replace("from tidemill import", "from tidemill.declarations.job_type_decorator import")},
        {"mail/__init__": HOURLY},
        {"mail/__init__": "", "mail/two": "from functions.jobs.one import *", "one": HOURLY},
    ],
    ids=["plain", "alias", "by its module", "partial", "helper in shared", "import path", "package", "import *"],
)
def test_a_type_has_its_schedule_however_it_is_declared(check: Check, files: dict[str, str]) -> None:
    manifest = check(**files)

    assert [each.name for each in manifest.types] == ["test.one"]
    assert manifest.schedules == {"test.one": "rate(1 hour)"}


def test_what_is_not_declared_on_import_is_not_deployed(check: Check) -> None:
    manifest = check(one=HOURLY.replace("@job_type", "if False:\n @job_type").replace("\ndef", "\n def"), two="")

    assert (manifest.types, manifest.sources, manifest.schedules) == ([], [], {})


def test_the_manifest_has_the_options_that_templates_need(check: Check) -> None:
    source = "from tidemill import S3Record, event_source, event_type\n" + JOB.replace(
        "payload=", "lane='bulk', commit='grouped', timeout_seconds=2, payload="
    )
    source += """
class Fact(BaseModel): ...
fact = event_type("fact.happened", data=Fact)
@event_source("files", publishes="fact.happened")
def files(record: "S3Record") -> Fact: ...
"""

    manifest = check(one=source)

    here = "functions/jobs/one.py, line"
    assert manifest == JobManifest(
        types=[
            DeclaredType(name="test.one", lane="bulk", timeout_seconds=2.0, schedule=None, grouped=True, at=f"{here} 5")
        ],
        sources=[DeclaredSource(name="files", record="S3Record", at=f"{here} 10")],
    )


LATER = """from __future__ import annotations
from typing import TYPE_CHECKING
from pydantic import BaseModel
from tidemill import S3Record, event_source, event_type, job_type
{imported}
    from decimal import Decimal

class Price(BaseModel):
    amount: Decimal

class Order(BaseModel):
    price: Price | None = None

"""
DECLARATIONS = {
    "job type 'test.one'": "@job_type('test.one', payload=Order)\ndef one(payload, run): ...\n",
    "event type 'test.made'": "made = event_type('test.made', data=Order)\n",
    "source 'files'": "class Nothing(BaseModel): ...\nmade = event_type('test.made', data=Nothing)\n"
    "@event_source('files', publishes='test.made')\ndef files(record: S3Record) -> Order: ...\n",
}


@pytest.mark.parametrize("what", DECLARATIONS)
@pytest.mark.parametrize("imported", ["if TYPE_CHECKING:", "if True:"])
def test_a_model_that_cannot_validate_is_refused(check: Check, what: str, imported: str) -> None:
    refused = imported != "if True:"
    message = rf"{HERE}, line 1\d: the model of {what} cannot validate: `Order` is not fully defined"
    with pytest.raises(JobFileError, match=message) if refused else nullcontext():
        check(one=LATER.format(imported=imported) + DECLARATIONS[what])


def test_a_model_may_use_types_of_the_rest_of_its_file_and_need_no_schema(check: Check) -> None:
    source = JOB.replace(
        "@",
        """from typing import Callable
class First(BaseModel):
    second: "Second"
    call: Callable[[], None] = print
@""",
    )
    assert check(one=source.replace("payload=BaseModel", "payload=First") + "class Second(BaseModel): ...\n").types


def test_a_folder_without_a_manifest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        SynthError, match=r"has no tidemill-manifest\.json: build it with tidemill\.cdk\.functions\.asset\.build"
    ):
        read(str(tmp_path))


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
