"""A process keeps the versions of a rotating key, and does not depend on reading them again."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest
from botocore.exceptions import ClientError

from tests.support.builders import NOW
from tidemill.aws.secret_keys import LONGEST_USE, SHORTEST_USE, KeyVersion, RotatingKey
from tidemill.domain.errors import MissingResourceError, StoreUnavailableError


class Source:
    """A secret and a clock."""

    def __init__(self) -> None:
        self.now = NOW
        self.values: Sequence[bytes] = [b"one"]
        self.down = False
        self.error: Exception = StoreUnavailableError("throttled")
        self.reads = 0

    def clock(self) -> datetime:
        return self.now

    def read(self) -> Sequence[KeyVersion]:
        self.reads += 1
        if self.down:
            raise self.error
        return [KeyVersion(value=value, created_at=NOW) for value in self.values]


@pytest.mark.parametrize(("newer", "use"), [(False, LONGEST_USE), (True, SHORTEST_USE)])
def test_the_versions_are_read_again_after_their_time(newer: bool, use: timedelta) -> None:
    source = Source()
    key = RotatingKey(source.read, clock=source.clock)
    key.versions()
    source.values = [b"two", b"one"]

    source.now += use - timedelta(milliseconds=1)
    assert key.versions(newer=newer) == [b"one"]
    source.now += timedelta(milliseconds=1)
    assert key.versions(newer=newer) == [b"two", b"one"]
    assert source.reads == 2


DENIED = ClientError({"Error": {"Code": "AccessDeniedException", "Message": "a test"}}, "GetSecretValue")


@pytest.mark.parametrize("error", [StoreUnavailableError("throttled"), DENIED, MissingResourceError("no such secret")])
def test_the_last_known_versions_hold_while_the_secret_cannot_be_read(error: Exception) -> None:
    source = Source()
    source.error = error
    key = RotatingKey(source.read, clock=source.clock)
    key.versions()
    source.down = True
    source.now += LONGEST_USE

    assert key.versions() == [b"one"]
    assert key.versions() == [b"one"]
    assert source.reads == 2


def test_a_first_read_that_fails_is_tried_again() -> None:
    source = Source()
    source.down = True
    key = RotatingKey(source.read, clock=source.clock)
    with pytest.raises(StoreUnavailableError):
        key.versions()
    source.down = False

    assert key.versions() == [b"one"]
