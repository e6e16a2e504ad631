"""`Intake`: publishes what one source delivers, and says which of it must come again.

A bad record holds up no other. In a queue it comes again by itself, until SQS moves it to the dead-letter queue. In a
stream it would block its shard, so it is passed on to the queue of the source, and the stream goes on.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from tidemill.application.event_types import EventSource
from tidemill.application.events.published_records import RecordRefusedError, publish_record
from tidemill.application.submission.new_jobs import Accepted
from tidemill.application.submission.submit import Submit
from tidemill.domain.error_text import error_text
from tidemill.domain.errors import KeyReusedError, TidemillError
from tidemill.domain.events.source_records import SourceKind, SourceRecord
from tidemill.sources.readers import eventbridge, s3, sns, table

_READERS: Final[Mapping[SourceKind, Callable[[Mapping[str, Any]], Iterator[SourceRecord]]]] = {
    SourceKind.EVENTBRIDGE: eventbridge.read,
    SourceKind.S3: s3.read,
    SourceKind.SNS: sns.read,
    SourceKind.TABLE: table.read,
}
#: Called with the id of the message or stream record, and why it was not published.
Failed = Callable[[str, Exception], None]


class Intake:
    """Takes the records of one source. `accepted` gets each publication, and `forward` the JSON of a passed record.

    `changed` gets each record that was published before with other data. The first publication counts.
    """

    def __init__(
        self,
        source: EventSource,
        submit: Submit,
        *,
        tenant: str,
        forward: Callable[[str], None],
        accepted: Callable[[Accepted], None],
        changed: Failed,
        failed: Failed,
    ) -> None:
        self._source = source
        self._submit = submit
        self._tenant = tenant
        self._forward = forward
        self._accepted = accepted
        self._changed = changed
        self._failed = failed

    def messages(self, messages: Sequence[Mapping[str, Any]], *, trace: str) -> list[str]:
        """The ids of the messages that must come again. Each other one is published, and may be deleted."""
        again: list[str] = []
        for message in messages:
            try:
                self._publish(message["messageId"], message["body"], trace)
            except TidemillError as error:
                self._failed(message["messageId"], error)
                again.append(message["messageId"])
        return again

    def stream(self, records: Sequence[Mapping[str, Any]], *, trace: str) -> list[str]:
        """The sequence number from which the stream must come again; empty if all records are done."""
        for record in records:
            sequence = record["dynamodb"]["SequenceNumber"]
            text = json.dumps(record)
            try:
                try:
                    self._publish(sequence, text, trace)
                except RecordRefusedError as refused:
                    self._failed(sequence, refused)
                    self._forward(text)
            except TidemillError as error:
                self._failed(sequence, error)
                return [sequence]
        return []

    def _publish(self, name: str, body: str, trace: str) -> None:
        """Publish the records of one message. Raises the first refusal after all others are published."""
        first: RecordRefusedError | None = None
        for record in self._read(body):
            try:
                if accepted := publish_record(record, self._source, self._submit, tenant=self._tenant, trace=trace):
                    self._accepted(accepted)
            except KeyReusedError as reused:
                self._changed(name, reused)
            except RecordRefusedError as refused:
                first = first or refused
        if first:
            raise first

    def _read(self, body: str) -> list[SourceRecord]:
        try:
            return list(_READERS[self._source.kind](json.loads(body)))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            # For example, a topic that delivers raw messages, or JSON that is nested too deeply to be read.
            raise RecordRefusedError(f"not a record of {self._source.kind}: {error_text(error)}") from error
