"""Deploys a copy of the app with four sources. Each service delivers a record, and each function is called twice.

Its argument is a JSON object: by source, the record for the calls. It prints the number of events, and what the jobs of
their consumer have noted. It runs in the folder of the copy.
"""

import json
import sys
from typing import Any

from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.dynamodb.document import decode
from tidemill.local.lifecycle import App, deployed
from tidemill.local.wait import wait_until
from tidemill.names import EVENT_TYPE, LIVE_ALIAS, Env, Output

_NAME = "facts"
_PATIENCE_SECONDS = 240


def main() -> None:
    records = json.loads(sys.argv[1])
    with deployed() as app:
        _let_each_service_deliver(app)
        wait_until(lambda: _ended(app) >= len(records), _PATIENCE_SECONDS, "the records of the services")
        for source, record in records.items():
            for _ in range(2):
                _call(app, source, record)
        wait_until(lambda: _ended(app) >= 2 * len(records), _PATIENCE_SECONDS, "the records of the calls")
        jobs = _jobs(app)
        noted = sorted(job.result or job.state for job in jobs if job.type == "fact.note")
        sys.stdout.write(json.dumps({"events": sum(job.type == EVENT_TYPE for job in jobs), "noted": noted}))


def _let_each_service_deliver(app: App) -> None:
    entry = {
        "Source": "com.example.pay",
        "DetailType": "Order Paid",
        "Detail": '{"what":"sent"}',
        "EventBusName": _NAME,
    }
    app.client("events").put_events(Entries=[entry])
    app.client("s3").put_object(Bucket=_NAME, Key="sent", Body=b"x")
    sns = app.client("sns")
    (topic,) = [each["TopicArn"] for each in sns.list_topics()["Topics"] if each["TopicArn"].endswith(f":{_NAME}")]
    sns.publish(TopicArn=topic, Message='{"what":"sent"}')
    app.client("dynamodb").put_item(TableName=_NAME, Item={"pk": {"S": "1"}, "what": {"S": "sent"}})


def _call(app: App, source: str, record: Any) -> None:
    lambda_ = app.client("lambda")
    pages = lambda_.get_paginator("list_functions").paginate()
    functions = [each for page in pages for each in page["Functions"]]
    (name,) = [
        each["FunctionName"]
        for each in functions
        if each.get("Environment", {}).get("Variables", {}).get(Env.SOURCE) == source
    ]
    answer = lambda_.invoke(FunctionName=name, Qualifier=LIVE_ALIAS, Payload=json.dumps({"Records": [record]}))
    answered = json.loads(answer["Payload"].read())
    assert answered == {"batchItemFailures": []}, answered


def _jobs(app: App) -> list[Job]:
    pages = app.client("dynamodb").get_paginator("scan").paginate(TableName=app.outputs[Output.JOBS_TABLE])
    return [decode(item) for page in pages for item in page["Items"] if "state" in item]


def _ended(app: App) -> int:
    return sum(job.type == "fact.note" and job.state is State.SUCCEEDED for job in _jobs(app))


if __name__ == "__main__":
    main()
