"""Archive: takes stream records of the jobs table, and returns the records that Lambda must retry."""

from collections.abc import Mapping
from typing import Any

from tidemill.application.operations.archive import archive
from tidemill.composition import parts
from tidemill.dynamodb.dispatch import stream
from tidemill.names import Lane
from tidemill.telemetry.outcome_log import logger
from tidemill.worker.message_run import Invocation


def handle(event: Mapping[str, Any], context: Invocation) -> Mapping[str, Any]:  # noqa: ARG001 - as Lambda calls it
    # Also of a table from before a restore: these jobs have ended, and nothing acts on a file.
    batch = stream.read(event, lanes=[*Lane])
    failed = archive(batch.changes, batch.unreadable, parts().archive_files)
    if failed:
        logger().warning("jobs not archived", extra={"sequences": failed[:10], "records": len(failed)})
    return {"batchItemFailures": [{"itemIdentifier": sequence} for sequence in failed]}
