"""The pages for operators say the times and counts by which the engine acts."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

from tidemill.application.dispatch import nudge, owed
from tidemill.application.operations import model_check, reconcile
from tidemill.application.passes import pace, pass_state, table_pass
from tidemill.application.submission import validation
from tidemill.domain.admission import governor, strain
from tidemill.domain.attempt import outcomes, retry
from tidemill.domain.breakers import breaker
from tidemill.domain.events import events
from tidemill.domain.limits import adaptive_limit, limit_state
from tidemill.domain.passes import pass_bounds
from tidemill.domain.waiting import pauses, signals

_DOCS: Final = Path(__file__).parents[3] / "docs"
_RECONCILE: Final = "operations/reconcile.md"
_WORDS: Final = {3: "three", 5: "five", 6: "six", 8: "eight", 10: "ten"}
_MINUTE: Final = timedelta(minutes=1)
_SPANS: Final = {
    timedelta(weeks=1): "a week",
    timedelta(days=1): "a day",
    timedelta(hours=1): "an hour",
    timedelta(minutes=15): "15 minutes",
    timedelta(minutes=10): "ten minutes",
    timedelta(minutes=5): "five minutes",
    timedelta(minutes=2): "two minutes",
    timedelta(minutes=1): "a minute",
    timedelta(seconds=10): "10 seconds",
}
#: How often the scheduler calls reconcile.
_EVERY: Final = timedelta(minutes=5)


def _span(of: timedelta) -> str:
    return _SPANS.get(of, str(of))


def _word(number: int) -> str:
    return _WORDS.get(number, f"{number:,}")


@pytest.mark.parametrize(
    ("page", "says"),
    [
        (_RECONCILE, f"a payload that is {_span(reconcile.ORPHANED_AFTER)} old and belongs to no job"),
        (_RECONCILE, f"the next one follows after twice the time, up to {_span(nudge.LONGEST_BETWEEN_NUDGES)}"),
        (_RECONCILE, f"A job that {_word(nudge.MOST_NUDGES)} nudges and {_span(nudge.UNDELIVERABLE_AFTER)} have not"),
        (_RECONCILE, f"a new one if the last one began {_span(pass_state.PASS_INTERVAL)} ago"),
        (_RECONCILE, f"in {pass_state.SEGMENTS} segments, {_word(table_pass._AT_ONCE)} at a time"),
        (_RECONCILE, f"the next runs try its page again, for {_span(table_pass.MOST_TRIES * _EVERY)}"),
        (_RECONCILE, f"A pass repairs {pace.MOST_WRITES_PER_SECOND:,} jobs a second at most"),
        (_RECONCILE, f"at most {_span(reconcile.LONGEST_SWEEP)} for it"),
        (_RECONCILE, f"or {_span(owed.LONGEST_PAUSE)} if it lasted long"),
        (_RECONCILE, f"bytes of a document ÷ {pass_bounds._BYTES_PER_UNIT:,} ÷ reconcile_read_units"),
        ("guides/adaptive-limits.md", f"to {adaptive_limit.DECREASE} of the number"),
        ("guides/breakers.md", f"{_word(breaker.FIRST_DRAIN_PER_SECOND)} a second at first"),
        ("guides/events.md", f"idempotency key, at most {events.LONGEST_EVENT_KEY} characters"),
        ("guides/events.md", f"at most {events.LONGEST_EVENT_GROUP} bytes"),
        ("guides/grouped-commit.md", f"with fewer than {_word(retry.LEAST_GROUPED_ATTEMPTS)} `max_attempts`"),
        (
            "reference/job-types.md",
            f"for {strain._SHORTEST_DEFERRAL // _MINUTE} to {strain._LONGEST_DEFERRAL // _MINUTE} minutes later",
        ),
        ("guides/limits.md", f"If the rate allows a start within {_span(limit_state.AHEAD)}, the job gets that time"),
        ("guides/strain.md", f"For {_span(governor.KNOWN_FOR)} after a fall"),
        ("guides/strain.md", f"expires {_span(governor.EXPIRES_AFTER)} after the last count"),
        ("guides/signals.md", f"JSON of at most {signals.LARGEST_SIGNAL_BYTES:,} bytes"),
        ("guides/signals.md", f"A job gets at most {signals.MOST_SIGNALS} signals."),
        ("reference/http.md", f"at most {_word(validation.MOST_TAGS)} labels to find the job by"),
        ("reference/cli.md", f"compares at most {model_check.MOST_OF_A_TYPE} payloads of each type"),
        ("operations/operate.md", f"the last {_word(outcomes.ERRORS_KEPT)} errors"),
        ("operations/runtime-configuration.md", f"without a deployment, within {_span(pauses.ACTS_WITHIN)}"),
    ],
    # Without the number, so that another one does not change the name of the test.
    ids=lambda value: value if value.endswith(".md") else "states",
)
def test_a_page_says_what_the_engine_does(page: str, says: str) -> None:
    text = " ".join((_DOCS / page).read_text(encoding="utf-8").split())
    # The text matches as whole words: "0 names" is a part of "10 names".
    assert re.search(rf"(?<![\w.,]){re.escape(says)}(?!\w)", text)
