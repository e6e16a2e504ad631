"""Which files of a folder Python can import. Discovery, the asset and synth all go by it.

Editors and file managers leave hidden files such as `.#click.py`, `._click.py` and `.ipynb_checkpoints/` beside the
modules.
"""

from collections.abc import Iterator
from pathlib import Path


def importable(folder: Path) -> Iterator[Path]:
    """The modules and the sub-folders, sorted by name. A folder need not be a package."""
    for path in sorted(folder.iterdir()):
        if (path.suffix == ".py" or path.is_dir()) and _name(path).isidentifier() and path.name != "__pycache__":
            yield path


def module_files(folder: Path) -> Iterator[Path]:
    """The modules below the folder, also behind symbolic links."""
    for path in _below(folder):
        if not path.is_dir():
            yield path


def module_folders(folder: Path) -> Iterator[Path]:
    """The folders below this one, also behind symbolic links."""
    for path in _below(folder):
        if path.is_dir():
            yield path


def misnamed(folder: Path) -> Iterator[Path]:
    """The files and folders of this folder with code, such as `my-job.py`, whose visible names no module can have."""
    for path in sorted(folder.iterdir()):
        holds_code = any(path.rglob("*.py")) if path.is_dir() else path.suffix == ".py"
        if holds_code and not path.name.startswith(".") and not _name(path).isidentifier():
            yield path


def _below(folder: Path, within: frozenset[Path] = frozenset()) -> Iterator[Path]:
    """`within` are the folders that hold this one. A link to one of them would never end."""
    within |= {folder.resolve()}
    for path in importable(folder):
        if not path.is_dir():
            yield path
        elif path.resolve() not in within:
            yield path
            yield from _below(path, within)


def _name(path: Path) -> str:
    return path.name if path.is_dir() else path.stem
