"""The part of the composition root that only some users of flows need, so that other functions need not import it."""

from collections.abc import Sequence
from functools import cache

from tidemill import composition
from tidemill.application.flow_look import FlowLook
from tidemill.application.flow_nodes import NodeDocuments
from tidemill.application.flows import FlowControl
from tidemill.application.submit import Admit, Submit
from tidemill.domain.job import Job
from tidemill.system import random_draw


@cache
def flow_look() -> FlowLook:
    return FlowLook(composition.flow_parts(composition.node_submit()))


def node_documents(flow: Job) -> NodeDocuments:
    return NodeDocuments(flow, composition.flow_parts(composition.node_submit()))


@cache
def flow_control() -> FlowControl:
    return _flow_control(composition.node_submit())


@cache
def flow_growth() -> FlowControl:
    """For the addition of nodes, whose types it checks."""
    return _flow_control(composition.submit())


@cache
def api_flow_growth() -> FlowControl:
    """The same, over HTTP."""
    admits = [composition.pause_admission(), composition.quota_admission()]
    return _flow_control(composition.submit(), admits)


def _flow_control(submit: Submit, admits: Sequence[Admit] = ()) -> FlowControl:
    parts = composition.flow_parts(submit)
    return FlowControl(composition.control(), parts, pause_below=random_draw.pause_below, admits=admits)
