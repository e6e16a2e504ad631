"""One lane's worker: runs a batch of messages in one invocation and answers which of them stay on the queue."""

from collections.abc import Callable, Container, Mapping
from functools import partial
from typing import Any

from msgspec import Struct

from tidemill.system.process_state import ProcessState
from tidemill.telemetry.outcome_log import Telemetry
from tidemill.telemetry.run_lines import RunLines
from tidemill.worker.lane_messages import LaneMessages
from tidemill.worker.message_batch import Batch
from tidemill.worker.message_run import Invocation, WorkerSettings, time_left
from tidemill.worker.rest import rest_after

#: Ends the process of the worker. Returns only in tests.
EndProcess = Callable[[], None]


class Worker(Struct, frozen=True, kw_only=True):
    settings: WorkerSettings
    messages: LaneMessages
    end_process: EndProcess
    process_state: ProcessState
    #: Makes the telemetry of an invocation.
    new_telemetry: Callable[[], Telemetry]
    #: The job types that have metrics of their own.
    measured_types: Container[str] | None = None

    def work(self, event: Mapping[str, Any], invocation: Invocation) -> Mapping[str, Any]:
        """Run the batch. The answer names exactly the messages that stay on the queue.

        A handler that outlives its attempt would slow down every later job of this process, and nothing can stop its
        thread. Others close the standard streams, or change what cannot be restored. So the process ends, after it has
        done all that the answer would do.
        """
        context, lane = self.settings.context, self.settings.lane
        began = context.steady()
        telemetry = self.new_telemetry()
        run_lines = RunLines(
            telemetry=telemetry,
            lane=lane,
            request_id=invocation.aws_request_id,
            version=self.settings.version,
            measured_types=self.measured_types,
        )
        # This is a processor of Powertools: `batch(…)` sets the records, and `process` gives each to the handler.
        batch = Batch(self.settings, invocation, run_lines, spoiled=self.process_state.is_spoiled)
        self.process_state.remember()
        with batch(records=event["Records"], handler=batch.require_done):
            batch.process()
        changes = self.process_state.restore()
        telemetry.process_changed(changes.restored, changes.lost, batch.job_types())
        strays = [stray for message in batch.strays() if (stray := message.stray)]
        telemetry.broken_job_files(lane, len(context.job_types.faults))
        telemetry.stray_threads(lane, strays)
        telemetry.flush()
        # The messages that stay come first: the jobs of the others have ended, so nothing waits for their deletion.
        put_back = {receipt: message.report.put_back_until for receipt, message in batch.messages.items()}
        self.messages.hide({receipt: until for receipt, until in put_back.items() if until})
        if strays or changes.lost:
            # Lambda deletes no message of an invocation whose process ends.
            self.messages.delete([receipt for receipt, until in put_back.items() if not until])
            batch.await_other_threads()
            # Last, since the handler runs until the process ends. After a crash in between, the lease ends the slot.
            for message in batch.strays():
                message.release_slot()
            if batch.strays() or changes.lost:
                self.end_process()
        rested = rest_after(
            context.steady() - began,
            lane=lane,
            strain=context.strain_level,
            time_left=partial(time_left, invocation),
            pause=context.pause,
        )
        if rested:
            telemetry.rested(lane, strain=rested.strain, worked=rested.worked, rested=rested.rested)
        return batch.response()
