"""List prices of AWS, in dollars, without free tier, discounts and taxes. All code takes them from here."""

from dataclasses import dataclass
from typing import Final

REGION: Final = "us-east-1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    dollars: float
    #: The number of units that it buys.
    units: float
    unit: str
    #: The page of AWS that has it.
    source: str
    #: Year and month, or day, of the text that quotes it: of the source itself, or of another one. Empty: it was not
    #: found in any dated text.
    quoted: str

    def of(self, units: float) -> float:
        return units * self.dollars / self.units


MILLION: Final = 1e6
THOUSAND: Final = 1e3
#: DynamoDB means 2^30 bytes, and not every price says which it means. With the smaller one, no line is too low.
#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html
GIGABYTE: Final = 1e9

_DYNAMODB: Final = "https://aws.amazon.com/dynamodb/pricing/on-demand/"
_SQS: Final = "https://aws.amazon.com/sqs/pricing/"
_LAMBDA: Final = "https://aws.amazon.com/lambda/pricing/"
_CLOUDWATCH: Final = "https://aws.amazon.com/cloudwatch/pricing/"
_S3: Final = "https://aws.amazon.com/s3/pricing/"

DYNAMODB_WRITES: Final = Price(
    dollars=0.625, units=MILLION, unit="write request unit, on demand", source=_DYNAMODB, quoted="2024-11"
)
DYNAMODB_READS: Final = Price(
    dollars=0.125, units=MILLION, unit="read request unit, on demand", source=_DYNAMODB, quoted="2024-11"
)
DYNAMODB_STORAGE: Final = Price(
    dollars=0.25,
    units=1,
    unit="gigabyte-month of a table",
    source="https://aws.amazon.com/dynamodb/pricing/",
    quoted="",
)
DYNAMODB_BACKUP: Final = Price(
    dollars=0.20, units=1, unit="gigabyte-month of point-in-time recovery", source=_DYNAMODB, quoted=""
)
SQS_REQUESTS: Final = Price(
    dollars=0.40, units=MILLION, unit="request of a standard queue", source=_SQS, quoted="2026-03"
)
SQS_FAIR_REQUESTS: Final = Price(
    dollars=0.50, units=MILLION, unit="request of a standard queue with message groups", source=_SQS, quoted="2026-03"
)
LAMBDA_REQUESTS: Final = Price(dollars=0.20, units=MILLION, unit="invocation", source=_LAMBDA, quoted="2026-05")
LAMBDA_DURATION: Final = Price(
    dollars=0.0000133334, units=1, unit="gigabyte-second, arm64", source=_LAMBDA, quoted="2026-05"
)
LAMBDA_SNAPSHOTS: Final = Price(
    dollars=0.0000015046, units=1, unit="gigabyte-second of a snapshot, Python", source=_LAMBDA, quoted="2026-05"
)
HTTP_API_REQUESTS: Final = Price(
    dollars=1.00,
    units=MILLION,
    unit="request of an HTTP API, up to 512 KB",
    source="https://aws.amazon.com/api-gateway/pricing/",
    quoted="2026-08-12",
)
SCHEDULER_CALLS: Final = Price(
    dollars=1.00,
    units=MILLION,
    unit="invocation by EventBridge Scheduler",
    source="https://aws.amazon.com/eventbridge/pricing/",
    quoted="2026-08-12",
)
#: Not used by jobs of Tidemill: `make bench` compares with them.
STATE_TRANSITIONS: Final = Price(
    dollars=0.025,
    units=THOUSAND,
    unit="state transition of a standard workflow of Step Functions",
    source="https://aws.amazon.com/step-functions/pricing/",
    quoted="",
)
DURABLE_OPERATIONS: Final = Price(
    dollars=8.00, units=MILLION, unit="operation of a Lambda durable function", source=_LAMBDA, quoted="2026-09-20"
)
LOG_INGESTION: Final = Price(
    dollars=0.50, units=GIGABYTE, unit="byte of CloudWatch Logs", source=_CLOUDWATCH, quoted="2026-06"
)
LOG_STORAGE: Final = Price(
    dollars=0.03, units=1, unit="gigabyte-month of CloudWatch Logs", source=_CLOUDWATCH, quoted=""
)
METRICS: Final = Price(
    dollars=0.30, units=1, unit="custom metric a month, of the first 10,000", source=_CLOUDWATCH, quoted="2026-02"
)
ALARM_METRICS: Final = Price(dollars=0.10, units=1, unit="metric of an alarm a month", source=_CLOUDWATCH, quoted="")
COMPOSITE_ALARMS: Final = Price(dollars=0.50, units=1, unit="composite alarm a month", source=_CLOUDWATCH, quoted="")
DASHBOARDS: Final = Price(dollars=3.00, units=1, unit="dashboard a month", source=_CLOUDWATCH, quoted="2026-06")
SECRETS: Final = Price(
    dollars=0.40,
    units=1,
    unit="secret a month",
    source="https://aws.amazon.com/secrets-manager/pricing/",
    quoted="",
)
FILE_WRITES: Final = Price(
    dollars=0.005, units=THOUSAND, unit="PUT request of S3 Standard", source=_S3, quoted="2026-09-28"
)
FILE_READS: Final = Price(
    dollars=0.0004, units=THOUSAND, unit="GET request of S3 Standard", source=_S3, quoted="2026-09-28"
)
FILE_STORAGE: Final = Price(
    dollars=0.023, units=1, unit="gigabyte-month of S3 Standard", source=_S3, quoted="2026-09-28"
)


def all_prices() -> dict[str, Price]:
    """By name, in the order above."""
    return {name: value for name, value in globals().items() if isinstance(value, Price)}
