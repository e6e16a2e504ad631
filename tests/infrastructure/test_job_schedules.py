"""Parsing the source finds the same periodic types as importing it, and an unreadable schedule raises."""

from pathlib import Path

import pytest

from stacks.composition import ROOT
from stacks.stages import STAGES
from tidemill.cdk.job_schedules import Periodic, ScheduleError, any_grouped, periodic, type_names
from tidemill.system import job_type_loader

PACKAGES = STAGES["local"]().job_packages
HOURLY = 'from tidemill import job_type\n@job_type("a.b", payload=P, schedule="rate(1 hour)")\ndef handle(): ...\n'


def _declared(tmp_path: Path, source: str, name: str = "one.py") -> list[Periodic]:
    path = tmp_path / "functions" / "jobs" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source)
    return periodic(["functions.jobs"], root=tmp_path)


def _scheduled(expression: str) -> str:
    return HOURLY.replace("rate(1 hour)", expression)


def test_the_source_has_the_same_schedules_as_the_running_code() -> None:
    known = job_type_loader.load(PACKAGES)
    running = {Periodic(name, schedule) for name in known.names() if (schedule := known.get(name).schedule)}
    assert set(periodic(PACKAGES, root=ROOT)) == running
    assert running


def test_the_source_has_the_same_types_as_the_running_code() -> None:
    assert sorted(type_names(PACKAGES, root=ROOT)) == sorted(job_type_loader.load(PACKAGES).names())


@pytest.mark.parametrize("constant", ["NAME = 'a.b'\n", "NAME: Final = 'a.b'\n", "from app.names import A as NAME\n"])
def test_the_name_of_a_type_may_be_a_constant(tmp_path: Path, constant: str) -> None:
    (tmp_path / "shared" / "app").mkdir(parents=True)
    (tmp_path / "shared" / "app" / "names.py").write_text("A = 'a.b'\n")
    source = "from tidemill import job_type\n" + constant + "@job_type(NAME, payload=P)\ndef handle(): ...\n"
    assert _declared(tmp_path, source) == []
    assert type_names(["functions.jobs"], root=tmp_path) == ["a.b"]


@pytest.mark.parametrize("constant", ["", "from elsewhere import NAME\n", "NAME = f()\n"])
def test_a_type_that_may_have_metrics_needs_a_name_that_synth_can_read(tmp_path: Path, constant: str) -> None:
    source = constant + "from tidemill import job_type\n@job_type(NAME, payload=P)\ndef handle(): ...\n"
    assert _declared(tmp_path, source) == []
    with pytest.raises(
        ScheduleError, match=r"one\.py, line \d: write the name .*metrics_by_type.* as a string literal"
    ):
        type_names(["functions.jobs"], root=tmp_path)


@pytest.mark.parametrize(
    ("options", "grouped"), [("", False), ("commit='single'", False), ("commit='grouped', max_attempts=3", True)]
)
def test_synth_knows_whether_a_type_has_grouped_commit(tmp_path: Path, options: str, grouped: bool) -> None:
    source = f"from tidemill import job_type\n@job_type('a.b', payload=P, {options})\ndef handle(): ...\n"
    assert _declared(tmp_path, source) == []
    assert any_grouped(["functions.jobs"], root=tmp_path) is grouped


def test_grouped_commit_must_be_written_as_a_literal(tmp_path: Path) -> None:
    source = (
        "from tidemill import job_type\nHOW = 'grouped'\n@job_type('a.b', payload=P, commit=HOW)\ndef handle(): ...\n"
    )
    assert _declared(tmp_path, source) == []
    with pytest.raises(ScheduleError, match=r"one\.py, line \d: write commit as a string literal"):
        any_grouped(["functions.jobs"], root=tmp_path)


def test_synth_and_the_functions_agree_on_grouped_commit() -> None:
    known = job_type_loader.load(PACKAGES)
    assert any_grouped(PACKAGES, root=ROOT) == any(known.get(name).grouped for name in known.names()) is True


def test_every_periodic_type_accepts_the_empty_payload_of_the_scheduler() -> None:
    known = job_type_loader.load(PACKAGES)
    for each in periodic(PACKAGES, root=ROOT):
        known.get(each.type).parse("{}")


def test_a_schedule_is_read_without_importing_anything(tmp_path: Path) -> None:
    source = "raise SystemExit\nimport not_installed\n" + HOURLY
    assert _declared(tmp_path, source) == [Periodic("a.b", "rate(1 hour)")]


@pytest.mark.parametrize(
    "source",
    [
        HOURLY.replace("import job_type\n", "import job_type as declare\n").replace("@job_type", "@declare"),
        HOURLY.replace("from tidemill import job_type", "from shared import jobs").replace("@job", "@jobs.job"),
        HOURLY.replace('"a.b"', 'name="a.b"'),
        "from tidemill import job_type\ndeclared = job_type('a.b', payload=P, schedule='rate(1 hour)')(handle)\n",
    ],
    ids=["renamed", "by its module", "name by keyword", "without an at sign"],
)
def test_every_form_of_a_declaration_is_found(tmp_path: Path, source: str) -> None:
    assert _declared(tmp_path, source) == [Periodic("a.b", "rate(1 hour)")]


@pytest.mark.parametrize(
    "source",
    [
        "from tidemill import job_type\n@job_type(NAME, payload=P)\ndef handle(): ...\n",
        HOURLY.replace('"rate(1 hour)"', "None"),
        "from elsewhere import job_type\n@job_type('a.b', schedule='whenever')\ndef handle(): ...\n",
    ],
    ids=["no schedule", "None", "another library's"],
)
def test_a_type_without_a_schedule_is_not_periodic(tmp_path: Path, source: str) -> None:
    assert _declared(tmp_path, source) == []


@pytest.mark.parametrize("file", ["__init__.py", "below/__init__.py", "below/deeper.py"])
def test_packages_and_the_modules_of_sub_packages_are_read(tmp_path: Path, file: str) -> None:
    assert _declared(tmp_path, HOURLY, file) == [Periodic("a.b", "rate(1 hour)")]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (HOURLY.replace('"a.b"', "NAME"), r"functions/jobs/one\.py, line 2: write the name .* as a string literal"),
        (HOURLY.replace('"a.b", ', ""), "line 2: write the name"),
        (HOURLY.replace('"rate(1 hour)"', "HOURLY"), "line 2: write schedule of a periodic type as a string literal"),
        (HOURLY.replace('"rate(1 hour)"', 'f"rate({n} hours)"'), "line 2: write schedule"),
        (HOURLY.replace('schedule="rate(1 hour)"', "**options"), r"line 2: write out the options of job_type"),
        ("def broken(:\n", r"functions/jobs/one\.py is not valid Python"),
        (HOURLY + HOURLY, "job type 'a.b' is declared twice: rename one of them"),
    ],
)
def test_an_unreadable_declaration_is_reported_with_file_and_line(tmp_path: Path, source: str, message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        _declared(tmp_path, source)


def test_an_expression_that_the_scheduler_would_refuse_raises(tmp_path: Path) -> None:
    with pytest.raises(ScheduleError, match=r"line 2: invalid schedule .*: the field hours is '24'"):
        _declared(tmp_path, _scheduled("cron(0 24 * * ? *)"))
