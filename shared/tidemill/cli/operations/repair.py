"""`tidemill repair`: set what differs from the stack's template as the template says."""

from collections.abc import Sequence
from typing import Any

import click

from tidemill.cli.confirm import confirmed, require_confirmation
from tidemill.cli.errors import CommandError
from tidemill.cli.formatting import count, visible, visible_lines
from tidemill.cli.installation import Installation
from tidemill.cli.operations.audit import audited
from tidemill.cli.options import json_option, reason_option, yes_option
from tidemill.cli.output import say, show, show_json, show_table
from tidemill.operator.drift import repair as repairs
from tidemill.operator.drift.expected_resource import Expected
from tidemill.operator.drift.repair import Restored
from tidemill.operator.drift.resource_states import ResourceState, as_text


@click.command()
@click.option("--dry-run", is_flag=True, help="Show what differs, and change nothing.")
@reason_option("Why, for the audit log.")
@yes_option
@json_option("Print the result as one JSON object.")
@click.pass_obj
def repair(installation: Installation, *, dry_run: bool, reason: str, yes: bool, as_json: bool) -> None:
    """Restore what differs from the template of the deployed stack.

    Compares the event source mappings, schedules, alarms, queues, queue policies and tables, as reconcile does for the
    alarm on drifted resources. Shows each setting that differs, asks, and sets it as the template says, with one call
    for each line of the result. A call that fails does not stop the others. Run it again after a failure.

    It also enables a mapping or schedule that an operator disabled on purpose. To hold jobs back, use `tidemill pause`
    instead.

    Deletes nothing. A deleted resource needs a deployment. A stream that is enabled again is a new stream, so publish
    gets a second mapping, and `tidemill reconcile --overdue-by 1` finds the jobs that changed meanwhile.

    The exit code is 1 if something could not be compared or restored.
    """
    if not dry_run:
        require_confirmation(yes=yes, alternative=", or --dry-run to see the plan")
    states = repairs.compare(installation.deployment)
    drifted = [state for state in states if state.differences]
    if not (as_json and (dry_run or yes)):
        # A plan that is the result goes to stdout, and one to confirm to stderr.
        _show_plan(states, drifted, stderr=not dry_run)
    restored: list[Restored] = []
    if drifted and not dry_run:
        if not confirmed(f"Restore {count(len(drifted), 'resource')}?", yes=yes):
            return
        with audited(
            installation, "repair", options=_options(drifted), counts=lambda: _counts(restored), reason=reason
        ):
            for each in repairs.restore(states):
                restored.append(each)
                _say_progress(each)
    if as_json:
        show_json(_as_json(states, restored, dry_run=dry_run))
    elif restored:
        show(", ".join(f"{number} {name}" for name, number in _counts(restored).items()))
    if repairs.stream_was_off(restored):
        say(
            "Changes of the time without a stream have no message: run `tidemill reconcile --overdue-by 1` in a minute."
        )
    _report_failures(states, restored)


def _show_plan(states: Sequence[ResourceState], drifted: Sequence[ResourceState], *, stderr: bool) -> None:
    rows = [
        (state.expected.kind, visible(state.expected.label), each.setting, *map(_shown, (each.found, each.expected)))
        for state in drifted
        for each in state.differences
    ]
    if rows:
        show_table(("KIND", "RESOURCE", "SETTING", "IS", "SHOULD BE"), rows, stderr=stderr)
    kept = sum(state.as_expected for state in states)
    say(f"{kept} of {len(states)} resources are as the template says.")


def _say_progress(each: Restored) -> None:
    if each.error:
        say(visible_lines(f"Not restored: {_named(each.expected)}: {each.error}"))
    else:
        say(visible(f"Restored {', '.join(each.settings)} of the {_named(each.expected)}."))


def _report_failures(states: Sequence[ResourceState], restored: Sequence[Restored]) -> None:
    """Raise `CommandError` if something is not as it should be, and cannot become so by this command."""
    for state in states:
        if state.missing:
            say(visible(f"The {_named(state.expected)} does not exist. {state.remedy}"))
        elif state.error:
            say(visible_lines(f"Not compared: {_named(state.expected)}: {state.error}"))
    missing = sum(state.missing for state in states)
    unread = sum(state.error is not None for state in states)
    failed = _counts(restored)["failed"]
    if missing or unread or failed:
        raise CommandError(
            f"{count(failed, 'setting')} not restored, {count(unread, 'resource')} not compared, "
            f"{count(missing, 'resource')} to deploy",
            remedy="Solve what the lines above name, then run `tidemill repair` again.",
        )


def _named(expected: Expected) -> str:
    return f"{expected.kind} {expected.label}"


def _options(drifted: Sequence[ResourceState]) -> dict[str, Any]:
    return {"resources": [_named(state.expected) for state in drifted]}


def _counts(restored: Sequence[Restored]) -> dict[str, int]:
    failed = sum(each.error is not None for each in restored)
    return {"restored": len(restored) - failed, "failed": failed}


def _shown(value: Any) -> str:
    return visible(as_text(value))


def _as_json(states: Sequence[ResourceState], restored: Sequence[Restored], *, dry_run: bool) -> dict[str, Any]:
    return {
        "dry_run": dry_run,
        "compared": sum(state.error is None for state in states),
        "drifted": [
            {
                "kind": state.expected.kind,
                "resource": state.expected.label,
                "setting": each.setting,
                "is": each.found,
                "should_be": each.expected if _is_json(each.expected) else str(each.expected),
            }
            for state in states
            for each in state.differences
        ],
        "missing": [_named(state.expected) for state in states if state.missing],
        "not_compared": {_named(state.expected): str(state.error) for state in states if state.error},
        **_counts(restored),
        "errors": {_named(each.expected): str(each.error) for each in restored if each.error},
    }


def _is_json(value: Any) -> bool:
    return isinstance(value, (str, int, float, bool, list, dict))
