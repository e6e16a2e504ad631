"""The one asset that all functions share: hashed wheels, our own packages, and the bytecode of both.

Built without Docker, and the same to the byte wherever it is built. Names no package index: pip asks the one that its
user configured. May not import CDK.
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

from tidemill.cdk.config import HOST_PYTHON, Architecture, StageConfig, SynthError
from tidemill.cdk.job_file_check import require_job_files

#: The engine as it is installed, wherever that is.
ENGINE: Final = Path(__file__).resolve().parents[1]
#: What pip writes beside a package that differs from machine to machine.
PIP_NOTES: Final = frozenset({"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"})
#: Parts of the engine that no function imports: they deploy it, operate it, or stand in for AWS.
NOT_SHIPPED: Final = frozenset(("tidemill", name) for name in ("cdk", "cli", "local", "operator", "testing.py"))
MACHINES: Final = {Architecture.ARM64: "aarch64", Architecture.X86_64: "x86_64"}
#: glibc of Amazon Linux 2, which is under python3.11, and of Amazon Linux 2023, which is under all later runtimes:
#: https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtimes.html
GLIBC_MINOR: Final = {"3.11": 26}
NEWER_GLIBC_MINOR: Final = 34
OLDEST_GLIBC_MINOR: Final = 17
#: Finished assets that are kept; two synths at once must not take each other's away.
KEPT_ASSETS: Final = 4


class AssetError(SynthError):
    """The asset cannot be built here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppCode:
    """The code of an app: `functions` and `shared` below `root`, the folder of `cdk.json`."""

    root: Path
    #: Further files to ship, by their place in the asset.
    files: Mapping[str, Path] = field(default_factory=dict)

    @property
    def build_folder(self) -> Path:
        return self.root / "build"

    @property
    def lock(self) -> Path:
        """What the functions import, with hashes."""
        return self.root / "functions" / "requirements.txt"

    def source_packages(self) -> Mapping[str, frozenset[str]]:
        """Packages without a wheel, and the files of each that are shipped: `[tool.tidemill.source-packages]`.

        pip builds them with the setuptools of the app's own lock, and checks the digest of what it builds from.
        """
        settings = tomllib.loads((self.root / "pyproject.toml").read_text(encoding="utf-8"))
        packages = settings.get("tool", {}).get("tidemill", {}).get("source-packages", {})
        return {name: frozenset(files) for name, files in packages.items()}


def build(config: StageConfig, code: AppCode, *, into: Path | None = None) -> Path:
    """The folder of the finished asset, in `into`. What was built before is used again. Raises AssetError."""
    into = into or code.build_folder
    compiled = _may_compile(config)
    packages = _packages(config, code, compiled=compiled, into=into)
    sources = dict(_sources(config, code))
    digest = hashlib.sha256(packages.name.encode())
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
            _check_job_files(folder, config, code, into=into)
            if compiled:
                ours = [path for path in sources if path.endswith(".py")]
                _require_python(folder, ours)
                _compile(folder, *sorted({path.split("/")[0] for path in ours}))
            _settle_modes(folder)
    os.utime(asset)
    for old in sorted(asset.parent.iterdir(), key=lambda path: path.stat().st_mtime)[:-KEPT_ASSETS]:
        shutil.rmtree(old, ignore_errors=True)
    return asset


def _may_compile(config: StageConfig) -> bool:
    """Bytecode is good for one minor version only, and without it a cold start takes more than twice as long."""
    runtime = config.python_version
    if runtime == HOST_PYTHON:
        return True
    remedy = f"synthesise with Python {runtime}, or deploy for this one with -c python_version={HOST_PYTHON}"
    if config.bytecode_required:
        raise AssetError(
            f"stage {config.stage} runs on Python {runtime} and Python {HOST_PYTHON} cannot compile for it: {remedy}"
        )
    _say(f"warning: no bytecode for Python {runtime} from Python {HOST_PYTHON}, so functions start slower: {remedy}")
    return False


def _packages(config: StageConfig, code: AppCode, *, compiled: bool, into: Path) -> Path:
    """The folder of everything in `functions/requirements.txt`, for the platform of the functions."""
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
        _say("installing what the functions need; this is kept until functions/requirements.txt changes")
        with _building(packages) as folder:
            _install(code.lock, folder, target, source_packages)
            _trim(folder, source_packages)
            if compiled:
                _compile(folder, ".")
    return packages


def _target(config: StageConfig) -> list[str]:
    """What to tell pip about the platform; nothing for this very host."""
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
    _run(["-m", "pip", *arguments], "pip could not install what the functions need")


def _trim(folder: Path, source_packages: Mapping[str, frozenset[str]]) -> None:
    """Leave out what no function imports and what would differ between two machines."""
    shutil.rmtree(folder / "bin", ignore_errors=True)
    for note in folder.glob("*.dist-info/*"):
        if note.name in PIP_NOTES:
            note.unlink()
    for package, kept in source_packages.items():
        for path in (folder / package).iterdir():
            if path.name not in kept:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def _sources(config: StageConfig, code: AppCode) -> Iterator[tuple[str, Path]]:
    """Our own files by their place in the asset: the engine, what the functions share, the functions, the job types."""
    for source in _files(ENGINE):
        path = source.relative_to(ENGINE.parent)
        if path.parts[:2] not in NOT_SHIPPED:
            yield path.as_posix(), source
    shared = code.root / "shared"
    for source in _files(shared):
        path = source.relative_to(shared)
        if path.parts[0] != ENGINE.name:
            yield path.as_posix(), source
    for folder in _function_folders(config, code.root):
        for source in _files(folder):
            yield source.relative_to(code.root).as_posix(), source
    yield "functions/__init__.py", code.root / "functions" / "__init__.py"
    for place, file in code.files.items():
        if not file.is_file():
            raise AssetError(f"cannot ship {file}: no such file")
        yield place, file


def _function_folders(config: StageConfig, root: Path) -> Iterator[Path]:
    """The packages with a handler, and those with the job types of the stage."""
    yield from sorted(handler.parent for handler in root.glob("functions/*/handler.py"))
    for package in config.job_packages:
        folder = root.joinpath(*package.split("."))
        if not (folder / "__init__.py").is_file():
            raise AssetError(f"job_packages of stage {config.stage} names {package}, which is not a package")
        yield folder


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix == ".py" and not path.name.startswith("."):
            yield path


def _check_job_files(folder: Path, config: StageConfig, code: AppCode, *, into: Path) -> None:
    """Import the job types on this host, with wheels that are for it and not for the functions' platform."""
    here = replace(config, wheels_of_host=True, python_version=HOST_PYTHON)
    try:
        packages = _packages(here, code, compiled=True, into=into)
    except AssetError as error:
        _say(f"warning: the job types were not tried, since this host cannot install what they import: {error}")
        return
    require_job_files(config.job_packages, path=[packages, folder])


def _require_python(folder: Path, files: Iterable[str]) -> None:
    """To say in one line what compileall says in many."""
    for path in files:
        try:
            compile((folder / path).read_bytes(), path, "exec", dont_inherit=True)
        except SyntaxError as error:
            raise AssetError(f"{path}, line {error.lineno}: SyntaxError: {error.msg}") from None


def _compile(folder: Path, *parts: str) -> None:
    """Unchecked: nothing changes in a deployed asset, and a time stamp would differ with each build.

    In a process of its own, in isolation: what else was imported, and the variables of its user, can change the bytes.
    """
    mode = ["--invalidation-mode", "unchecked-hash", "-s", str(folder), "-p", "/var/task"]
    _run(["-I", "-m", "compileall", "-qq", "-f", *mode, *(str(folder / part) for part in parts)], "cannot compile")


def _settle_modes(folder: Path) -> None:
    """As Lambda needs them, whatever the builder's umask is."""
    for path in folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)


@contextmanager
def _building(finished: Path) -> Iterator[Path]:
    """A folder that becomes `finished` in one step if all goes well, and is gone if not."""
    finished.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=finished.parent.parent, prefix="building-") as temporary:
        folder = Path(temporary) / finished.name
        folder.mkdir()
        yield folder
        try:
            folder.rename(finished)
        except OSError:
            if not finished.is_dir():  # else another synth was first, with the same bytes
                raise


def _run(arguments: list[str], fault: str) -> None:
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise AssetError(f"{fault}: {lines[-1].strip() if lines else f'exit code {done.returncode}'}")


def _say(message: str) -> None:
    sys.stderr.write(f"tidemill: {message}\n")
