"""List prices of AWS in us-east-1, in dollars, without free tier and discounts."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    dollars: float
    #: The number of units that it buys.
    units: float
    unit: str
    source: str
    #: The date of the page that quotes it: of the source itself, or of another one.
    quoted: str

    def of(self, units: float) -> float:
        return units * self.dollars / self.units


MILLION: Final = 1e6
GIGABYTE: Final = 1e9

DYNAMODB_WRITES: Final = Price(
    dollars=0.625,
    units=MILLION,
    unit="write request unit, on demand",
    source="https://aws.amazon.com/dynamodb/pricing/on-demand/",
    quoted="2024-11",
)
SQS_REQUESTS: Final = Price(
    dollars=0.40,
    units=MILLION,
    unit="request of a standard queue",
    source="https://aws.amazon.com/sqs/pricing/",
    quoted="2026-03",
)
SQS_FAIR_REQUESTS: Final = Price(
    dollars=0.50,
    units=MILLION,
    unit="request of a standard queue with message groups",
    source="https://aws.amazon.com/sqs/pricing/",
    quoted="2026-03",
)
LAMBDA_REQUESTS: Final = Price(
    dollars=0.20,
    units=MILLION,
    unit="invocation",
    source="https://aws.amazon.com/lambda/pricing/",
    quoted="2026-05",
)
LAMBDA_DURATION: Final = Price(
    dollars=0.0000133334,
    units=1,
    unit="gigabyte-second, arm64",
    source="https://aws.amazon.com/lambda/pricing/",
    quoted="2026-05",
)
HTTP_API_REQUESTS: Final = Price(
    dollars=1.00,
    units=MILLION,
    unit="request of an HTTP API",
    source="https://aws.amazon.com/api-gateway/pricing/",
    quoted="2025-05",
)
LOG_INGESTION: Final = Price(
    dollars=0.50,
    units=GIGABYTE,
    unit="byte of CloudWatch Logs",
    source="https://aws.amazon.com/cloudwatch/pricing/",
    quoted="2026-06",
)
