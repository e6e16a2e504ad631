"""The loader finds what names of a module lead to, and reports every other declaration of its import."""

import sys
from collections.abc import Callable, Iterator
from importlib import import_module, reload
from pathlib import Path

import pytest

from tests.unit.system.test_module_files import MISNAMED, STRAY
from tidemill.application.declarations import declared_by
from tidemill.application.job_types import JobTypes
from tidemill.domain.errors import UnloadedJobTypeError
from tidemill.system.job_type_loader import load_sound

PACKAGE = "jobs_of_the_loader"
IMPORTS = """\
from pydantic import BaseModel
from tidemill import S3Record, consumes, event_source, event_type, job_type

class Nothing(BaseModel): ...
"""
Load = Callable[..., JobTypes]


@pytest.fixture
def loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    """Loads these modules of a package, by name, each after the imports and the model that it needs."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / PACKAGE).mkdir()

    def loaded(**modules: str) -> JobTypes:
        for name, text in {"__init__": "", **modules}.items():
            (tmp_path / PACKAGE / f"{name}.py").write_text(IMPORTS + text)
        return load_sound([PACKAGE])

    yield loaded
    for name in [name for name in sys.modules if name.startswith(PACKAGE)]:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("class Jobs:\n    @job_type('a.one', payload=Nothing)\n    def one(payload, run): ...", 6, "job type 'a.one'"),
        ("ALL = [job_type('a.one', payload=Nothing)(lambda payload, run: 1)]", 5, "job type 'a.one'"),
        (
            "for name in ('one', 'two'):\n    made = job_type(f'a.{name}', payload=Nothing)(lambda payload, run: 1)",
            6,
            "job type 'a.one'",
        ),
        (
            "class Jobs:\n    @consumes('a.done')\n    @job_type('a.one', payload=Nothing)\n    def one(p, run): ...",
            6,
            "job type 'a.one'",
        ),
        (
            "class Sources:\n    @event_source('files', publishes='a.done')\n    def one(record: S3Record): ...",
            6,
            "source 'files'",
        ),
        ("EVENTS = {'a': event_type('a.done', data=Nothing)}", 5, "event type 'a.done'"),
    ],
)
def test_a_declaration_that_no_name_leads_to_is_reported(loaded: Load, text: str, line: int, what: str) -> None:
    for _ in ("the import", "a later load of the same modules"):
        (fault,) = loaded(one=text).faults
        reported = f"{PACKAGE}/one.py, line {line}: {what} is not found, because no name of its module leads to it: "
        assert str(fault) == f"{reported}bind it to a name of the module"


def test_a_lost_type_stops_no_other_one_and_its_jobs_wait(loaded: Load) -> None:
    found = loaded(
        one="ALL = [job_type('a.one', payload=Nothing)(lambda payload, run: 1)]",
        two="two = job_type('a.two', payload=Nothing)(lambda payload, run: 2)",
    )

    assert found.names() == ("a.two",)
    with pytest.raises(UnloadedJobTypeError, match="bind it to a name of the module"):
        found.get("a.one")
    assert not found.lacks("a.three")


@pytest.mark.parametrize(
    "modules",
    [
        {"one": "one = consumes('a.done')(job_type('a.one', payload=Nothing)(lambda payload, run: 1))"},
        {
            "one": "class Jobs:\n    one = job_type('a.one', payload=Nothing)(lambda payload, run: 1)",
            "two": f"from {PACKAGE}.one import Jobs\none = Jobs.one",
        },
        {
            "helper": "def made(name):\n    return job_type(name, payload=Nothing)(lambda payload, run: 1)",
            "one": f"from {PACKAGE}.helper import made\none = made('a.one')",
        },
        {"one": "for name in ['a.one']:\n  globals()[name] = job_type(name, payload=Nothing)(lambda payload, run: 1)"},
    ],
    ids=["with its events", "in another module", "by a helper", "under a made name"],
)
def test_a_declaration_that_a_name_leads_to_is_found(loaded: Load, modules: dict[str, str]) -> None:
    found = loaded(**modules)

    assert (found.names(), found.faults) == (("a.one",), ())


def test_stray_files_are_not_imported(loaded: Load, tmp_path: Path) -> None:
    for file in (*STRAY, *MISNAMED):
        (tmp_path / PACKAGE / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / PACKAGE / file).write_text("raise ValueError")

    found = loaded(one="one = job_type('a.one', payload=Nothing)(lambda payload, run: 1)")

    assert (found.names(), found.faults) == (("a.one",), ())


@pytest.mark.parametrize("init", [True, False])
def test_of_a_module_and_a_folder_of_one_name_the_package_is_imported(loaded: Load, tmp_path: Path, init: bool) -> None:
    (tmp_path / PACKAGE / "mail").mkdir()
    text = "one = job_type('{}', payload=Nothing)(lambda payload, run: 1)"

    found = loaded(mail=text.format("a.module"), **{"mail/__init__": text.format("a.package")} if init else {})

    assert found.names() == (("a.package",) if init else ("a.module",))


def test_a_helper_declares_for_the_module_that_calls_it(loaded: Load) -> None:
    loaded(
        helper="def made(name):\n    return job_type(name, payload=Nothing)(lambda payload, run: 1)",
        one=f"from {PACKAGE}.helper import made\nALL = [made('a.one')]",
    )

    assert [declared.name for declared in declared_by(import_module(f"{PACKAGE}.one"))] == ["a.one"]
    assert not declared_by(import_module(f"{PACKAGE}.helper"))


def test_what_a_function_declares_after_the_import_is_not_of_its_module(loaded: Load) -> None:
    loaded(one="def made():\n    return job_type('a.one', payload=Nothing)(lambda payload, run: 1)")

    import_module(f"{PACKAGE}.one").made()

    assert not loaded().faults


def test_a_module_whose_names_lead_to_its_types_may_be_imported_again(loaded: Load) -> None:
    text = "one = job_type('a.one', payload=Nothing)(lambda payload, run: 1)"
    loaded(one=text)

    reload(sys.modules[f"{PACKAGE}.one"])

    assert not loaded(one=text).faults
