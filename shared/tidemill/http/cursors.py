"""Cursors of listings: opaque, signed, and valid for one tenant and one set of filters only."""

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from tidemill.domain.errors import TidemillError
from tidemill.dynamodb.listing_entries import Position

_MAC_BYTES: Final = 32


class CursorError(TidemillError):
    """These keys did not sign the cursor for this tenant and these filters."""


class Cursors:
    """Writes cursors with one key, and reads those of the former keys too.

    A cursor holds nothing that its caller has not seen. The signature prevents a forged start, and a change of filters
    between two pages, which would silently leave jobs out.
    """

    def __init__(self, key: bytes, *former: bytes) -> None:
        self._keys = (key, *former)

    def write(self, position: Position, *, bound_to: Sequence[str | None]) -> str:
        content = json.dumps([position.at.isoformat(), position.id]).encode("ascii")
        return _encoded(_mac(self._keys[0], content, bound_to) + content)

    def read(self, cursor: str, *, bound_to: Sequence[str | None]) -> Position:
        """Raises `CursorError`."""
        try:
            signed = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError) as error:
            raise CursorError("not a cursor") from error
        content = signed[_MAC_BYTES:]
        macs = [_mac(key, content, bound_to) for key in self._keys]
        # Base64 has several spellings of the same bytes. Only the canonical one is valid.
        if not any(hmac.compare_digest(signed[:_MAC_BYTES], mac) for mac in macs) or _encoded(signed) != cursor:
            raise CursorError("a cursor of another caller or of other filters")
        at, job_id = json.loads(content)
        return Position(datetime.fromisoformat(at), job_id)


def _mac(key: bytes, content: bytes, bound_to: Sequence[str | None]) -> bytes:
    # JSON escapes its delimiters, so no part can imitate the boundary between two parts.
    message = json.dumps([*bound_to, content.decode("latin-1")]).encode("ascii")
    return hmac.digest(key, message, hashlib.sha256)


def _encoded(signed: bytes) -> str:
    return base64.urlsafe_b64encode(signed).rstrip(b"=").decode("ascii")
