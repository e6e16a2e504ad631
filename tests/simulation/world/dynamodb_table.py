"""One table of the simulated DynamoDB: its items, its indexes and its stream."""

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tests.simulation.world.errors import invalid

Item = Mapping[str, Any]
Key = tuple[str, ...]
#: Where an item stands in the order of a query: its sortable key of the index, and its key in the table.
Place = tuple[tuple[Any, ...], Key]

#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
LARGEST_ITEM_BYTES: Final = 400 * 1024
_LONGEST_KEY_BYTES: Final = 2048
#: TTL values that are older are ignored.
_OLDEST_EXPIRED_MS: Final = 5 * 365 * 86_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """Names and types of a primary key or of an index key, the sort key last."""

    names: tuple[str, ...]
    types: tuple[str, ...]

    def of(self, item: Item) -> Key | None:
        """The key of an item; None if an attribute is missing, as for items outside an index."""
        try:
            return tuple(item[name][kind] for name, kind in zip(self.names, self.types, strict=True))
        except KeyError:
            return None


@dataclass(slots=True, kw_only=True)
class Index:
    """A global secondary index. It shows the table with a lag."""

    name: str
    schema: Schema
    keys_only: bool = True
    shown: dict[Key, Item] = field(default_factory=dict)
    #: Their places by the value of the partition key, in the order of a query.
    places: dict[str, list[Place]] = field(default_factory=lambda: defaultdict(list))
    #: (time of the update, key of the item, new entry or None), in order for each item.
    coming: list[tuple[int, Key, Item | None]] = field(default_factory=list)

    def catch_up(self, now_ms: int) -> None:
        later = []
        behind: set[Key] = set()
        for entry in self.coming:
            shows_ms, key, item = entry
            if shows_ms > now_ms or key in behind:
                behind.add(key)
                later.append(entry)
            else:
                self._show(key, item)
        self.coming = later

    def _show(self, key: Key, item: Item | None) -> None:
        if before := self.shown.pop(key, None):
            place = place_of(self.schema, key, before)
            places = self.places[_partition(self.schema, before)]
            del places[bisect_left(places, place)]
        if item is not None:
            self.shown[key] = item
            insort(self.places[_partition(self.schema, item)], place_of(self.schema, key, item))

    def rows(self, partition: str, *, after: Place | None, backward: bool) -> Iterator[tuple[Key, Item]]:
        """Return the rows of a partition in order, behind a place whose entry may have left the index."""
        places = self.places[partition]
        if backward:
            places = places[: bisect_left(places, after)][::-1] if after else places[::-1]
        elif after:
            places = places[bisect_right(places, after) :]
        return ((key, self.shown[key]) for _, key in places)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A stream record."""

    sequence: int
    at_ms: int
    before: Item | None
    after: Item | None
    keys: Item
    #: Index in `Table.shards`. All records of one item are in one shard.
    shard: int
    by_ttl: bool = False

    @property
    def name(self) -> str:
        return "INSERT" if self.before is None else "REMOVE" if self.after is None else "MODIFY"


class Table:
    """All writes use `put`, which adds stream records and updates the indexes."""

    def __init__(
        self,
        name: str,
        schema: Schema,
        *,
        indexes: tuple[Index, ...] = (),
        ttl: str = "",
        shards: int = 2,
        lag: Callable[[], int] = lambda: 0,
    ) -> None:
        self.name = name
        self.schema = schema
        self.indexes = {index.name: index for index in indexes}
        self.ttl = ttl
        self.items: dict[Key, Item] = {}
        #: By key, the time of the last change and the item before it, for eventually consistent reads.
        self.earlier: dict[Key, tuple[int, Item | None]] = {}
        self.shards: list[list[Record]] = [[] for _ in range(shards)]
        self.watchers: list[Callable[[Record], None]] = []
        #: Items that a transaction holds.
        self.held: set[Key] = set()
        self._lag = lag
        self._sequence = 0

    def key(self, given: Item) -> Key:
        """The primary key in an item or a request."""
        key = self.schema.of(given)
        if key is None:
            raise invalid("The provided key element does not match the schema")
        if "" in key:
            raise invalid("One or more parameter values are not valid. A key attribute cannot be an empty string")
        if len(key[0].encode()) > _LONGEST_KEY_BYTES:
            raise invalid("One or more parameter values are not valid. Size of the key has exceeded 2048 bytes")
        return key

    def put(self, key: Key, after: Item | None, *, now_ms: int, by_ttl: bool = False) -> None:
        before = self.items.get(key)
        if after is None:
            self.items.pop(key, None)
        else:
            self.items[key] = after
        # "If you perform a PutItem or UpdateItem operation that does not change any data in an item, DynamoDB Streams
        # does not write a stream record for that operation."
        if before == after:
            return
        self.earlier[key] = (now_ms, before)
        for index in self.indexes.values():
            self._show(index, key, before, after, now_ms)
        self._sequence += 1
        image = after or before or {}
        record = Record(
            sequence=self._sequence,
            at_ms=now_ms,
            before=before,
            after=after,
            keys={name: image[name] for name in self.schema.names},
            shard=sum(key[0].encode()) % len(self.shards),
            by_ttl=by_ttl,
        )
        self.shards[record.shard].append(record)
        for watch in self.watchers:
            watch(record)

    def checked(self, item: Item) -> Item:
        """The item, if the table can hold it. Raises `ServiceError`."""
        self.key(item)
        for index in self.indexes.values():
            for name, kind in zip(index.schema.names, index.schema.types, strict=True):
                if name in item and not item[name].get(kind):
                    raise invalid(f"The attribute {name} is a key of index {index.name} and must be of type {kind}")
        if size(item) > LARGEST_ITEM_BYTES:
            raise invalid("Item size has exceeded the maximum allowed size")
        return item

    def expired(self, now_ms: int) -> Iterator[Key]:
        """Keys of the items whose TTL has passed."""
        if self.ttl:
            for key, item in self.items.items():
                if self.ttl in item and "N" in item[self.ttl]:
                    over_ms = now_ms - int(item[self.ttl]["N"]) * 1000
                    if 0 < over_ms < _OLDEST_EXPIRED_MS:
                        yield key

    def _show(self, index: Index, key: Key, before: Item | None, after: Item | None, now_ms: int) -> None:
        wanted = after if after is not None and index.schema.of(after) is not None else None
        if wanted is None and (before is None or index.schema.of(before) is None):
            return
        if wanted is not None and index.keys_only:
            names = {*self.schema.names, *index.schema.names}
            wanted = {name: value for name, value in wanted.items() if name in names}
        index.coming.append((now_ms + self._lag(), key, wanted))


def place_of(schema: Schema, key: Key, item: Item) -> Place:
    """Numbers are ordered by value."""
    position = schema.of(item) or ()
    return tuple((int(part), "") if part.lstrip("-").isdigit() else (0, part) for part in position), key


def _partition(schema: Schema, item: Item) -> str:
    return str(item[schema.names[0]][schema.types[0]])


def size(item: Item) -> int:
    """Bytes, roughly as DynamoDB counts: names and values in UTF-8."""
    return sum(len(name.encode()) + _size(value) for name, value in item.items())


def _size(value: Mapping[str, Any]) -> int:
    ((kind, held),) = value.items()
    if kind == "S":
        return len(held) if held.isascii() else len(held.encode())
    if kind == "N":
        return len(held) // 2 + 2
    if kind == "M":
        return 3 + size(held)
    if kind == "L":
        return 3 + sum(1 + _size(entry) for entry in held)
    if kind in {"SS", "NS", "BS"}:
        return 3 + sum(len(entry) for entry in held)
    return len(held) if kind == "B" else 1
