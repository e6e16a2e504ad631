"""The codes of links: which codes a caller may choose, and how others are generated."""

import json
import re
import secrets
from collections.abc import Iterator
from itertools import count
from typing import Final
from uuid import NAMESPACE_OID, uuid5

#: In the syntax that JSON Schema and pydantic share.
PATTERN: Final = r"^[A-Za-z0-9_-]{1,64}$"
#: First segments of the API's own paths.
RESERVED: Final = frozenset({"links"})

_ALPHABET: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
#: 2 * 10^14 codes: short enough to read aloud, too many to guess.
_LENGTH: Final = 8
#: The UUID namespace of codes that are derived from an idempotency key.
_KEYED_CODES: Final = uuid5(NAMESPACE_OID, "tidemill.link")


def is_code(text: str) -> bool:
    # `fullmatch`, since `$` also matches before a final line feed.
    return re.fullmatch(PATTERN, text) is not None and text not in RESERVED


def candidates(owner: str, key: str | None) -> Iterator[str]:
    """Yield codes to try in turn until one is free. The same owner and key yield the same codes in the same order."""
    turns = count()
    while True:
        if key is None:
            yield "".join(secrets.choice(_ALPHABET) for _ in range(_LENGTH))
        else:
            yield _encoded(uuid5(_KEYED_CODES, json.dumps([owner, key, next(turns)])).int)


def _encoded(number: int) -> str:
    characters = []
    for _ in range(_LENGTH):
        number, digit = divmod(number, len(_ALPHABET))
        characters.append(_ALPHABET[digit])
    return "".join(characters)
