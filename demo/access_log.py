"""Reads an access log in combined format, plain or gzip, and separates the clicks from the lines to skip."""

import gzip
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import IO, Final, cast

#: https://httpd.apache.org/docs/current/logs.html#combined. A quote inside a field is escaped with a backslash.
_QUOTED: Final = r'"((?:[^"\\]|\\.)*)"'
_COMBINED: Final = re.compile(rf"(\S+) \S+ .*? \[[^\]]*\] {_QUOTED} \S+ \S+ {_QUOTED} {_QUOTED}")
_GZIP_MAGIC: Final = b"\x1f\x8b"
#: Codes that the shortener reserves for its own routes.
_RESERVED: Final = frozenset({"links"})
_LONGEST_CODE: Final = 64


class Skipped(StrEnum):
    """Why a line is not replayed."""

    NOT_GET = "not a GET request"
    UNREADABLE = "not in combined format"


@dataclass(frozen=True, slots=True)
class Click:
    """One GET of the log. `line` counts from 1. The value of a missing header is `None`."""

    line: int
    code: str
    address: str
    agent: str | None
    referrer: str | None


def read(path: Path, *, limit: int | None = None) -> Iterator[Click | Skipped]:
    """Yield one entry for each of the first `limit` lines. Raises `OSError` if the file cannot be read."""
    with _open(path) as log:
        # Latin-1 preserves every byte, as HTTP headers do.
        for number, line in enumerate(islice(log, limit), start=1):
            yield _entry(number, line.decode("latin-1").rstrip("\r\n"))


def _open(path: Path) -> IO[bytes]:
    file = path.open("rb")
    is_gzip = file.read(2) == _GZIP_MAGIC
    file.seek(0)
    return cast("IO[bytes]", gzip.open(file)) if is_gzip else file


def _entry(number: int, line: str) -> Click | Skipped:
    match = _COMBINED.fullmatch(line)
    if match is None:
        return Skipped.UNREADABLE
    address, request, referrer, agent = match.groups()
    method, _, rest = request.partition(" ")
    if method != "GET":
        return Skipped.NOT_GET
    return Click(
        line=number,
        code=_code(rest.partition(" ")[0]),
        address=address,
        agent=_header(agent),
        referrer=_header(referrer),
    )


def _code(target: str) -> str:
    """The code of the link for a path: its first segment, with a hyphen for characters that a code may not have."""
    segment = target.partition("?")[0].strip("/").partition("/")[0]
    code = re.sub(r"[^A-Za-z0-9_-]+", "-", segment).strip("-")[:_LONGEST_CODE] or "home"
    return f"{code}-page" if code in _RESERVED else code


def _header(value: str) -> str | None:
    value = value.strip()
    return None if value in {"", "-"} else value
