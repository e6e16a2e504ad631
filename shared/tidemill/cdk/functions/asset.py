"""The asset that all functions share: hashed wheels, the packages of engine and app, and the bytecode of both.

The build needs no Docker, and the bytes are the same on every machine. It names no package index: pip uses the
configured one. May not import CDK.
"""

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from tidemill.cdk.config import HOST_PYTHON, Architecture, StageConfig
from tidemill.cdk.functions import job_manifest
from tidemill.cdk.synth_errors import SynthError
from tidemill.system.module_files import importable, misnamed, module_files, module_folders

#: The folder of the installed engine.
ENGINE: Final = Path(__file__).resolve().parents[2]
#: Files that pip writes beside a package and that differ between machines.
PIP_NOTES: Final = frozenset({"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"})
#: Parts of the engine that no function imports: they deploy it, run a command, compute its price, or emulate AWS.
NOT_SHIPPED: Final = frozenset(("tidemill", name) for name in ("cdk", "cli", "cost", "local", "testing.py"))
MACHINES: Final = {Architecture.ARM64: "aarch64", Architecture.X86_64: "x86_64"}
#: The glibc of Amazon Linux 2 (python3.11) and of Amazon Linux 2023 (all later runtimes):
#: https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtimes.html
GLIBC_MINOR: Final = {"3.11": 26}
NEWER_GLIBC_MINOR: Final = 34
OLDEST_GLIBC_MINOR: Final = 17
#: Finished assets to keep: two synths at once must not delete each other's asset.
KEPT_ASSETS: Final = 4


class AssetError(SynthError):
    """The asset cannot be built on this host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppCode:
    """The code of an app: `functions` and `shared` below `root`, the folder of `cdk.json`."""

    root: Path
    #: Additional files to ship, by their path in the asset.
    files: Mapping[str, Path] = field(default_factory=dict)

    @property
    def build_folder(self) -> Path:
        return self.root / "build"

    @property
    def lock(self) -> Path:
        """The packages that the functions import, with hashes."""
        return self._required("functions/requirements.txt")

    def source_packages(self) -> Mapping[str, frozenset[str]]:
        """Packages without a wheel, and the files of each that are shipped: `[tool.tidemill.source-packages]`.

        pip builds them with the setuptools of the app's lock, and checks the digest of the source archive. Raises
        `AssetError` without a `pyproject.toml`.
        """
        settings = tomllib.loads(self._required("pyproject.toml").read_text(encoding="utf-8"))
        packages = settings.get("tool", {}).get("tidemill", {}).get("source-packages", {})
        return {name: frozenset(files) for name, files in packages.items()}

    def _required(self, name: str) -> Path:
        path = self.root / name
        if not path.is_file():
            raise AssetError(f"the app has no {name}: docs/start/install-the-engine.md lists the files that it needs")
        return path


def build(config: StageConfig, code: AppCode, *, into: Path | None = None) -> Path:
    """The folder of the finished asset, below `into`. An unchanged asset is reused. Raises `AssetError`."""
    into = into or code.build_folder
    compiled = _may_compile(config)
    packages = _packages(config, code, compiled=compiled, into=into)
    sources = dict(_sources(config, code))
    # What the job files declare is part of the asset, and their import depends on these.
    host_packages = _host_packages(config, code, into=into)
    recipe = (packages.name, host_packages.name, *config.job_packages, job_manifest.SCRIPT.read_text(encoding="utf-8"))
    digest = hashlib.sha256("\0".join(recipe).encode())
    for path, source in sorted(sources.items()):
        digest.update(f"\0{path}\0{hashlib.sha256(source.read_bytes()).hexdigest()}".encode())
    asset = into / "asset" / digest.hexdigest()[:16]
    if not asset.is_dir():
        with _building(asset) as folder:
            shutil.copytree(packages, folder, dirs_exist_ok=True)
            for path, source in sources.items():
                target = folder / path
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)
            job_manifest.write(config.job_packages, path=[host_packages, folder], into=folder)
            if compiled:
                ours = [path for path in sources if path.endswith(".py")]
                _require_python(folder, ours)
                _compile(folder, *sorted({path.split("/")[0] for path in ours}))
            _set_file_modes(folder)
    os.utime(asset)
    for old in sorted(asset.parent.iterdir(), key=lambda path: path.stat().st_mtime)[:-KEPT_ASSETS]:
        shutil.rmtree(old, ignore_errors=True)
    return asset


def _may_compile(config: StageConfig) -> bool:
    """Bytecode fits one minor version only. Without it a cold start takes more than twice as long."""
    runtime = config.python_version
    if runtime == HOST_PYTHON:
        return True
    remedy = f"synthesise with Python {runtime}, or set -c python_version={HOST_PYTHON}"
    if config.bytecode_required:
        raise AssetError(
            f"stage {config.stage} runs on Python {runtime}, and Python {HOST_PYTHON} cannot compile for it: {remedy}"
        )
    _print(f"warning: Python {HOST_PYTHON} cannot compile for Python {runtime}, so functions start slower: {remedy}")
    return False


def _packages(config: StageConfig, code: AppCode, *, compiled: bool, into: Path) -> Path:
    """The folder with the packages of `functions/requirements.txt`, for the platform of the functions."""
    target = _target(config)
    source_packages = code.source_packages()
    recipe = (
        code.lock.read_bytes(),
        repr(sorted((name, sorted(files)) for name, files in source_packages.items())).encode(),
        Path(__file__).read_bytes(),
        repr((target or (sys.platform, platform.machine()), config.python_version, compiled)).encode(),
        sys.version.encode() if compiled else b"",
    )
    packages = into / "packages" / hashlib.sha256(b"\0".join(recipe)).hexdigest()[:16]
    if not packages.is_dir():
        _print("installing the packages of functions/requirements.txt; later builds reuse them until the file changes")
        with _building(packages) as folder:
            _install(code.lock, folder, target, source_packages)
            _trim(folder, source_packages)
            if compiled:
                _compile(folder, ".")
    return packages


def _target(config: StageConfig) -> list[str]:
    """Arguments of pip for the platform. Empty for this host."""
    if config.wheels_of_host:
        return []
    machine = MACHINES[config.architecture]
    newest = GLIBC_MINOR.get(config.python_version, NEWER_GLIBC_MINOR)
    tags = [f"manylinux_2_{minor}_{machine}" for minor in range(newest, OLDEST_GLIBC_MINOR - 1, -1)]
    platforms = [word for tag in (*tags, f"manylinux2014_{machine}") for word in ("--platform", tag)]
    return [*platforms, "--python-version", config.python_version, "--implementation", "cp"]


def _install(lock: Path, folder: Path, target: list[str], source_packages: Iterable[str] = ()) -> None:
    exact = ["--no-deps", "--require-hashes", "--no-build-isolation", "--only-binary", ":all:"]
    exact += [word for package in source_packages for word in ("--no-binary", package)]
    quiet = [
        "--quiet",
        "--no-color",
        "--no-input",
        "--disable-pip-version-check",
        "--no-warn-script-location",
        "--no-compile",
    ]
    arguments = ["install", *quiet, "--target", str(folder), *target, *exact, "--requirement", str(lock)]
    _run(["-m", "pip", *arguments], "pip could not install the packages of functions/requirements.txt")


def _trim(folder: Path, source_packages: Mapping[str, frozenset[str]]) -> None:
    """Delete files that no function imports, and files that would differ between machines."""
    shutil.rmtree(folder / "bin", ignore_errors=True)
    for note in folder.glob("*.dist-info/*"):
        if note.name in PIP_NOTES:
            note.unlink()
    for package, kept in source_packages.items():
        for path in (folder / package).iterdir():
            if path.name not in kept:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def _sources(config: StageConfig, code: AppCode) -> Iterator[tuple[str, Path]]:
    """Source files by their path in the asset: the engine, the app's shared code, the functions and the job types."""
    for source in module_files(ENGINE):
        path = source.relative_to(ENGINE.parent)
        if path.parts[:2] not in NOT_SHIPPED:
            yield path.as_posix(), source
    shared = code.root / "shared"
    for source in module_files(shared) if shared.is_dir() else ():
        path = source.relative_to(shared)
        if path.parts[0] != ENGINE.name:
            yield path.as_posix(), source
    for folder in _function_folders(config, code.root):
        for source in module_files(folder):
            yield source.relative_to(code.root).as_posix(), source
    yield "functions/__init__.py", code.root / "functions" / "__init__.py"
    for path_in_asset, file in code.files.items():
        if not file.is_file():
            raise AssetError(f"cannot ship {file}: no such file; correct the path in the settings")
        yield path_in_asset, file


def _function_folders(config: StageConfig, root: Path) -> Iterator[Path]:
    """The packages with a handler, and those with the job types of the stage."""
    functions = root / "functions"
    yield from (folder for folder in importable(functions) if (folder / "handler.py").is_file())
    not_imported = [folder for folder in misnamed(functions) if (folder / "handler.py").is_file()]
    for package in config.job_packages:
        folder = root.joinpath(*package.split("."))
        if not (folder / "__init__.py").is_file():
            raise AssetError(
                f"job_packages of stage {config.stage} names {package}, which is not a package: "
                f"add {folder}/__init__.py"
            )
        not_imported += [path for each in (folder, *module_folders(folder)) for path in misnamed(each)]
        yield folder
    for path in not_imported:
        raise AssetError(
            f"{path.relative_to(root).as_posix()} is not imported, because no module can have its name: rename it to "
            "a-z, 0-9 and _, with no digit first, or move it elsewhere"
        )


def _host_packages(config: StageConfig, code: AppCode, *, into: Path) -> Path:
    """The packages for this host, which imports the job files, and not for the functions' platform."""
    here = replace(config, wheels_of_host=True, python_version=HOST_PYTHON)
    return _packages(here, code, compiled=True, into=into)


def _require_python(folder: Path, files: Iterable[str]) -> None:
    """Report a syntax error in one line; compileall prints many. Raises `AssetError`."""
    for path in files:
        try:
            compile((folder / path).read_bytes(), path, "exec", dont_inherit=True)
        except SyntaxError as error:
            raise AssetError(f"{path}, line {error.lineno}: SyntaxError: {error.msg}") from None


def _compile(folder: Path, *parts: str) -> None:
    """Bytecode is not checked against its source: a deployed asset does not change, and a time stamp would differ.

    A separate, isolated process compiles, because imported modules and environment variables can change the bytes.
    """
    mode = ["--invalidation-mode", "unchecked-hash", "-s", str(folder), "-p", "/var/task"]
    _run(["-I", "-m", "compileall", "-qq", "-f", *mode, *(str(folder / part) for part in parts)], "cannot compile")


def _set_file_modes(folder: Path) -> None:
    """Set the modes that Lambda needs, for any umask of the builder."""
    for path in folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)


@contextmanager
def _building(finished: Path) -> Iterator[Path]:
    """A temporary folder that is renamed to `finished` after success and deleted after an error."""
    finished.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=finished.parent.parent, prefix="building-") as temporary:
        folder = Path(temporary) / finished.name
        folder.mkdir()
        yield folder
        try:
            folder.rename(finished)
        except OSError:
            if not finished.is_dir():  # otherwise another synth finished first, with the same bytes
                raise


def _run(arguments: list[str], failure: str) -> None:
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise AssetError(f"{failure}: {lines[-1].strip() if lines else f'exit code {done.returncode}'}")


def _print(message: str) -> None:
    sys.stderr.write(f"tidemill: {message}\n")
