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
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from stacks.stages import HOST_PYTHON
from tidemill.cdk.config import Architecture, StageConfig, SynthError
from tidemill.cdk.job_file_check import require_job_files

ROOT: Final = Path(__file__).resolve().parents[3]
BUILD: Final = ROOT / "build"
#: Where in the asset the MaxMind database lies, if one is configured.
GEOIP_DATABASE: Final = "geoip.mmdb"
#: Has no wheel; pip builds it with the setuptools of our own lock, and checks the digest of what it builds from.
SDIST: Final = "geoip2fast"
#: Of that package, the reader and the data for countries of IPv4 addresses: a tenth of what it brings.
SDIST_KEPT: Final = frozenset({"__init__.py", "geoip2fast.py", "geoip2fast.dat.gz"})
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


def build(config: StageConfig, *, into: Path = BUILD) -> Path:
    """The folder of the finished asset. What was built before is used again. Raises AssetError."""
    compiled = _may_compile(config)
    packages = _packages(config, compiled=compiled, into=into)
    sources = dict(_sources(config))
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
            _try_job_files(folder, config, into=into)
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


def _packages(config: StageConfig, *, compiled: bool, into: Path) -> Path:
    """The folder of everything in `functions/requirements.txt`, for the platform of the functions."""
    lock = ROOT / "functions" / "requirements.txt"
    target = _target(config)
    recipe = (
        lock.read_bytes(),
        Path(__file__).read_bytes(),
        repr((target or (sys.platform, platform.machine()), config.python_version, compiled)).encode(),
        sys.version.encode() if compiled else b"",
    )
    packages = into / "packages" / hashlib.sha256(b"\0".join(recipe)).hexdigest()[:16]
    if not packages.is_dir():
        _say("installing what the functions need; this is kept until functions/requirements.txt changes")
        with _building(packages) as folder:
            _install(lock, folder, target)
            _trim(folder)
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


def _install(lock: Path, folder: Path, target: list[str]) -> None:
    exact = ["--no-deps", "--require-hashes", "--only-binary", ":all:", "--no-binary", SDIST, "--no-build-isolation"]
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


def _trim(folder: Path) -> None:
    """Leave out what no function imports and what would differ between two machines."""
    shutil.rmtree(folder / "bin", ignore_errors=True)
    for note in folder.glob("*.dist-info/*"):
        if note.name in PIP_NOTES:
            note.unlink()
    for path in (folder / SDIST).iterdir():
        if path.name not in SDIST_KEPT:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def _sources(config: StageConfig) -> Iterator[tuple[str, Path]]:
    """Our own files by their place in the asset: what is below `shared`, the functions, the job types of the stage."""
    job_folders = {name.replace(".", "/") for name in config.job_packages}
    for name in job_folders:
        if not (ROOT / name / "__init__.py").is_file():
            raise AssetError(f"there is no package {name} for the job_packages of stage {config.stage}")
    shared = ROOT / "shared"
    for source in _files(shared):
        path = source.relative_to(shared)
        if path.parts[:2] not in NOT_SHIPPED:
            yield path.as_posix(), source
    for source in _files(ROOT / "functions"):
        path = source.relative_to(ROOT)
        folder = path.parts[:2]
        if (
            path.parent == Path("functions")
            or "/".join(folder) in job_folders
            or ROOT.joinpath(*folder, "handler.py").is_file()
        ):
            yield path.as_posix(), source
    if config.geoip_database:
        database = Path(config.geoip_database)
        if not database.is_file():
            raise AssetError(f"there is no file {config.geoip_database}, which geoip_database names")
        yield GEOIP_DATABASE, database


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix == ".py" and not path.name.startswith("."):
            yield path


def _try_job_files(folder: Path, config: StageConfig, *, into: Path) -> None:
    """Import the job types on this host, with wheels that are for it and not for the functions' platform."""
    here = replace(config, wheels_of_host=True, python_version=HOST_PYTHON)
    try:
        packages = _packages(here, compiled=True, into=into)
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
