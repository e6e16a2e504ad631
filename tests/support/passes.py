"""Passes over a table of a test."""

from itertools import count

from tests.support.job_tables import Table
from tidemill.application.passes.pace import Pace
from tidemill.application.passes.table_pass import TablePasses
from tidemill.application.ports import Clock, TableScan
from tidemill.dynamodb.passes.pass_store import DynamoPasses
from tidemill.dynamodb.passes.table_scan import DynamoTableScan

_tokens = count(1)


def passes_of(table: Table, clock: Clock, *, scan: TableScan | None = None) -> TablePasses:
    """Passes over the table that never wait for their rate."""
    return TablePasses(
        store=DynamoPasses(table.client, table=table.name, new_token=fresh_token),
        scan=scan or DynamoTableScan(table.client, table=table.name),
        pace=Pace(1_000_000, clock=clock, pause=lambda _seconds: None),
        clock=clock,
        new_token=fresh_token,
        draw=lambda: 0.5,
    )


def fresh_token() -> str:
    return f"token-{next(_tokens)}"
