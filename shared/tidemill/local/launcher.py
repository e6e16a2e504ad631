"""Starts the emulator, inside its own environment: `python launcher.py FOLDER [--tied]`.

Fixes the behaviour of the emulator that would distort a test or a measurement, and changes nothing else. Imports no
module of Tidemill, since its environment holds only the emulator and boto3.
"""
# ruff: noqa: SLF001 - the parts to fix are private

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partialmethod
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

#: The interval of the metrics of queues (AWS: one minute), and the number of points kept: half an hour.
METRICS_SECONDS: Final = 5.0
METRICS_KEPT: Final = 360
#: Long enough to catch a line that a handler prints, and short enough not to slow down handlers that print nothing.
FIRST_LINE_SECONDS: Final = 0.01
#: The shortest timeout of the first invocation of a worker, which builds its clients. On a busy machine that takes
#: longer than the timeouts of the local stage, and each worker that is killed for it begins anew.
COLD_START_SECONDS: Final = 60
#: The name of a file in a worker's folder that exists while the worker runs an invocation.
BUSY: Final = "busy"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", help="of the instance; it also identifies the process")
    parser.add_argument(
        "--tied", action="store_true", help="end when standard input ends, which happens when the owner exits"
    )
    tied = parser.parse_args().tied
    sys.argv = sys.argv[:1]
    settings = frozenset(os.environ) - {"PATH", "LANG", "HOME", "TMPDIR"}

    from ministack import app  # noqa: PLC0415 - reads its settings when imported
    from ministack.core import lambda_runtime  # noqa: PLC0415
    from ministack.services import dynamodb  # noqa: PLC0415
    from ministack.services.cloudformation import provisioners  # noqa: PLC0415

    keep_settings_from_functions(lambda_runtime, settings)
    mark_busy_workers(lambda_runtime.Worker)
    give_cold_starts_time(lambda_runtime)
    drain_at_once(lambda_runtime.Worker)
    sign_as_own_role(lambda_runtime)
    throttle_writes(dynamodb)
    record_statements(dynamodb)
    deploy_table_settings(provisioners._RESOURCE_HANDLERS["AWS::DynamoDB::Table"], dynamodb)
    threading.Thread(target=publish_queue_metrics, daemon=True).start()
    if tied:
        threading.Thread(target=end_with_owner, daemon=True).start()
    app.main()


def keep_settings_from_functions(runtime: Any, settings: frozenset[str]) -> None:
    """A worker inherits the whole environment of the emulator. Leave out the emulator's own settings."""

    def popen(command: list[str], *, env: dict[str, str], **options: Any) -> Any:
        own = {name: value for name, value in env.items() if name not in settings or value != os.environ.get(name)}
        return subprocess.Popen(command, env=own, **options)

    runtime.subprocess = SimpleNamespace(**(vars(subprocess) | {"Popen": popen}))


def mark_busy_workers(worker: Any) -> None:
    """Mark a worker during its invocations, so that a test can kill a busy one."""
    spawn, invoke = worker._spawn, worker.invoke

    def marking_spawn(self: Any) -> None:
        spawn(self)
        Path(self._tmpdir, BUSY).touch()

    def marking_invoke(self: Any, *arguments: Any, **options: Any) -> Any:
        if self._proc:
            Path(self._tmpdir, BUSY).touch()
        try:
            return invoke(self, *arguments, **options)
        finally:
            Path(self._tmpdir, BUSY).unlink(missing_ok=True)

    worker._spawn, worker.invoke = marking_spawn, marking_invoke


def give_cold_starts_time(runtime: Any) -> None:
    """Count the cold start of a worker against no timeout of its function. The handler sees its usual deadline."""
    worker = runtime.Worker
    invoke = worker.invoke

    def patient_invoke(self: Any, *arguments: Any, **options: Any) -> Any:
        if self._proc is not None and self._proc.poll() is None:
            return invoke(self, *arguments, **options)
        # With its own timeout, which the process keeps.
        runtime.ensure_spawned(self)
        config = self.config
        self.config = {**config, "Timeout": max(config.get("Timeout", 0), COLD_START_SECONDS)}
        try:
            return invoke(self, *arguments, **options)
        finally:
            self.config = config

    worker.invoke = patient_invoke


def drain_at_once(worker: Any) -> None:
    """The emulator waits 50 ms for output after an invocation that prints nothing: 18 calls a second, not 150."""
    worker._drain_stderr_bounded = partialmethod(worker._drain_stderr_bounded, first_line_wait=FIRST_LINE_SECONDS)


def sign_as_own_role(runtime: Any) -> None:
    """A function signs with its own role, as on AWS, and not as the root user, which owns no jobs."""

    def credentials(config: dict[str, Any]) -> dict[str, str]:
        from ministack.services import sts  # noqa: PLC0415 - not while the server starts

        account, role, name = (
            config["FunctionArn"].split(":")[4],
            config["Role"].rpartition("/")[2],
            config["FunctionName"],
        )
        # 20 characters, as all access keys.
        key = "ASIA" + sha256(config["FunctionArn"].encode()).hexdigest()[:16].upper()
        session = {"SecretAccessKey": "secret", "SessionToken": "token"}
        arn = f"arn:aws:sts::{account}:assumed-role/{role}/{name}"
        sts.register_session(key, {"Arn": arn, "UserId": f"{role}:{name}", **session})
        return {"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "token"}

    runtime.execution_credentials = credentials


def deploy_table_settings(handlers: dict[str, Any], dynamodb: Any) -> None:
    """Set TTL and point-in-time recovery of a new table as its template says, which CloudFormation here ignores."""
    create = handlers["create"]

    def creating(logical_id: str, properties: dict[str, Any], stack: str) -> Any:
        name, attributes = create(logical_id, properties, stack)
        ttl = properties.get("TimeToLiveSpecification")
        if ttl:
            dynamodb._update_ttl({"TableName": name, "TimeToLiveSpecification": ttl})
        recovery = properties.get("PointInTimeRecoverySpecification")
        if recovery:
            dynamodb._update_continuous_backups({"TableName": name, "PointInTimeRecoverySpecification": recovery})
        return name, attributes

    handlers["create"] = creating


def throttle_writes(dynamodb: Any) -> None:
    """Keep to the maximum throughput of a table, which the emulator stores and ignores. A write counts as one unit.

    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode-max-throughput.html
    """
    written: Counter[tuple[str, int]] = Counter()

    def limited(write: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], Any]:
        def run(data: dict[str, Any]) -> Any:
            changes = [change for each in data.get("TransactItems", ()) for change in each.values()] or [data]
            for table in {change.get("TableName", "").rpartition("/")[2] for change in changes}:
                known = dynamodb._tables.get(table, {})
                most = known.get("OnDemandThroughput", {}).get("MaxWriteRequestUnits", -1)
                second = (table, int(time.time()))
                written[second] += most >= 0
                if 0 <= most < written[second]:
                    reason = "Maximum OnDemandThroughput exceeded"
                    return dynamodb.error_response_json("ThrottlingException", reason, 400)
            return write(data)

        return run

    for name in ("_put_item", "_update_item", "_delete_item", "_transact_write_items"):
        setattr(dynamodb, name, limited(getattr(dynamodb, name)))


def record_statements(dynamodb: Any) -> None:
    """Put a record of each INSERT and UPDATE by a PartiQL statement into the stream, which the emulator leaves out."""
    insert, update = dynamodb._partiql_insert, dynamodb._partiql_update

    def inserting(table: Any, parsed: dict[str, Any]) -> Any:
        answer = insert(table, parsed)
        if answer[0] == HTTPStatus.OK:
            item = parsed["item"]
            dynamodb._emit_stream_event(table["TableName"], "INSERT", None, item["M"] if set(item) == {"M"} else item)
        return answer

    def updating(table: Any, parsed: dict[str, Any], *more: Any) -> Any:
        partition, sort, *_ = dynamodb._partiql_key_target(table, parsed)
        before = table["items"].get(partition, {}).get(sort)
        answer = update(table, parsed, *more)
        if answer[0] == HTTPStatus.OK:
            dynamodb._emit_stream_event(table["TableName"], "MODIFY", before, table["items"][partition][sort])
        return answer

    dynamodb._partiql_insert, dynamodb._partiql_update = inserting, updating


def publish_queue_metrics() -> None:
    """Publish the metrics of queues that AWS has and the emulator lacks. Only reads the emulator's lists."""
    while True:
        time.sleep(METRICS_SECONDS)
        from ministack.services import cloudwatch, sqs  # noqa: PLC0415 - not while the server starts

        now = time.time()
        for url, queue in sqs._queues.items():
            dimensions = {"QueueName": url.rsplit("/", 1)[-1]}
            for name, (value, unit) in queue_figures(list(queue["messages"]), now).items():
                points = cloudwatch._metric_bucket(("AWS/SQS", name, cloudwatch._dims_key(dimensions)))
                points.append({"Timestamp": now, "Unit": unit, "Dimensions": dimensions, "Value": float(value)})
                del points[:-METRICS_KEPT]


def queue_figures(messages: list[dict[str, Any]], now: float) -> dict[str, tuple[float, str]]:
    """The values and units of the metrics of one queue. `now` and the times in `messages` are epoch seconds."""
    hidden = [message for message in messages if message.get("visible_at", 0) > now]
    in_flight = sum(message.get("receive_count", 0) > 0 for message in hidden)
    return {
        "ApproximateNumberOfMessagesVisible": (len(messages) - len(hidden), "Count"),
        "ApproximateNumberOfMessagesNotVisible": (in_flight, "Count"),
        "ApproximateNumberOfMessagesDelayed": (len(hidden) - in_flight, "Count"),
        "ApproximateAgeOfOldestMessage": (
            now - min((message.get("sent_at", now) for message in messages), default=now),
            "Seconds",
        ),
    }


def end_with_owner() -> None:
    """End when standard input ends: the owner holds its other end, and the system closes it however the owner exits."""
    while os.read(sys.stdin.fileno(), 1):
        pass
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
