"""`BusSink`: the right of the sinks of a lane to send events to an EventBridge bus, and the variable that names it."""

from collections.abc import Sequence

from aws_cdk import aws_events as events

from tidemill import names
from tidemill.cdk.pipeline import Pipeline
from tidemill.cdk.synth_errors import SynthError


class BusSink:
    """Let the job types of `event_sink` on `lane` send events with these sources to `bus`, and no others.

    The sink itself is a job type, so its failures retry and die as those of every job, with the alarms of its lane.
    Two buses need two variables: a synthesis refuses one `variable` for both, if their lanes share a worker.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        *,
        bus: events.IEventBus,
        sources: Sequence[str],
        lane: names.Lane = names.Lane.DEFAULT,
        variable: str = names.Env.EVENT_BUS,
    ) -> None:
        if not sources:
            raise SynthError("a BusSink without sources could send nothing: name those of its event_sink")
        pipeline.allow_jobs(
            ["events:PutEvents"],
            [bus.event_bus_arn],
            lane=lane,
            # https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-use-conditions.html
            only_if={"StringEquals": {"events:source": list(sources)}},
        )
        pipeline.add_job_variables({variable: bus.event_bus_name}, lane=lane)
