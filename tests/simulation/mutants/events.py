"""Faults of events and of their consumers."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

PUBLISHED: Final = (
    Mutant(
        "a repeated event must have the same consumers",
        modules.EVENT,
        "Publication.identity",
        "name != 'consumers'",
        "name",
    ),
    Mutant(
        "the last consumer of an event gets no job",
        modules.FAN_OUT,
        "fan_out",
        "[_delivery(event, consumer, group) for consumer in event.consumers]",
        "[_delivery(event, consumer, group) for consumer in event.consumers[:-1]]",
    ),
    Mutant(
        "no filter holds an event back",
        modules.EVENTS,
        "_consumers",
        "one.takes(declared.name, declared.version) and one.passes(seen)",
        "one.takes(declared.name, declared.version)",
    ),
    Mutant(
        "an unknown consumer stops the others",
        modules.SUBMIT,
        "Submit._type_of",
        "isinstance(submission, PinnedSubmission)",
        "isinstance(submission, PinnedSubmission) and submission.type in self.job_types.names()",
    ),
    Mutant(
        "the consumers of an event share its group",
        modules.FAN_OUT,
        "_delivery",
        "f'{consumer.type}/{group}'",
        "f'{group}'",
    ),
    Mutant(
        "a consumer forgets that it blocks its group",
        "tidemill.application.submission.later_jobs",
        "facts_of",
        "job_type.blocks or None",
        "None",
    ),
    Mutant(
        "the key of a source is of the delivery",
        "tidemill.application.events.published_records",
        "event_key",
        "record.identity",
        "record",
    ),
    Mutant(
        "the events of a success are dropped", modules.HANDLER_RESULTS, "_done", "*done.then, *events", "*done.then"
    ),
)
