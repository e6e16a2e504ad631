"""`python -m tests.benchmarks.growth`: what a job costs beside 1,000, 100,000 and 1,000,000 documents.

It prints the table of docs/operations/scale.md, and takes some minutes and a gigabyte of memory. moto holds the table.
"""

import logging
import sys
from typing import Final

import pytest

from tests.support import faster_moto
from tests.support.deployed_functions import mill_on
from tests.support.growth import Used, growing, used_beside
from tests.support.job_tables import table_on_moto

#: Documents, and how many of them are dead jobs. The others have succeeded.
SIZES: Final = ((1_000, 500), (100_000, 50_000), (1_000_000, 100_000))
HEADER: Final = (
    "| work | documents | dead jobs | calls of DynamoDB | read units | write units | bytes of answers |\n"
    "|---|---|---|---|---|---|---|"
)


def row(work: str, documents: int, dead: int, used: Used) -> str:
    counts = f"{sum(used.calls.values()):,} | {used.read_units:g} | {used.write_units:,}"
    return f"| {work} | {documents:,} | {dead:,} | {counts} | {used.bytes_read:,} |"


def main() -> None:
    logging.disable(logging.CRITICAL)
    faster_moto.install()
    sizes: dict[tuple[int, int], dict[str, Used]] = {}
    with (
        table_on_moto() as table,
        pytest.MonkeyPatch.context() as patch,
        mill_on(table, patch) as mill,
        growing(mill, patch),
    ):
        for documents, dead in SIZES:
            sizes[documents, dead] = used_beside(mill, documents, dead=dead)
    rows = [row(work, *size, used[work]) for work in next(iter(sizes.values())) for size, used in sizes.items()]
    sys.stdout.write("\n".join([HEADER, *rows, ""]))


if __name__ == "__main__":
    main()
