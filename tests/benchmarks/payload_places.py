"""`python -m tests.benchmarks.payload_places` prints where a payload costs least.

Dollars are those of the model of `tidemill cost`, for jobs with its defaults. The payloads are orders, as JSON, whose
numbers are random and whose names repeat.
"""

import json
import sys
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from statistics import median
from typing import Final

from tidemill.cost import measured
from tidemill.cost.bill import Usage, lines, total
from tidemill.cost.job_usage import of_one_job, write_units
from tidemill.cost.payload_places import break_even_bytes
from tidemill.cost.profile import Profile
from tidemill.dynamodb.payloads import ITEM_KEY_BYTES, LARGEST_ITEM_BYTES

SIZES: Final = (300, 500, 1_000, 2_000, 4_000, 16_000, 64_000)
_MILLION: Final = 1e6
_NAMES: Final = ("Walking boots", "Tent for two", "Gas stove", "Rain jacket", "Water filter")
#: Insert, claim and settle write the document.
_WRITES: Final = 3
_SMALL: Final = Profile()


@dataclass(frozen=True, slots=True)
class Row:
    """Dollars of a million jobs with this payload, by place."""

    payload_bytes: int
    compressed_bytes: int
    document: float
    item: float
    compressed: float
    file: float

    @property
    def cheapest(self) -> str:
        places = {"document": self.document, "item": self.item, "compressed item": self.compressed, "file": self.file}
        return min(places, key=lambda place: round(places[place], 2))


def order(size_bytes: int) -> bytes:
    """Return an order of about this size."""
    random, articles, text = Random(size_bytes), list[dict[str, object]](), ""
    while len(text) < size_bytes:
        name = f"{random.choice(_NAMES)} {random.choice('SML')}"
        article = {"number": f"{random.randrange(10**8):08d}", "name": name, "cents": random.randrange(199, 99_999)}
        articles.append(article)
        text = json.dumps({"order": 7, "articles": articles}, separators=(",", ":"))
    return text.encode()


def rows() -> list[Row]:
    return [_row(order(size)) for size in SIZES]


def _row(payload: bytes) -> Row:
    size, packed = len(payload), len(zlib.compress(payload))
    as_item = replace(_SMALL, payload_bytes=max(size, 401), payload_item_bytes=LARGEST_ITEM_BYTES)
    # It is compressed only if that saves write units.
    saves = write_units(packed + ITEM_KEY_BYTES) < write_units(size + ITEM_KEY_BYTES)
    more_units = write_units(measured.DOCUMENT_BYTES + size) - write_units(measured.DOCUMENT_BYTES)
    return Row(
        payload_bytes=size,
        compressed_bytes=packed,
        document=_dollars(of_one_job(_SMALL) + Usage(write_units=_WRITES * more_units)),
        item=_dollars(of_one_job(as_item)),
        compressed=_dollars(of_one_job(replace(as_item, compression=size / packed if saves else 1.0))),
        file=_dollars(of_one_job(replace(as_item, payload_item_bytes=0))),
    )


def _dollars(usage: Usage) -> float:
    return total(lines(usage)) * _MILLION


def markdown() -> str:
    """The table of docs/operations/cost.md."""
    found = [
        "| payload, bytes | compressed | document | item | compressed item | file | cheapest |",
        "| --- " * 7 + "|",
    ]
    for row in rows():
        dollars = " | ".join(f"{each:.2f}" for each in (row.document, row.item, row.compressed, row.file))
        found.append(f"| {row.payload_bytes:,} | {row.compressed_bytes:,} | {dollars} | {row.cheapest} |")
    return "\n".join(found) + "\n"


def _cpu_ms(work: Callable[[], object]) -> float:
    times = []
    for _ in range(15):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return median(times) * 1000


def main() -> None:
    sys.stdout.write(markdown())
    for size in SIZES[-3:]:
        payload = order(size)
        packed = zlib.compress(payload)
        write, read = _cpu_ms(partial(zlib.compress, payload)), _cpu_ms(partial(zlib.decompress, packed))
        sys.stdout.write(f"{size:,} bytes: {write:.2f} ms of CPU to compress, {read:.2f} ms to decompress\n")
    kept = replace(_SMALL, retention_days=1)
    sys.stdout.write(f"an item costs no more than a file up to {break_even_bytes(_SMALL):,} bytes, ")
    sys.stdout.write(f"and up to {break_even_bytes(kept):,} bytes if jobs are kept for a day\n")


if __name__ == "__main__":
    main()
