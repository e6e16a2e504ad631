"""The shared counts of submissions in the jobs table: one item for each period of each tenant with a quota."""

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from tidemill.application.ports import NewToken
from tidemill.aws.attribute_values import milliseconds, number, seconds, text
from tidemill.aws.clients import translated
from tidemill.aws.refused_write import refusing_item
from tidemill.domain.admission.quotas import Period
from tidemill.names import JOB_KEY, QUOTA_KEY, TTL_ATTRIBUTE

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

#: Clocks differ, so an environment may still count in a period that has ended by another clock.
_KEPT: Final = timedelta(hours=1)
_COUNT: Final = "count"
_LAST: Final = "last"


class DynamoSubmissionCounts:
    """`SubmissionCounts` over one table of jobs. The items have no state, so no stream record reaches publish."""

    def __init__(self, client: "DynamoDBClient", *, table: str, new_token: NewToken) -> None:
        self._client = client
        self._table = table
        self._new_token = new_token

    def add(self, tenant: str, period: Period, count: int) -> int:
        begins = milliseconds(period.begins)["N"]
        ends = milliseconds(period.ends)["N"]
        try:
            with translated():
                answer: Any = self._client.update_item(
                    TableName=self._table,
                    Key={JOB_KEY: text(f"{QUOTA_KEY}{begins}-{ends}#{tenant}")},
                    UpdateExpression="SET #expires = :expires, #last = :token ADD #count :count",
                    # The SDK sends an applied write again: it must count once.
                    ConditionExpression="(attribute_not_exists(#last) OR #last <> :token)",
                    ExpressionAttributeNames={"#expires": TTL_ATTRIBUTE, "#last": _LAST, "#count": _COUNT},
                    ExpressionAttributeValues={
                        ":expires": seconds(period.ends + _KEPT),
                        ":token": text(self._new_token()),
                        ":count": number(count),
                    },
                    ReturnValues="ALL_NEW",
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
        except ClientError as error:
            return int((refusing_item(error) or {})[_COUNT]["N"])
        return int(answer["Attributes"][_COUNT]["N"])
