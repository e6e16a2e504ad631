"""`versions list` and `versions prune`, which keeps what a rollback needs and records what it deletes."""

import json

import pytest

from tests.integration.cli.conftest import Cloud, run
from tests.integration.cli.test_rollback import audited, deploy, functions, versions
from tests.integration.cli.versioned_functions import VersionedFunctions

__all__ = ["functions"]


@pytest.fixture
def many(cloud: Cloud, functions: VersionedFunctions) -> VersionedFunctions:
    """Each function has five versions."""
    for codes in functions.codes.values():
        codes += ["3", "4", "5"]
    deploy(cloud, functions)
    return functions


def test_the_deployed_version_and_the_newest_older_ones_stay(many: VersionedFunctions) -> None:
    result = run("versions", "prune", "--keep", "2", "--yes", "--json")
    assert json.loads(result.stdout) == {"dry_run": False, "old_versions": 8, "deleted": 8}
    assert many.deleted == {name: [1, 2] for name in many.codes}
    (entry,) = audited()
    assert (entry["command"], entry["counts"]) == ("versions prune", {"versions": 8})


def test_the_live_version_stays(many: VersionedFunctions) -> None:
    run("rollback", "work", "--to", "old", "--yes")
    run("versions", "prune", "--keep", "1", "--yes")
    assert many.deleted["f-work"] == [2, 3]
    assert many.deleted["f-submit"] == [1, 2, 3]
    assert versions(many)["f-work"] == 1


def test_a_rollback_works_after_it(many: VersionedFunctions) -> None:
    run("versions", "prune", "--keep", "1", "--yes")
    run("rollback", "--yes")
    assert set(versions(many).values()) == {4}


def test_it_changes_nothing_unless_it_is_asked_to(many: VersionedFunctions, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("versions", "prune", "--keep", "2", "--dry-run").stdout == "8 old versions to delete.\n"
    assert run("versions", "prune", "--yes").stdout == "0 versions deleted.\n"
    assert run("versions", "prune").exit_code == 2
    monkeypatch.setattr("tidemill.cli.confirm.stdin_is_terminal", lambda: True)
    assert "Delete them? [y/N]" in run("versions", "prune", "--keep", "2", typed="n\n").stderr
    assert (many.deleted, audited()) == ({}, [])


def test_the_versions_are_listed_with_their_code_and_the_one_that_runs(functions: VersionedFunctions) -> None:
    run("rollback", "work", "--yes")
    title, *lines = run("versions", "list", "publish", "work").stdout.splitlines()
    assert title.split() == ["FUNCTION", "VERSION", "CODE", "PUBLISHED"]
    assert [line.split()[:3] for line in lines] == [
        ["publish", "2", "new"],
        ["publish", "1", "old"],
        ["work", "2", "new"],
        ["work", "1", "old"],
    ]
    assert [line.rpartition("00Z")[2].strip() for line in lines] == ["runs, deployed", "", "deployed", "runs"]
    shown = [json.loads(line) for line in run("versions", "list", "work", "--json").stdout.splitlines()]
    assert [(each["version"], each["code"], each["runs"], each["deployed"]) for each in shown] == [
        (2, "new", False, True),
        (1, "old", True, False),
    ]
