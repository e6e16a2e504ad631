"""How job types are declared and found."""

import importlib
import json
import re
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field, ValidationError

from tests.support.builders import a_run
from tidemill import Done, PermanentJobError, Run, job_type
from tidemill.declarations.payload_model import faults
from tidemill.domain.errors import (
    DeclarationError,
    DuplicateJobTypeError,
    InvalidPayloadError,
    JobFileError,
    UnknownJobTypeError,
    UnloadedJobTypeError,
)
from tidemill.domain.errors import Fault as PayloadFault
from tidemill.names import Lane
from tidemill.system.job_type_loader import load, load_sound
from tidemill.testing import run_job

MODULE = """
from pydantic import BaseModel
from tidemill import job_type

class Payload(BaseModel):
    n: int

@job_type({name!r}, payload=Payload)
def {function}(payload, run):
    return payload.n
"""


class Address(BaseModel):
    street: str
    number: int = Field(alias="no/~", ge=1)


class Nothing(BaseModel):
    pass


class Person(BaseModel):
    name: str
    addresses: list[Address] = []


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new package that the test can import."""
    folder = tmp_path / f"jobs_of_{tmp_path.name}"
    folder.mkdir()
    (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    return folder


def _write(package: Path, module: str, name: str) -> None:
    (package / f"{module}.py").write_text(MODULE.format(name=name, function=module))


def test_a_declaration_makes_a_type_with_its_lane_policy_and_model() -> None:
    @job_type("test.greet", payload=Person, max_attempts=3, backoff_seconds=1, backoff_cap_seconds=60)
    def greet(payload: Person, run: Run) -> Any:
        return Done(result=f"{payload.name}, attempt {run.attempt}")

    assert (greet.name, greet.lane) == ("test.greet", Lane.DEFAULT)
    assert (greet.retry.max_attempts, greet.retry.backoff_seconds, greet.retry.backoff_cap_seconds) == (3, 1, 60)
    assert greet(greet.parse(json.dumps({"name": "Ada"})), a_run()) == Done(result="Ada, attempt 1")


def test_an_invalid_payload_is_refused_with_the_pointer_of_each_fault() -> None:
    parse = job_type("test.greet", payload=Person)(lambda _payload, _run: None).parse

    with pytest.raises(InvalidPayloadError) as refused:
        parse(json.dumps({"addresses": [{"street": 1, "no/~": 0}]}))

    assert [fault.path for fault in refused.value.faults] == [
        "/payload/name",
        "/payload/addresses/0/street",
        "/payload/addresses/0/no~1~0",
    ]
    assert "/payload/name: Field required" in str(refused.value)


def test_a_fault_of_the_whole_payload_has_an_empty_pointer() -> None:
    with pytest.raises(ValidationError) as refused:
        Person.model_validate(1)

    assert [fault.path for fault in faults(refused.value)] == [""]
    assert isinstance(faults(refused.value)[0], PayloadFault)


def test_every_type_in_a_module_of_the_packages_is_found(package: Path) -> None:
    _write(package, "one", "test.one")
    _write(package, "two", "test.two")
    (package / "imports.py").write_text(f"from {package.name}.one import one\nONE = one\n")

    known = load([package.name, "functions.demo_jobs"])

    assert {"test.one", "test.two", "demo.flaky"} <= set(known.names())
    assert known.get("test.two").name == "test.two"


def test_every_type_in_a_sub_package_is_found(package: Path) -> None:
    inner = package / "mail" / "letters"
    inner.mkdir(parents=True)
    for folder in (inner.parent, inner):
        (folder / "__init__.py").touch()
    _write(inner.parent, "one", "test.one")
    _write(inner, "two", "test.two")

    assert load([package.name]).names() == ("test.one", "test.two")


def test_a_type_in_the_file_of_a_package_is_found(package: Path) -> None:
    inner = package / "mail"
    inner.mkdir()
    _write(package, "__init__", "test.one")
    _write(inner, "__init__", "test.two")

    assert load([package.name]).names() == ("test.one", "test.two")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"lane": "urgent"}, "lane is 'urgent'; it must be one of 'critical', 'default', 'bulk'"),
        ({"lane": None}, "lane is None; "),
        ({"on_dead": "stop"}, "on_dead is 'stop'; it must be one of 'skip', 'block'"),
        ({"payload": dict}, "payload is <class 'dict'>; it must be a subclass of pydantic.BaseModel"),
        ({"payload": Person(name="Ada")}, "it must be a subclass of pydantic.BaseModel"),
        ({"name": "Mail"}, "the name of the job type is 'Mail'; use words of lower-case letters"),
        ({"name": "mail welcome"}, "use words of lower-case letters"),
        ({"name": "mail.welcome\n"}, "use words of lower-case letters"),
        ({"name": "mail..welcome"}, "use words of lower-case letters"),
        ({"name": ""}, "use words of lower-case letters"),
        ({"name": "m" * 65}, "of at most 64 characters"),
        ({"name": 7}, "the name of the job type is 7"),
        ({"max_attempts": "5"}, "max_attempts is '5'; it must be a whole number"),
        ({"max_attempts": 2.5}, "max_attempts is 2.5; it must be a whole number"),
        ({"max_attempts": True}, "max_attempts is True; it must be a whole number"),
        ({"max_attempts": 26}, "max_attempts is 26; it must lie within 1 and 25"),
        ({"max_hops": "many"}, "max_hops is 'many'"),
        ({"backoff_seconds": "2"}, "backoff_seconds is '2'; it must be a number"),
        ({"backoff_cap_seconds": float("nan")}, "backoff_cap_seconds is nan; it must be a number"),
        ({"timeout_seconds": 0}, "timeout_seconds is 0; it must be positive"),
        ({"timeout_seconds": float("inf")}, "timeout_seconds is inf; it must be a number"),
        ({"importance": "low"}, "importance is 'low'; it must be one of 'normal', 'deferrable', 'sheddable'"),
        ({"max_age_seconds": 0}, "max_age_seconds is 0; it must be positive"),
        ({"retention_days": 367}, "retention_days is 367; it must be positive and at most 366"),
        ({"retention_days": 1e-12}, "retention_days is 1e-12; it must be at least 0.000694444"),
        ({"unique_seconds": 0.5}, "unique_seconds is 0.5; it must be at least 1"),
        ({"unique_seconds": -1}, "unique_seconds is -1"),
        ({"concurrency_per_key": "1"}, "concurrency_per_key is '1'; it must be a whole number"),
        ({"rate_per_key": 5}, "rate_per_key is 5; it must be a Rate"),
        ({"across_tenants": "no", "concurrency_per_key": 1}, "across_tenants is 'no'; it must be True or False"),
        ({"key": "address", "concurrency_per_key": 1}, "key is 'address'; it must be a function"),
        ({"key": lambda: "", "concurrency_per_key": 1}, "key `<lambda>` cannot be called with (payload)"),
        ({"schedule": 60}, "schedule is 60; it must be a str"),
        ({"schedule": "cron(0 24 * * ? *)"}, "invalid schedule 'cron(0 24 * * ? *)': the field hours is '24'"),
        ({"catch_up": False}, "catch_up needs a schedule"),
        ({"commit": "together"}, "commit is 'together'; it must be one of 'single', 'grouped'"),
        ({"commit": "grouped", "max_attempts": 2}, "max_attempts is 2; it must be at least 3"),
        ({"commit": "grouped", "concurrency_per_key": 1}, "a limit needs calls for each run"),
        ({"commit": "grouped", "schedule": "rate(1 hour)", "payload": Nothing}, "a schedule submits one job at a time"),
        ({"commit": "grouped", "on_dead": "block"}, "only jobs of a group can block"),
        ({"catch_up": 1}, "catch_up is 1; it must be True or False"),
        ({"schedule": "rate(1 hour)"}, "Person refuses it: give a default to name"),
    ],
)
def test_a_wrong_option_is_refused(wrong: dict[str, Any], message: str) -> None:
    options: dict[str, Any] = {"name": "test.greet", "payload": Person, **wrong}

    with pytest.raises(ValueError, match=re.escape(message)):
        job_type(options.pop("name"), **options)


def test_a_lane_may_be_spelled() -> None:
    spelled: Any = "bulk"

    assert job_type("test.greet", payload=Person, lane=spelled)(lambda _payload, _run: None).lane is Lane.BULK


def test_a_name_of_a_built_in_type_is_refused() -> None:
    declare = job_type("tidemill.report", payload=Person)

    with pytest.raises(ValueError, match=r"names with 'tidemill\.' are those of built-in types: begin it with another"):
        declare(lambda _payload, _run: None)


async def _async(payload: Person, run: Run) -> None: ...


class _AsyncObject:
    async def __call__(self, payload: Person, run: Run) -> None: ...


def _generator(payload: Person, run: Run) -> Iterator[int]:
    yield 1


class _GeneratingObject:
    def __call__(self, payload: Person, run: Run) -> Iterator[int]:
        yield 1


def _without_run(payload: Person) -> None: ...


def _three(payload: Person, run: Run, more: int) -> None: ...


def _named_only(*, payload: Person, run: Run) -> None: ...


@pytest.mark.parametrize(
    ("handler", "message"),
    [
        (_async, "the handler `_async` is declared with `async def`; declare it with `def`"),
        (_AsyncObject(), "the handler is declared with `async def`; declare it with `def`"),
        (partial(_async), "the handler is declared with `async def`; declare it with `def`"),
        (_generator, "the handler `_generator` uses `yield`"),
        (_GeneratingObject(), "the handler uses `yield`"),
        (
            _without_run,
            "the handler `_without_run` cannot be called with (payload, run): too many positional arguments",
        ),
        (_three, "cannot be called with (payload, run): missing a required argument: 'more'"),
        (_named_only, "cannot be called with (payload, run)"),
        (max, "the handler `max` is built in, and Python does not say how to call it: call it in a function of (pay"),
        ("greet", "the handler is 'greet'; it must be a function"),
    ],
)
def test_a_wrong_handler_is_refused(handler: Any, message: str) -> None:
    with pytest.raises(DeclarationError, match=re.escape(message)):
        job_type("test.greet", payload=Person)(handler)


def test_a_wrong_declaration_is_reported_with_its_file_and_line(package: Path) -> None:
    (package / "one.py").write_text(
        MODULE.format(name="test.one", function="one").replace("=Payload", "=Payload, lane='urgent'")
    )

    with pytest.raises(JobFileError, match=rf"^{package.name}/one\.py, line 8: DeclarationError: lane is 'urgent'; "):
        load([package.name])


def test_two_types_with_one_name_are_refused(package: Path) -> None:
    _write(package, "one", "test.same")
    _write(package, "two", "test.same")

    there = rf"{package.name}/two\.py, line 8"
    with pytest.raises(
        DuplicateJobTypeError, match=rf"{there}: job type 'test\.same' .* in {package.name}/one\.py, line 8"
    ):
        load([package.name])


def test_a_function_that_would_hide_the_type_of_another_is_refused(package: Path) -> None:
    (package / "tests.py").write_text(
        "".join(MODULE.format(name=f"test.{n}", function="handle") for n in ("one", "two"))
    )

    message = (
        r"tests\.py, line 18: DeclarationError: the function handle already declares job type 'test\.one', which "
        r"'test\.two' would replace: give this function another name$"
    )
    with pytest.raises(JobFileError, match=message):
        load([package.name])


def test_a_module_may_be_imported_again(package: Path) -> None:
    _write(package, "one", "test.one")
    load([package.name])

    importlib.reload(sys.modules[f"{package.name}.one"])

    assert load([package.name]).names() == ("test.one",)


def test_the_error_of_a_module_names_the_line_of_its_package_that_failed(package: Path) -> None:
    (package / "helper.py").write_text("\nVALUE = {}['rate']\n")
    (package / "one.py").write_text(f"from {package.name}.helper import VALUE\n")

    with pytest.raises(JobFileError, match=rf"^{package.name}/helper\.py, line 2: KeyError: 'rate'$"):
        load([package.name])


@pytest.mark.parametrize("text", ["raise SystemExit(1)", "def (", "import no_such_module", "1 / 0"])
def test_a_broken_module_leaves_out_its_own_types_alone(package: Path, text: str) -> None:
    _write(package, "one", "test.one")
    (package / "two.py").write_text(f"{text}\n")
    _write(package, "zoo", "test.three")

    found = load_sound([package.name])

    assert found.names() == ("test.one", "test.three")
    (fault,) = found.faults
    assert str(fault).startswith(f"{package.name}/two.py, line 1: ")
    assert [found.lacks(name) for name in ("test.one", "test.other")] == [False, True]
    with pytest.raises(UnloadedJobTypeError, match=rf"^job type 'test\.other' is not loaded: {package.name}/two\.py"):
        found.get("test.other")


def test_a_broken_package_leaves_out_its_modules_and_is_named_once(package: Path) -> None:
    _write(package, "one", "test.one")
    (package / "below").mkdir()
    (package / "below" / "__init__.py").write_text("1 / 0\n")
    _write(package / "below", "two", "test.two")

    found = load_sound([package.name, "no_such_package"])

    assert found.names() == ("test.one",)
    assert [str(fault).partition(":")[0] for fault in found.faults] == [
        f"{package.name}/below/__init__.py, line 1",
        "no_such_package",
    ]


def test_a_name_that_two_modules_declare_is_left_out_and_no_other(package: Path) -> None:
    for file, name in (("one", "test.same"), ("two", "test.same"), ("three", "test.three")):
        _write(package, file, name)

    found = load_sound([package.name])

    assert found.names() == ("test.three",)
    assert [found.lacks(name) for name in ("test.same", "test.other")] == [True, False]
    with pytest.raises(UnloadedJobTypeError, match=r"test\.same"):
        found.get("test.same")
    with pytest.raises(UnknownJobTypeError, match=r"unknown job type 'test\.other'"):
        found.get("test.other")


def test_a_package_without_types_has_none(package: Path) -> None:
    with pytest.raises(UnknownJobTypeError, match=r"unknown job type 'test\.one'; known types: none"):
        load([package.name]).get("test.one")


def test_a_missing_package_is_an_error() -> None:
    assert "no_such_package" not in sys.modules

    with pytest.raises(JobFileError, match="no_such_package: ModuleNotFoundError: "):
        load(["no_such_package"])


@pytest.mark.parametrize(("attempt", "succeeds"), [(1, False), (2, False), (3, True)])
def test_the_flaky_type_fails_as_often_as_its_payload_says(attempt: int, succeeds: bool) -> None:
    flaky = load(["functions.demo_jobs"]).get("demo.flaky")

    if succeeds:
        assert flaky(flaky.parse(json.dumps({"failures": 2})), a_run(attempt)) == {"attempts": 3}
    else:
        with pytest.raises(Exception, match="failing 2 times"):
            flaky(flaky.parse(json.dumps({"failures": 2})), a_run(attempt))


@pytest.mark.parametrize(("strained", "result"), [(0, "whole"), (1, "rough")])
def test_a_preview_is_rough_under_strain(strained: int, result: str) -> None:
    preview = load(["functions.demo_jobs"]).get("demo.preview")

    assert run_job(preview, {"seconds": 0}, strained=strained).job.result == f'"{result}"'


def test_the_other_types_of_the_demo_do_as_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    known = load(["functions.demo_jobs"])
    broken, poison, slow = (known.get(f"demo.{name}") for name in ("broken", "poison", "slow"))

    with pytest.raises(LookupError):
        broken(broken.parse(json.dumps({"order": 7})), a_run())
    with pytest.raises(PermanentJobError, match="cannot digest 'x'"):
        poison(poison.parse(json.dumps({"body": "x"})), a_run())
    monkeypatch.setenv("TIDEMILL_DEMO_FIXED", "yes")
    assert broken(broken.parse(json.dumps({"order": 7})), a_run()) == {"order": 7, "attempts": 1}
    assert poison(poison.parse(json.dumps({"body": "x"})), a_run()) == {"set aside": "x"}
    assert slow(slow.parse(json.dumps({"seconds": 0})), a_run()) == {"attempts": 1}
    assert slow(slow.parse(json.dumps({"seconds": 1.5})), a_run(attempt=2)) == {"attempts": 2}
