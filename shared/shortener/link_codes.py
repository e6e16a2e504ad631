"""The codes that links go by: which may be asked for, and those that are made up."""

import json
import re
import secrets
from collections.abc import Iterator
from itertools import count
from typing import Final
from uuid import NAMESPACE_OID, uuid5

#: As JSON Schema and pydantic write it, too.
PATTERN: Final = r"^[A-Za-z0-9_-]{1,64}$"
#: First segments of the API's own paths.
RESERVED: Final = frozenset({"links"})

_ALPHABET: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
#: 2 * 10^14 codes: short enough to be read out, too many to be tried.
_LENGTH: Final = 8
#: Derived codes live in a space of their own.
_KEYED_CODES: Final = uuid5(NAMESPACE_OID, "tidemill.link")


def is_code(text: str) -> bool:
    # `fullmatch`, since `$` also stands before a last line feed.
    return re.fullmatch(PATTERN, text) is not None and text not in RESERVED


def made_up(owner: str, key: str | None) -> Iterator[str]:
    """Codes to try one after another until one is free; under the same key the same ones in the same order."""
    turns = count()
    while True:
        if key is None:
            yield "".join(secrets.choice(_ALPHABET) for _ in range(_LENGTH))
        else:
            yield _spelt(uuid5(_KEYED_CODES, json.dumps([owner, key, next(turns)])).int)


def _spelt(number: int) -> str:
    dead_letters = []
    for _ in range(_LENGTH):
        number, digit = divmod(number, len(_ALPHABET))
        dead_letters.append(_ALPHABET[digit])
    return "".join(dead_letters)
