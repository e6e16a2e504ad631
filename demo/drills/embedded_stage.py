"""`EmbeddedStage`: the app on the embedded AWS, as drills use it."""

import functools
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any, Final

from rich.console import Console

from demo.drills import aws_command
from demo.drills.alarm_watch import AlarmLog, alarm_id
from demo.drills.downstream import Downstream, LoopbackDownstream
from demo.drills.errors import DrillError
from demo.drills.stage import Answer
from demo.observe import all_jobs
from tidemill.domain.job import Job
from tidemill.domain.states import State as JobState
from tidemill.dynamodb.document import decode
from tidemill.local import cdk_deploy, environment, processes
from tidemill.local.alarm_watch import installed_alarms, process
from tidemill.local.alarms import State
from tidemill.local.lifecycle import App, CommandError
from tidemill.local.signed_caller import Caller
from tidemill.local.wait import wait_until
from tidemill.names import CANARY_TYPE, LARGEST_BATCH, Output

#: Seconds of a minute of the alarms. A shorter one leaves a slow machine no time for what happens in a minute.
MINUTE_SECONDS: Final = 3.0
START_PATIENCE_SECONDS: Final = 30
#: Without this alarm, silence is not a fault: the stage is new.
ESTABLISHED: Final = "Established"
#: Minutes. Ten calls of wake turn them on; before them, the watch synthesises the template.
ESTABLISHED_WITHIN: Final = 80
#: Minutes after which no alarm judges the time before the watch.
SETTLED_AFTER: Final = 8


class EmbeddedStage:
    def __init__(self, app: App) -> None:
        self.app = app
        self._callers: dict[str, Caller] = {}

    def client(self, service: str) -> Any:
        return self.app.client(service)

    def function(self, verb: str) -> str:
        return self.app.functions[verb]

    def mapping(self, verb: str) -> str:
        return self.app.mapping(verb)

    def schedule(self, verb: str) -> Mapping[str, Any]:
        scheduler = self.client("scheduler")
        taken = scheduler.meta.service_model.operation_model("UpdateSchedule").input_shape.members
        listed = [each for page in scheduler.get_paginator("list_schedules").paginate() for each in page["Schedules"]]
        whole = [scheduler.get_schedule(Name=each["Name"], GroupName=each["GroupName"]) for each in listed]
        # The ARN ends with an alias of the function.
        (found,) = [each for each in whole if self.function(verb) in each["Target"]["Arn"].split(":")]
        return {name: value for name, value in found.items() if name in taken}

    def submit(self, jobs: Sequence[Mapping[str, Any]], *, role: str) -> Sequence[str | None]:
        caller = self._caller(role)
        ids: list[str | None] = []
        for start in range(0, len(jobs), LARGEST_BATCH):
            batch = jobs[start : start + LARGEST_BATCH]
            body = json.dumps({"jobs": batch}).encode()
            answer = self.app.request("POST", "/jobs/batch", body=body, caller=caller)
            refused: Any = [{}] * len(batch)
            decided = answer.json()["jobs"] if answer.status == HTTPStatus.OK else refused
            ids += [each["job"]["id"] if each.get("status") == HTTPStatus.ACCEPTED else None for each in decided]
        return ids

    def submit_one(self, job: Mapping[str, Any], *, role: str) -> Answer:
        caller = self._caller(role)
        answer = self.app.request("POST", "/jobs", body=json.dumps(job).encode(), caller=caller)
        after = answer.headers.get("retry-after")
        accepted = answer.status == HTTPStatus.ACCEPTED
        return Answer(answer.status, answer.json()["id"] if accepted else None, int(after) if after else None)

    def _caller(self, role: str) -> Caller:
        if role not in self._callers:
            self._callers[role] = self.app.assume(role)
        return self._callers[role]

    def jobs(self, ids: Collection[str]) -> Mapping[str, Job]:
        wanted = frozenset(ids)
        return {job.id: job for job in all_jobs(self.app) if job.id in wanted}

    def effects(self, ledgers: Collection[str]) -> Mapping[str, Sequence[str]]:
        pages = self.client("dynamodb").get_paginator("scan").paginate(TableName=self._ledger)
        items = {item["name"]["S"]: item["words"]["L"] for page in pages for item in page["Items"]}
        return {name: [word["S"] for word in items[name]] for name in ledgers if name in items}

    @functools.cached_property
    def _ledger(self) -> str:
        (table,) = [name for name in self.client("dynamodb").list_tables()["TableNames"] if "DemoLedger" in name]
        return str(table)

    def downstream(self) -> Downstream:
        return LoopbackDownstream()

    def jobs_table(self) -> str:
        return self.app.outputs[Output.JOBS_TABLE]

    def canaries(self) -> Sequence[Job]:
        pages = (
            self.client("dynamodb")
            .get_paginator("scan")
            .paginate(
                TableName=self.jobs_table(),
                FilterExpression="#type = :canary",
                ExpressionAttributeNames={"#type": "type"},
                ExpressionAttributeValues={":canary": {"S": CANARY_TYPE}},
            )
        )
        return [decode(item) for page in pages for item in page["Items"]]

    def deploy(self, settings: Sequence[str]) -> None:
        keys = environment.root_keys(self.app.folder.name)
        outputs = cdk_deploy.deploy(self.app.folder, self.app.endpoint, keys, Console(stderr=True), context=settings)
        self.app = App(self.app.folder, self.app.endpoint, outputs)

    def deploy_variable(self, verb: str, name: str, value: str) -> None:
        self.app.set_function_variable(verb, name, value)

    def kill_worker(self, verb: str, ids: Collection[str]) -> None:
        def run() -> bool:
            return any(job.state is JobState.RUNNING for job in self.jobs(ids).values())

        wait_until(run, START_PATIENCE_SECONDS, "a job to run")
        self.app.kill_worker(verb)

    def status(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = json.loads(self.app.tidemill("status", "--json").stdout)
        return found

    def explain(self, id_: str) -> str:
        return self.app.tidemill("explain", id_).stdout

    def execute(self, words: Sequence[str]) -> None:
        program, *arguments = words
        if program == "tidemill":
            self.app.tidemill(*arguments)
        elif program == "aws":
            aws_command.run(arguments, self.client)
        else:
            raise CommandError(f"not a command of an operator: {program}")


@contextmanager
def watched(app: App, *, minute_seconds: float) -> Iterator[AlarmLog]:
    """A watch of the alarms, and a subscriber of the pages, without whom a further alarm fires."""
    sqs, sns = app.client("sqs"), app.client("sns")
    url = sqs.create_queue(QueueName="drill-pages")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    subscription = sns.subscribe(
        TopicArn=app.outputs[Output.ALARM_TOPIC], Protocol="sqs", Endpoint=arn, ReturnSubscriptionArn=True
    )
    # The CloudFormation of the embedded AWS leaves out TTL and backups of tables, so the alarm on drift would fire.
    app.tidemill("repair", "--reason", "the embedded AWS has not set it", "--yes")
    log = app.folder / process.LOG
    offset = log.stat().st_size if log.exists() else 0
    process.restart(app.folder, minute_seconds=minute_seconds)
    try:
        watch = AlarmLog(log, offset=offset, minute_seconds=minute_seconds)
        _await_established(app, watch)
        yield watch
    finally:
        processes.end_watch(app.folder)
        sns.unsubscribe(SubscriptionArn=subscription["SubscriptionArn"])
        sqs.delete_queue(QueueUrl=url)


def _await_established(app: App, watch: AlarmLog) -> None:
    """Raises DrillError if the alarms on silence do not come on."""
    for _ in range(ESTABLISHED_WITHIN):
        watch.next()
        # An earlier watch may have turned them on, and nothing called the schedules between the two.
        known = installed_alarms.states(app.client("cloudwatch"))
        established = any(alarm_id(name) == ESTABLISHED and state is State.ALARM for name, state in known.items())
        if established and watch.evaluations > SETTLED_AFTER:
            return
    raise DrillError(f"the alarms on silence are not on after {ESTABLISHED_WITHIN} minutes")
