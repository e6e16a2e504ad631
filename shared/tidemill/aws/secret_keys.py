"""A secret key that may be replaced at any time: the versions that Secrets Manager keeps, and when to read them again.

A new value becomes AWSCURRENT, and the one before becomes AWSPREVIOUS:
https://docs.aws.amazon.com/secretsmanager/latest/userguide/whats-in-a-secret.html
"""

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec import Struct

from tidemill.aws import clients
from tidemill.domain.errors import MissingResourceError, TidemillError

#: A process signs with the new key at most this long after the rotation. Rotations further apart lose no signature.
LONGEST_USE: Final = timedelta(minutes=5)
#: Anyone can send a signature of no key, and each makes the process look for a newer one.
SHORTEST_USE: Final = timedelta(seconds=1)


class KeyVersion(Struct, frozen=True, kw_only=True):
    value: bytes
    created_at: datetime


def key_versions(secret_id: str) -> Sequence[KeyVersion]:
    """The current version, and after it the previous one, if any."""
    # In this order: a key that is replaced between the two reads is read twice. In the other order it would be missing.
    versions = [_version(secret_id, "AWSCURRENT")]
    with suppress(MissingResourceError):
        versions.append(_version(secret_id, "AWSPREVIOUS"))
    return versions


def _version(secret_id: str, stage: str) -> KeyVersion:
    with clients.translated():
        answer = clients.secrets().get_secret_value(SecretId=secret_id, VersionStage=stage)
    return KeyVersion(value=answer["SecretString"].encode(), created_at=answer["CreatedDate"].astimezone(UTC))


class RotatingKey:
    """The versions of one key, as this process knows them, the current one first. Threads share it."""

    def __init__(self, read: Callable[[], Sequence[KeyVersion]], *, clock: Callable[[], datetime]) -> None:
        self._read = read
        self._clock = clock
        self._lock = threading.Lock()
        self._known: Sequence[bytes] = ()
        self._read_at: datetime | None = None

    def versions(self, *, newer: bool = False) -> Sequence[bytes]:
        """At most five minutes old; with `newer`, at most a second. The last known ones while they cannot be read.

        While none are known, raises what the read raises.
        """
        with self._lock:
            now = self._clock()
            if self._read_at is None or now - self._read_at >= (SHORTEST_USE if newer else LONGEST_USE):
                try:
                    self._known = [version.value for version in self._read()]
                except (TidemillError, *clients.AWS_ERRORS):
                    if not self._known:
                        raise
                self._read_at = now
            return self._known
