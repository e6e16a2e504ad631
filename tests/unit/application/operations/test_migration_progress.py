"""`Progress`: what a migration keeps over its runs and its passes, within the size of a checkpoint."""

import json

from tidemill.application.operations.migration import Progress


def test_the_next_pass_counts_only_the_rewritten_payloads_on() -> None:
    example = {"id": "a", "before": "{}", "after": "[]"}
    done = Progress(
        number=2, cursor="c", complete=True, rewritten=3, unchanged=4, failed=5, left=6, examples=(example,)
    )

    assert done.seen == 18
    assert done.next_pass() == Progress(number=3, rewritten=3, examples=(example,))


def test_the_first_pass_has_seen_nothing() -> None:
    assert Progress() == Progress(number=1, cursor=None, complete=False, rewritten=0, unchanged=0, failed=0, left=0)
    assert Progress().seen == 0


def test_a_progress_is_the_same_after_a_checkpoint() -> None:
    example, failure = {"id": "a", "before": "{}", "after": "[]"}, {"tenant": "t", "id": "a", "error": "e"}
    progress = Progress(number=2, cursor="c", rewritten=3, examples=(example,), failures=(failure, failure))

    saved = json.loads(json.dumps(progress.as_json()))

    assert Progress.of_json(saved) == progress
    assert Progress.of_json({"number": 2}) == Progress(number=2)


def test_a_checkpoint_leaves_out_failures_and_examples_that_are_too_large() -> None:
    example = {"id": "a", "before": "b" * 200, "after": "c" * 200}
    failure = {"tenant": "t", "id": "a", "error": "é" * 200}
    full = Progress(cursor="c" * 2048, examples=(example,) * 3, failures=(failure,) * 5)

    saved = full.as_json()

    assert len(json.dumps(saved)) <= 7 * 1024
    assert (len(saved["examples"]), 0 < len(saved["failures"]) < 5) == (0, True)
