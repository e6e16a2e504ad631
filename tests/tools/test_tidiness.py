"""The repository names no machine and no package mirror, and the check finds each kind of fault."""

from pathlib import Path

import pytest

from tools import tidiness

MACHINE = "/" + "home/somebody/clone"
MIRROR = "index-" + "url = https" + "://mirror.example/simple"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tidiness, "ROOT", tmp_path)
    return tmp_path


def test_the_repository_is_tidy() -> None:
    assert list(tidiness.faults()) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param("long.py", "x = 1\n" * 401, id="too long"),
        pytest.param("README.md", f"see {MACHINE}\n", id="a machine"),
        pytest.param("pip.conf", f"{MIRROR}\n", id="a mirror"),
        pytest.param("requirements.txt", "a==1 @ https" + "://mirror.example/a.whl\n", id="a mirror in a lock"),
    ],
)
def test_a_fault_is_found(root: Path, name: str, text: str) -> None:
    (root / name).write_text(text)
    (fault,) = tidiness.faults()
    assert fault.startswith(name)


def test_files_of_other_projects_are_not_checked(root: Path) -> None:
    (root / "node_modules").mkdir()
    (root / "node_modules" / "long.py").write_text("x = 1\n" * 401)
    assert list(tidiness.faults()) == []
