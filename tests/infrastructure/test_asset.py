"""The asset is the same on every machine, and holds everything that the functions need."""

import hashlib
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from stacks.applications.shortener import GEOIP_DATABASE, Shortener
from stacks.composition import ROOT
from stacks.stages import STAGES
from tests.unit.system.test_module_files import STRAY
from tidemill.cdk.config import HOST_PYTHON, Architecture
from tidemill.cdk.functions import asset

LOCAL = STAGES["local"]()
CODE = asset.AppCode(root=ROOT)
OTHER_PYTHON = "3.12" if HOST_PYTHON != "3.12" else "3.13"


def _contents(folder: Path) -> dict[str, tuple[str, int]]:
    return {
        path.relative_to(folder).as_posix(): (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mode)
        for path in folder.rglob("*")
        if path.is_file()
    }


def _python(built: Path, code: str) -> str:
    """Run `code` in an isolated Python with the asset first on its path."""
    program = f"import sys; sys.path.insert(0, {str(built)!r}); {code}"
    done = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.slow
def test_a_second_build_elsewhere_has_the_same_bytes(built: Path, tmp_path: Path) -> None:
    again = asset.build(LOCAL, CODE, into=tmp_path / "elsewhere")
    assert _contents(again) == _contents(built)
    assert again.name == built.name


def test_the_asset_does_not_contain_paths_of_the_machine(built: Path) -> None:
    here = str(ROOT).encode()
    for path in built.rglob("*"):
        assert path.is_dir() or here not in path.read_bytes(), path


def test_all_sources_are_compiled_to_unchecked_bytecode(built: Path) -> None:
    sources = [path for path in built.rglob("*.py") if "functions" in path.parts or "pydantic" in path.parts]
    assert sources
    for source in sources:
        compiled = source.parent / "__pycache__" / f"{source.stem}.{sys.implementation.cache_tag}.pyc"
        # Flags of PEP 552: hash-based and unchecked.
        assert compiled.read_bytes()[4:8] == b"\1\0\0\0"


def test_the_country_data_is_shipped_and_loads(built: Path) -> None:
    assert _python(built, "from iptocc import country_code; print(country_code('2001:4860:4860::8888'))") == "US"


def test_every_function_imports_from_the_asset(built: Path) -> None:
    entrypoints = built / "tidemill" / "entrypoints"
    engine = sorted(f"tidemill.entrypoints.{path.stem}" for path in entrypoints.glob("[a-z]*.py"))
    app = sorted(f"functions.{path.parent.name}.handler" for path in (built / "functions").glob("*/handler.py"))
    assert "tidemill.entrypoints.work" in engine
    code = "; ".join(f"import {module}" for module in (*engine, *app))
    where = _python(built, f"{code}; import pydantic; print(functions.__file__, tidemill.__file__, pydantic.__file__)")
    assert all(file.startswith(str(built)) for file in where.split())


def test_demo_jobs_are_shipped_only_in_a_stage_that_names_them(built: Path) -> None:
    assert (built / "functions" / "demo_jobs" / "__init__.py").is_file()
    shipped = {path for path, _ in asset._sources(STAGES["dev"](), CODE)}
    assert "functions/jobs/__init__.py" in shipped
    assert not any(path.startswith("functions/demo_jobs/") for path in shipped)
    assert not any(path.endswith(("requirements.txt", ".pyc")) for path in shipped)


def test_the_asset_does_not_contain_the_command_line_the_constructs_or_the_embedded_aws(built: Path) -> None:
    shipped = {path.name for path in (built / "tidemill").iterdir()}
    assert {"entrypoints", "worker", "names.py"} <= shipped
    assert not shipped & {"cdk", "cli", "cost", "local", "testing.py"}


def test_a_file_of_an_application_is_shipped_at_its_path(tmp_path: Path) -> None:
    database = tmp_path / "GeoLite2-Country.mmdb"
    database.write_bytes(b"mmdb")
    shortener = Shortener(LOCAL, {"geoip_database": str(database)})
    assert dict(asset._sources(LOCAL, asset.AppCode(root=ROOT, files=shortener.files())))[GEOIP_DATABASE] == database
    missing = Shortener(LOCAL, {"geoip_database": str(tmp_path / "missing.mmdb")})
    with pytest.raises(
        asset.AssetError, match=r"cannot ship .*missing\.mmdb: no such file; correct the path in the settings"
    ):
        dict(asset._sources(LOCAL, asset.AppCode(root=ROOT, files=missing.files())))


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of the functions of this app."""
    shutil.copytree(ROOT / "functions", tmp_path / "functions")
    return tmp_path


def _shipped(root: Path) -> set[str]:
    return {path for path, _ in asset._sources(STAGES["dev"](), asset.AppCode(root=root)) if path[:9] == "functions"}


def test_stray_files_are_not_shipped_and_a_linked_package_is(copied: Path, tmp_path: Path) -> None:
    before = _shipped(copied)
    for file in STRAY:
        for folder in ("functions", "functions/jobs", "functions/stats"):
            (copied / folder / file).parent.mkdir(exist_ok=True)
            (copied / folder / file).write_text("broken(")
    assert _shipped(copied) == before

    (tmp_path / "team").mkdir()
    (tmp_path / "team" / "__init__.py").touch()
    (copied / "functions" / "jobs" / "team").symlink_to(tmp_path / "team")
    assert _shipped(copied) == {*before, "functions/jobs/team/__init__.py"}


@pytest.mark.parametrize("file", ["jobs/my-job.py", "jobs/mail/1.py", "jobs/my-jobs/one.py", "my-function/handler.py"])
def test_code_whose_name_no_module_can_have_is_refused(copied: Path, file: str) -> None:
    path = copied / "functions" / file
    path.parent.mkdir(exist_ok=True)
    path.touch()
    with pytest.raises(asset.AssetError, match=r"^functions/\S+ is not imported, because no module .*: rename it"):
        _shipped(copied)


def test_a_package_with_another_digest_is_refused(tmp_path: Path) -> None:
    lock = tmp_path / "requirements.txt"
    lock.write_text(f"typing-inspection==0.4.5 --hash=sha256:{'0' * 64}\n")
    with pytest.raises(asset.AssetError, match="pip could not install"):
        asset._install(lock, tmp_path / "packages", [])
    assert not (tmp_path / "packages" / "typing_inspection").exists()


def test_an_interrupted_build_leaves_nothing_that_looks_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(asset, "_install", interrupt)
    with pytest.raises(KeyboardInterrupt):
        asset.build(LOCAL, CODE, into=tmp_path)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not list((tmp_path / "packages").iterdir())


def test_prod_refuses_a_host_that_cannot_compile_for_its_runtime() -> None:
    config = replace(STAGES["prod"](), python_version=OTHER_PYTHON)
    with pytest.raises(asset.AssetError, match=f"-c python_version={HOST_PYTHON}"):
        asset.build(config, CODE)


def test_dev_warns_of_a_host_that_cannot_compile_for_its_runtime(capsys: pytest.CaptureFixture[str]) -> None:
    assert not asset._may_compile(replace(STAGES["dev"](), python_version=OTHER_PYTHON))
    assert f"synthesise with Python {OTHER_PYTHON}" in capsys.readouterr().err


@pytest.mark.parametrize(("python", "newest"), [("3.11", 26), ("3.14", 34)])
def test_wheels_fit_the_runtime_and_not_the_host(python: str, newest: int) -> None:
    target = asset._target(replace(STAGES["dev"](), python_version=python))
    assert target[:2] == ["--platform", f"manylinux_2_{newest}_aarch64"]
    assert "manylinux2014_aarch64" in target
    assert target[-4:] == ["--python-version", python, "--implementation", "cp"]
    assert not any(Architecture.X86_64 in word for word in target)
    assert asset._target(LOCAL) == []
