"""Stores the state of passes over the jobs table in the table itself: `PassStore`."""

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from tidemill.application.passes.pass_state import Segment, TablePass
from tidemill.application.ports import NewToken
from tidemill.aws.attribute_values import text
from tidemill.aws.clients import Item, translated
from tidemill.aws.refused_write import refusing_item
from tidemill.domain.records import replace
from tidemill.dynamodb.passes import pass_items
from tidemill.dynamodb.update_requests import Request

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


class DynamoPasses:
    """`PassStore` over one table."""

    def __init__(self, client: "DynamoDBClient", *, table: str, new_token: NewToken) -> None:
        self._client = client
        self._table = table
        self._new_token = new_token

    def read(self) -> TablePass | None:
        item = self._get(pass_items.PASS_KEY)
        return pass_items.decoded_pass(item) if item else None

    def write(self, table_pass: TablePass) -> bool:
        version = self._new_token()
        return self._put(pass_items.put_pass(table_pass, version=version), version)

    def segment(self, table_pass: TablePass, number: int) -> Segment:
        return pass_items.decoded_segment(self._get(pass_items.segment_key(number)), table_pass, number)

    def save(self, segment: Segment) -> Segment | None:
        version = self._new_token()
        written = self._put(pass_items.put_segment(segment, version=version), version)
        return replace(segment, version=version) if written else None

    def _get(self, key: Item) -> Item:
        with translated():
            answer = self._client.get_item(TableName=self._table, Key=key, ConsistentRead=True)
        return answer.get("Item", {})

    def _put(self, request: Request, version: str) -> bool:
        try:
            with translated():
                self._client.put_item(TableName=self._table, ReturnValuesOnConditionCheckFailure="ALL_OLD", **request)
        except ClientError as error:
            current = refusing_item(error) or {}
            # The SDK repeats a write whose response was lost. Then the item has this version already.
            return bool(current.get(pass_items.VERSION) == text(version))
        return True
