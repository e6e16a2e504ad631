"""The declared order in which features take part in publish. Composition roots and tests build a `Publisher` here."""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from tidemill.application.configuration import CurrentConfiguration, nothing_set
from tidemill.application.dispatch.first_message_reaction import FirstMessageReaction
from tidemill.application.dispatch.owed import OwedWork
from tidemill.application.dispatch.payload_reaction import PayloadReaction
from tidemill.application.dispatch.publish import Publisher
from tidemill.application.flows.flow_reaction import FlowReaction
from tidemill.application.groups.group_reaction import GroupReaction
from tidemill.application.ports import Clock, Lanes, Payloads, PublishStore
from tidemill.application.waiting.pause_reaction import PauseReaction
from tidemill.names import Lane

if TYPE_CHECKING:
    from tidemill.application.flows.flow_advance import FlowAdvance


def publisher(
    *,
    store: PublishStore,
    payloads: Payloads,
    lanes: Lanes,
    owed: OwedWork,
    clock: Clock,
    configuration: CurrentConfiguration = nothing_set,
    first_message_lanes: Collection[Lane] = (),
    flows: "Callable[[], FlowAdvance] | None" = None,
) -> Publisher:
    """Build a publisher with all reactions.

    `first_message_lanes` are those whose submissions and workers send first messages at once, as a hint. Without
    `flows`, no flow advances.
    """
    return Publisher(
        lanes=lanes,
        owed=owed,
        clock=clock,
        withholds=[
            PauseReaction(store=store, clock=clock, configuration=configuration),
            FirstMessageReaction(store=store, lanes=first_message_lanes),
        ],
        reactions=[
            GroupReaction(store=store, clock=clock),
            *([FlowReaction(flows)] if flows else []),
            PayloadReaction(payloads),
        ],
    )
