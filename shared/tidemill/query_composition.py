"""The part of the composition root that only query needs, so that other functions need not import it."""

from functools import cache, partial

from tidemill import composition
from tidemill.aws.secret_keys import RotatingKey, key_versions
from tidemill.dynamodb.batch_pages import DynamoBatchPages
from tidemill.dynamodb.listing import DynamoListing
from tidemill.dynamodb.member_listing import MemberListing
from tidemill.http.cursors import Cursors
from tidemill.names import Env
from tidemill.settings import setting
from tidemill.system import clock


@cache
def listing() -> DynamoListing:
    return DynamoListing(composition.dynamodb(), table=setting(Env.JOBS_TABLE), read=composition.store().get_many)


@cache
def member_listing() -> MemberListing:
    batches = DynamoBatchPages(composition.dynamodb(), table=setting(Env.JOBS_TABLE))
    return MemberListing(batches, read=composition.store().get_many)


@cache
def _cursor_key() -> RotatingKey:
    return RotatingKey(partial(key_versions, setting(Env.CURSOR_KEY_SECRET)), clock=clock.steady)


def cursors(*, newer: bool = False) -> Cursors:
    """Fetches the key of cursors, so call it only for a request that needs a cursor.

    With `newer`, it looks for a key that has replaced the one that this process knows.
    """
    return Cursors(*_cursor_key().versions(newer=newer))
