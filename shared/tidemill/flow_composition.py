"""The part of the composition root that only some users of flows need, so that other functions need not import it."""

from functools import cache

from tidemill import composition
from tidemill.application.flow_look import FlowLook
from tidemill.application.flows import FlowControl
from tidemill.application.submit import Submit
from tidemill.system import random_draw


@cache
def flow_look() -> FlowLook:
    return FlowLook(composition.flow_parts(composition.node_submit()))


@cache
def flow_control() -> FlowControl:
    return _flow_control(composition.node_submit())


@cache
def flow_growth() -> FlowControl:
    """For the addition of nodes, whose types it checks."""
    return _flow_control(composition.submit())


def _flow_control(submit: Submit) -> FlowControl:
    return FlowControl(composition.control(), composition.flow_parts(submit), pause_below=random_draw.pause_below)
