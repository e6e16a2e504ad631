"""A bill: what was used, and its price, line by line. `tidemill cost` and the benchmark price their counts with it."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from tidemill.cost import list_prices as prices
from tidemill.cost.list_prices import Price


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    name: str
    units: float
    price: Price

    @property
    def dollars(self) -> float:
        return self.price.of(self.units)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What jobs, or a month, use of AWS. A gigabyte is `list_prices.GIGABYTE`."""

    api_requests: float = 0
    write_units: float = 0
    read_units: float = 0
    table_gigabyte_months: float = 0
    backup_gigabyte_months: float = 0
    #: Requests to queues with message groups, as ours are.
    fair_requests: float = 0
    queue_requests: float = 0
    invocations: float = 0
    gigabyte_seconds: float = 0
    file_writes: float = 0
    file_reads: float = 0
    file_gigabyte_months: float = 0
    log_bytes: float = 0
    log_gigabyte_months: float = 0
    scheduled_calls: float = 0

    def times(self, factor: float) -> "Usage":
        return Usage(**{each.name: factor * getattr(self, each.name) for each in fields(Usage)})

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(**{each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(Usage)})


#: In the order of a bill: from the request of a caller to what is left of the job.
_LINES: Final[Sequence[tuple[str, str, Price]]] = (
    ("API requests", "api_requests", prices.HTTP_API_REQUESTS),
    ("table writes", "write_units", prices.DYNAMODB_WRITES),
    ("table reads", "read_units", prices.DYNAMODB_READS),
    ("queue requests", "fair_requests", prices.SQS_FAIR_REQUESTS),
    ("queue requests", "queue_requests", prices.SQS_REQUESTS),
    ("scheduler", "scheduled_calls", prices.SCHEDULER_CALLS),
    ("invocations", "invocations", prices.LAMBDA_REQUESTS),
    ("invocation time", "gigabyte_seconds", prices.LAMBDA_DURATION),
    ("file writes", "file_writes", prices.FILE_WRITES),
    ("file reads", "file_reads", prices.FILE_READS),
    ("logs", "log_bytes", prices.LOG_INGESTION),
    ("table storage", "table_gigabyte_months", prices.DYNAMODB_STORAGE),
    ("backup storage", "backup_gigabyte_months", prices.DYNAMODB_BACKUP),
    ("file storage", "file_gigabyte_months", prices.FILE_STORAGE),
    ("log storage", "log_gigabyte_months", prices.LOG_STORAGE),
)


def lines(usage: Usage) -> list[Line]:
    """Without what was not used."""
    every = (Line(name=name, units=getattr(usage, field), price=price) for name, field, price in _LINES)
    return [line for line in every if line.units]


def total(bill: Sequence[Line]) -> float:
    return sum(line.dollars for line in bill)


def as_json(bill: Sequence[Line]) -> dict[str, Any]:
    return {
        "lines": [
            {"name": line.name, "units": line.units, "unit": line.price.unit, "dollars": line.dollars} for line in bill
        ],
        "total": total(bill),
    }
