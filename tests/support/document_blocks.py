"""The README and the documents, split into their fenced blocks and the text between them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from textwrap import dedent
from typing import Final

ROOT: Final = Path(__file__).parents[2]
DOCUMENTS: Final[Sequence[Path]] = (
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(ROOT.glob("docs/**/*.md")),
)
_FENCE: Final = re.compile(r" *```(.*)")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block."""

    #: Relative to the root of the repository.
    page: str
    #: The line of its opening fence, from 1.
    line: int
    #: The words after the opening fence; empty without a tag.
    tag: str
    #: Without the fences, and without the indentation that a list gives to all of its lines.
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


@dataclass(frozen=True, slots=True)
class Page:
    """A document in two parts."""

    blocks: Sequence[Block]
    #: The text outside of the blocks, with an empty line in place of each.
    prose: str


@cache
def page_of(path: Path) -> Page:
    """Raises `ValueError` for a block that does not end."""
    name = path.resolve().relative_to(ROOT).as_posix()
    blocks, prose = [], []
    lines = zip(count(1), path.read_text(encoding="utf-8").splitlines(keepends=True))
    for number, line in lines:
        opening = _FENCE.match(line)
        if opening is None:
            prose.append(line)
            continue
        within = []
        for _, inner in lines:
            if inner.strip() == "```":
                break
            within.append(inner)
        else:
            raise ValueError(f"{name}:{number} opens a block that does not end")
        prose.append("\n")
        blocks.append(Block(name, number, opening[1].strip(), dedent("".join(within))))
    return Page(blocks, "".join(prose))


def python_blocks(path: Path) -> Sequence[str]:
    """The code of the blocks that are tagged `python`."""
    return [block.text for block in page_of(path).blocks if block.tag == "python"]


def code_of(path: Path, file: str) -> str:
    """The code of the block of Python that begins with a comment with this name of a file."""
    (found,) = [block for block in python_blocks(path) if block.startswith(f"# {file}\n")]
    return found


def all_blocks() -> Sequence[Block]:
    return [block for path in DOCUMENTS for block in page_of(path).blocks]
