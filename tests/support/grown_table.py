"""A jobs table on moto with many documents, which are not written one by one, and whose indexes answer in time."""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from datetime import datetime, timedelta
from typing import Any, Final
from unittest import mock

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.dynamodb.models import dynamodb_backends
from moto.dynamodb.models.dynamo_type import DynamoType
from moto.dynamodb.models.dynamo_type import Item as StoredItem
from moto.dynamodb.models.table import Table as StoredTable

from tests.support.builders import TENANT, a_job
from tests.support.job_tables import REGION, Table
from tidemill.domain.states import State
from tidemill.dynamodb.document import encode
from tidemill.dynamodb.indexes import Indexes
from tidemill.names import ATTENTION_KEY, JOB_KEY, LISTING_KEY

_INDEXES: Final = Indexes(listed=True, shards=4)
_KEYS: Final = (ATTENTION_KEY, LISTING_KEY)
_query: Final = StoredTable.query


@contextmanager
def grown(table: Table, documents: int, *, dead: int, now: datetime) -> Iterator[None]:
    """Add jobs that have ended. While this is open, a query reads only the partition that it names.

    Of the newest jobs each second one is dead, until `dead` of them are. They leave the table at the end.

    moto itself looks at each item of a table in each query.
    """
    stored: Any = dynamodb_backends[DEFAULT_ACCOUNT_ID][REGION].get_table(table.name)
    partitions: defaultdict[str, list[StoredItem]] = defaultdict(list)
    keys = set()
    for item in _items(documents, dead, now):
        stored.items[item.hash_key] = item
        keys.add(item.hash_key)
        for name in _KEYS:
            if name in item.attrs:
                partitions[item.attrs[name].value].append(item)

    def query(self: Any, *args: Any, **options: Any) -> Any:
        ((_, partition),) = options["hash_key_conditions"]
        others = [item for key, item in self.items.items() if key not in keys]
        candidates = sorted([*partitions[partition.value], *others], key=lambda item: item.hash_key)
        with mock.patch.object(self, "all_items", return_value=candidates):
            return _query(self, *args, **options)

    with mock.patch.object(StoredTable, "query", query):
        yield
    for item_key in keys:
        del stored.items[item_key]


def _items(documents: int, dead: int, now: datetime) -> Iterator[StoredItem]:
    states = (State.SUCCEEDED, State.DEAD)
    patterns = [_pattern(state, now) for state in states]
    for number in range(documents):
        place = number % 2 if number >= documents - 2 * dead else 0
        state, pattern = states[place], patterns[place]
        job_id = f"{number:036}"
        at = now - timedelta(days=2) + timedelta(milliseconds=number)
        item = copy(pattern)
        item.hash_key = DynamoType({"S": f"{TENANT}#{job_id}"})
        changed = {JOB_KEY: item.hash_key, **_typed(_INDEXES.listing(TENANT, job_id))}
        if state is State.DEAD:
            changed |= _typed(_INDEXES.attention(state, job_id, at))
        changed |= {"created_at": DynamoType({"N": str(round(at.timestamp() * 1000))})}
        item.attrs = copy(pattern.attrs)
        item.attrs.update(changed)
        yield item


def _pattern(state: State, now: datetime) -> StoredItem:
    at = now - timedelta(days=2)
    document = encode(a_job(tenant=TENANT, state=state, finished_at=at, expires_at=now + timedelta(days=28)))
    return StoredItem(DynamoType(document[JOB_KEY]), None, document)


def _typed(attributes: dict[str, Any]) -> dict[str, DynamoType]:
    return {name: DynamoType(value) for name, value in attributes.items()}
