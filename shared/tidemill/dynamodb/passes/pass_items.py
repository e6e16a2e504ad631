"""The items that hold the state of passes over the table: one for the pass, and one for each segment. Pure.

They are in the table itself. They have no `due` and no state, so neither a scan nor the stream takes them for jobs.
"""

from typing import Final

from tidemill.application.passes.pass_state import Segment, TablePass
from tidemill.aws.attribute_values import milliseconds, number, text
from tidemill.aws.clients import Item
from tidemill.dynamodb.document import from_milliseconds
from tidemill.dynamodb.update_requests import Request
from tidemill.names import JOB_KEY

#: A tenant never begins with it, so it is never the prefix of a job's key.
PREFIX: Final = "!pass#"
PASS_KEY: Final[Item] = {JOB_KEY: text(f"{PREFIX}reconcile")}
VERSION: Final = "version"
_TIMES: Final = ("began_at", "covered_since", "ended_at", "held_until")


def segment_key(number_: int) -> Item:
    return {JOB_KEY: text(f"{PREFIX}reconcile/{number_}")}


def put_pass(table_pass: TablePass, *, version: str) -> Request:
    item = {
        **PASS_KEY,
        "number": number(table_pass.number),
        "segments": number(table_pass.segments),
        "asked": {"BOOL": table_pass.asked},
    }
    item |= {name: milliseconds(at) for name in _TIMES if (at := getattr(table_pass, name)) is not None}
    if table_pass.held_by is not None:
        item["held_by"] = text(table_pass.held_by)
    return _put_over(table_pass.version, item, version)


def decoded_pass(item: Item) -> TablePass:
    return TablePass(
        number=int(item["number"]["N"]),
        segments=int(item["segments"]["N"]),
        asked=item["asked"]["BOOL"],
        held_by=item["held_by"]["S"] if "held_by" in item else None,
        version=item[VERSION]["S"],
        **{name: from_milliseconds(item[name]) for name in _TIMES if name in item},
    )


def put_segment(segment: Segment, *, version: str) -> Request:
    item = {
        **segment_key(segment.number),
        "pass": number(segment.pass_number),
        "done": {"BOOL": segment.done},
        "items": number(segment.items),
        "tries": number(segment.tries),
    }
    if segment.cursor is not None:
        item["cursor"] = text(segment.cursor)
    return _put_over(segment.version, item, version)


def decoded_segment(item: Item, table_pass: TablePass, number_: int) -> Segment:
    """At its beginning if the item is of an earlier pass, and done if it is of a later one. `item` may be empty."""
    version = item[VERSION]["S"] if item else None
    saved_by = int(item["pass"]["N"]) if item else 0
    if saved_by != table_pass.number:
        # A slow run of an ended pass must not put the segment of the present one back to its beginning.
        over = saved_by > table_pass.number
        return Segment(pass_number=table_pass.number, number=number_, done=over, version=version)
    return Segment(
        pass_number=table_pass.number,
        number=number_,
        cursor=item["cursor"]["S"] if "cursor" in item else None,
        done=item["done"]["BOOL"],
        items=int(item["items"]["N"]),
        tries=int(item["tries"]["N"]),
        version=version,
    )


def _put_over(read: str | None, item: Item, version: str) -> Request:
    # Since it was read, another run saved its own progress, or began or ended a pass: a put over it would move a cursor
    # past pages that no run has worked, or back.
    condition = "attribute_not_exists(#version)" if read is None else "#version = :read"
    values = {} if read is None else {"ExpressionAttributeValues": {":read": text(read)}}
    return {
        "Item": item | {VERSION: text(version)},
        "ConditionExpression": condition,
        "ExpressionAttributeNames": {"#version": VERSION},
    } | values
