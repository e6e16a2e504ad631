"""Cursors of listings: opaque, signed, and good for one tenant and one set of filters alone."""

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from tidemill.domain.errors import TidemillError
from tidemill.dynamodb.listing import Position

_MAC_BYTES: Final = 32


class CursorError(TidemillError):
    """Not a cursor that this key has signed for this tenant and these filters."""


class Cursors:
    """Writes and reads cursors with one key.

    A cursor holds only data that its bearer has seen. The signature prevents two errors: a start at a made-up position,
    and a change of the filters between pages, which would leave out jobs silently.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def write(self, position: Position, *, bound_to: Sequence[str | None]) -> str:
        content = json.dumps([position.at.isoformat(), position.id]).encode("ascii")
        return _encoded(self._mac(content, bound_to) + content)

    def read(self, cursor: str, *, bound_to: Sequence[str | None]) -> Position:
        """Raises `CursorError`."""
        try:
            signed = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError) as error:
            raise CursorError("not a cursor") from error
        content = signed[_MAC_BYTES:]
        # Base64 has several spellings of the same bytes, and only ours is one that we wrote.
        if not hmac.compare_digest(signed[:_MAC_BYTES], self._mac(content, bound_to)) or _encoded(signed) != cursor:
            raise CursorError("not a cursor of yours, or not of these filters")
        at, job_id = json.loads(content)
        return Position(datetime.fromisoformat(at), job_id)

    def _mac(self, content: bytes, bound_to: Sequence[str | None]) -> bytes:
        # As JSON, so that no part can hold what parts them.
        message = json.dumps([*bound_to, content.decode("latin-1")]).encode("ascii")
        return hmac.digest(self._key, message, hashlib.sha256)


def _encoded(signed: bytes) -> str:
    return base64.urlsafe_b64encode(signed).rstrip(b"=").decode("ascii")
