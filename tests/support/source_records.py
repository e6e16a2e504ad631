"""What AWS delivers to the function of a source, as its documentation shows it."""

import json
from typing import Any


def message(body: Any, message_id: str = "m1") -> dict[str, Any]:
    text = body if isinstance(body, str) else json.dumps(body)
    return {"messageId": message_id, "eventSource": "aws:sqs", "body": text}


def bus_event(what: str = "paid", event_id: str = "e1", **detail: Any) -> dict[str, Any]:
    """https://docs.aws.amazon.com/eventbridge/latest/ref/overiew-event-structure.html."""
    return {
        "version": "0",
        "id": event_id,
        "detail-type": "Order Paid",
        "source": "com.example.pay",
        "account": "111122223333",
        "time": "2026-01-31T12:00:00Z",
        "region": "eu-central-1",
        "resources": [],
        "detail": {"what": what, **detail},
    }


def s3_event(*keys: str, sequencer: str = "0055AED6DCD90281E5", **of_object: Any) -> dict[str, Any]:
    """https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html."""
    return {
        "Records": [
            {
                "eventVersion": "2.1",
                "eventSource": "aws:s3",
                "awsRegion": "eu-central-1",
                "eventTime": "2026-01-31T12:00:00.000Z",
                "eventName": "ObjectCreated:Put",
                "s3": {
                    "bucket": {"name": "uploads"},
                    "object": {"key": key, "size": 7, "eTag": "abc", "sequencer": sequencer, **of_object},
                },
            }
            for key in keys
        ]
    }


def sns_message(what: Any = "sent", message_id: str = "s1") -> dict[str, Any]:
    """https://docs.aws.amazon.com/sns/latest/dg/sns-sqs-as-subscriber.html."""
    return {
        "Type": "Notification",
        "MessageId": message_id,
        "TopicArn": "arn:aws:sns:eu-central-1:111122223333:facts",
        "Message": json.dumps({"what": what}),
        "Timestamp": "2026-01-31T12:00:00.000Z",
        "MessageAttributes": {"colour": {"Type": "String", "Value": "red"}, "raw": {"Type": "Binary", "Value": "AA=="}},
    }


def change(what: str, sequence: str, *, before: str | None = None, **other: Any) -> dict[str, Any]:
    """https://docs.aws.amazon.com/lambda/latest/dg/with-ddb.html."""
    old = {"OldImage": {"pk": {"S": "1"}, "what": {"S": before}}} if before else {}
    return {
        "eventID": f"event-{sequence}",
        "eventName": "MODIFY" if before else "INSERT",
        "eventSource": "aws:dynamodb",
        "eventSourceARN": "arn:aws:dynamodb:eu-central-1:111122223333:table/Items/stream/2026-01-01T00:00:00.000",
        "dynamodb": {
            "ApproximateCreationDateTime": 1_780_000_000.0,
            "Keys": {"pk": {"S": "1"}},
            "NewImage": {"pk": {"S": "1"}, "what": {"S": what}},
            "SequenceNumber": sequence,
            **old,
            **other,
        },
    }
