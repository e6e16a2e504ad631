"""A job file with a source of each kind. The test copies it to `functions/jobs`."""

from pydantic import BaseModel

from tidemill import (
    EventBridgeRecord,
    Run,
    S3Record,
    SnsRecord,
    TableRecord,
    consumes,
    event_source,
    event_type,
    job_type,
)


class Fact(BaseModel):
    what: str


happened = event_type("fact.happened", data=Fact)


@consumes("fact.happened")
@job_type("fact.note", payload=Fact)
def note(fact: Fact, run: Run) -> str:
    return fact.what


@event_source("bus", publishes="fact.happened")
def of_bus(record: EventBridgeRecord) -> Fact:
    return Fact(what=f"bus {record.detail['what']}")


@event_source("uploads", publishes="fact.happened")
def of_s3(record: S3Record) -> Fact:
    return Fact(what=f"uploads {record.key}")


@event_source("topic", publishes="fact.happened")
def of_sns(record: SnsRecord) -> Fact:
    return Fact(what=f"topic {record.json()['what']}")


@event_source("items", publishes="fact.happened")
def of_table(record: TableRecord) -> Fact | None:
    return Fact(what=f"items {record.new['what']}") if record.new else None
