"""Faults of events and of their consumers."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

PUBLISHED: Final = (
    Mutant(
        "a repeated event must have the same consumers",
        modules.EVENT,
        "    if isinstance(submission, Publication):\n",
        "    if isinstance(submission, Publication) and not payload:\n",
    ),
    Mutant(
        "the last consumer of an event gets no job",
        modules.FAN_OUT,
        "for consumer in event.consumers],\n    )",
        "for consumer in event.consumers[:-1]],\n    )",
    ),
    Mutant(
        "no filter holds an event back",
        modules.EVENTS,
        "one.takes(declared.name, declared.version) and one.passes(seen)",
        "one.takes(declared.name, declared.version)",
    ),
    Mutant(
        "an unknown consumer stops the others",
        modules.SUBMIT,
        "        if isinstance(submission, Delivery):\n",
        "        if isinstance(submission, Delivery) and submission.type in self.job_types.names():\n",
    ),
    Mutant(
        "the consumers of an event share its group",
        modules.FAN_OUT,
        'f"{consumer.type}/{group}"',
        'f"{group}"',
    ),
    Mutant(
        "a consumer forgets that it blocks its group",
        modules.EVENTS,
        '"blocks": consumer.blocks or None,',
        '"blocks": None,',
    ),
    Mutant(
        "the key of a source is of the delivery",
        "tidemill.application.event_sources",
        'key = f"{name}/{record.identity}"',
        'key = f"{name}/{record}"',
    ),
    Mutant(
        "the events of a success are dropped",
        modules.HANDLER_RESULTS,
        "[*done.then, *events]",
        "[*done.then]",
    ),
)
