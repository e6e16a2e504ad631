"""What a plain worker and a plain submit import of the engine, exactly.

Imports are most of a cold start, so code of a feature is imported when a job first needs it. A new import belongs here
only if every invocation needs it.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

SHARED: Final = Path(__file__).parents[2] / "shared"

#: By package.
BOTH: Final = """
.: composition metrics names parts settings
application: configuration declarations event_types job_filter job_store job_types ports
application.admission: foreground
application.attempt: attempt attempt_context attempt_holds attempt_report checkpoints claimed_run gate handler_call
    handler_context handler_results new_run participant result_types run run_log settle traceback_text
application.batches: batch_placement
application.breakers: breaker_use breakers
application.corrections: recorded_undo supersede_placement
application.debounce: debounce_placement
application.dispatch: owing_payloads
application.events: events
application.features: submit_features
application.groups: group_placement
application.submission: built_in_types checked_submission job_ids later_jobs new_jobs placements read_back submit
    unnamed_payloads validation
application.waiting: catch_up_placement
aws: attribute_values clients refused_write
declarations: batch_handler breaker declaration_checks event_sinks event_sources events job_type_decorator
    payload_model shared_limit
domain: error_text errors history job job_parts option_values records spans states time_constants
domain.admission: governor quotas strain
domain.attempt: effects error_fingerprint error_groups outcomes retry return_values
domain.batch_handlers: joint_call
domain.batches: batches composite_cancels
domain.breakers: breaker breaker_settings downstream_errors latest_tenants
domain.corrections: undo
domain.debounce: debounce debounce_record
domain.dispatch: claim_verdict dead_letters dispatch job_message
domain.events: events source_records
domain.flows: flow_cursor flow_place
domain.limits: adaptive_limit caps limit_key limit_state limits
domain.operations: overrides repair_actions runtime_configuration setting type_overrides
domain.steps: steps
domain.submission: submission tenants trace_context
domain.waiting: holds pauses signal_answers signals waiting
dynamodb: attention_index clauses document history_entries indexes item_keys job_reader job_store job_writes payloads
    transactions update_requests
dynamodb.attempt: effects hold_writes settle_requests settle_transaction
dynamodb.breakers: breaker_item
dynamodb.corrections: undo_writes
dynamodb.flows: flow_writes
dynamodb.groups: group_items groups
dynamodb.limits: adaptive_number limit_item limit_write limits
dynamodb.operations: configuration_item operator_writes
dynamodb.steps: run_writes
dynamodb.waiting: signal_writes
powertools: idempotency
sqs: lanes messages
system: clock ids job_type_loader module_files random_draw
telemetry: embedded_metrics engine_log job_fields line_format line_output line_sample outcome_log throttled_writes
    tracing
"""

#: What only a worker imports.
WORK: Final = """
application.attempt: combiner process_gates type_gates
application.batch_handlers: failed_call joint_calls shared_call_gate
application.breakers: breaker_gates
application.corrections: undo_gate
application.features: attempt_features
application.limits: limit_gate measured_run
application.steps: step_result steps steps_gate
application.waiting: pause_gate
domain.attempt: error_kinds
entrypoints: work
system: own_process process_state
telemetry: handler_output handler_stream run_lines run_metrics
worker: lane_messages lane_worker message_batch message_run rest
"""

#: What only submit imports.
SUBMIT: Final = """
.: routes
application: job_view time_text
domain.flows: flows
entrypoints: submit
http: caller_identity job_response problems request request_trace router submission_form
"""


@pytest.mark.parametrize(("function", "own"), [("work", WORK), ("submit", SUBMIT)])
def test_a_function_imports_these_modules_and_no_others(function: str, own: str) -> None:
    code = f"import sys, tidemill.entrypoints.{function}; print(*sys.modules)"
    environment = {"PYTHONPATH": os.pathsep.join([str(SHARED), *sys.path])}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    imported = {name.removeprefix("tidemill.") for name in done.stdout.split() if name.startswith("tidemill.")}
    packages = {name.rpartition(".")[0] for name in imported}
    expected = _modules(BOTH) | _modules(own)

    assert (sorted(imported - packages - expected), sorted(expected - imported)) == ([], [])


def _modules(listed: str) -> set[str]:
    """Return the modules of a list, in which a package ends with a colon."""
    found, package = set(), ""
    for word in listed.split():
        if word.endswith(":"):
            package = word.removesuffix(":").lstrip(".")
        else:
            found.add(f"{package}.{word}".lstrip("."))
    return found
