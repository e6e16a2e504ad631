"""`rollback`: which versions it chooses, that it moves all functions or none, and what it records."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from tests.integration.cli.conftest import Cloud, run
from tests.integration.cli.loopback import Stack
from tests.integration.cli.versioned_functions import VersionedFunctions
from tidemill.application.operations.audit import Auditor
from tidemill.aws import clients
from tidemill.dynamodb.operations.audit_items import DynamoAuditLog
from tidemill.names import Env, Output
from tidemill.system import clock, ids

PIPELINE: Final = ("submit", "publish", "work")
AT: Final = datetime(2026, 2, 1, tzinfo=UTC)


@pytest.fixture
def functions(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> VersionedFunctions:
    """Three functions of the pipeline and one of the example, each with two versions: the codes `old` and `new`."""
    functions = VersionedFunctions({f"f-{key}": ["old", "new"] for key in (*PIPELINE, "redirect")})
    monkeypatch.setattr(clients, "lambda_", lambda: functions)
    deploy(cloud, functions)
    return functions


def deploy(cloud: Cloud, functions: VersionedFunctions, *, status: str = "UPDATE_COMPLETE") -> None:
    """The stacks after a deployment that made the newest version of each function the live one."""
    functions.live.clear()
    pipeline, shortener = cloud.server.stacks
    cloud.server.stacks = [
        _with_versions(pipeline, PIPELINE, functions, status),
        _with_versions(shortener, ["redirect"], functions, status),
    ]


def _with_versions(stack: Stack, keys: Sequence[str], functions: VersionedFunctions, status: str) -> Stack:
    outputs = {
        **stack.outputs,
        Output.FUNCTIONS: json.dumps({key: f"f-{key}" for key in keys}),
        Output.VERSIONS: json.dumps({key: str(len(functions.codes[f"f-{key}"])) for key in keys}),
    }
    return Stack(stack.name, outputs, stack.tags, stack.template, stack.resources, status)


def versions(functions: VersionedFunctions) -> Mapping[str, int]:
    return {
        name: int(functions.get_alias(FunctionName=name, Name="live")["FunctionVersion"]) for name in functions.codes
    }


def audited() -> list[Any]:
    return [json.loads(line) for line in run("audit", "--json").stdout.splitlines()]


def test_every_function_returns_to_the_code_before_the_last_deployment(functions: VersionedFunctions) -> None:
    result = run("rollback", "--yes", "--json", "--reason", "dead links")
    assert json.loads(result.stdout)["moves"][0] == {"function": "redirect", "from": 2, "to": 1, "code": "old"}
    assert set(versions(functions).values()) == {1}
    # First what accepts jobs, last what runs them.
    assert functions.moved == ["f-redirect", "f-submit", "f-publish", "f-work"]
    (entry,) = audited()
    assert (entry["command"], entry["reason"], entry["outcome"]) == ("rollback", "dead links", "done")
    assert entry["options"] == {"moves": ["redirect:2:1", "submit:2:1", "publish:2:1", "work:2:1"]}
    assert entry["counts"] == {"functions": 4}


def test_each_function_costs_one_write_and_its_reads(functions: VersionedFunctions) -> None:
    run("rollback", "--yes")
    # The double has pages of two versions, and the third of three is $LATEST.
    assert functions.calls == {"GetAlias": 4, "ListVersionsByFunction": 8, "UpdateAlias": 4}


def test_a_second_rollback_changes_nothing(functions: VersionedFunctions) -> None:
    run("rollback", "--yes")
    result = run("rollback", "--yes")
    assert (result.exit_code, "Nothing to move" in result.stdout) == (0, True)
    assert functions.calls["UpdateAlias"] == 4
    assert len(audited()) == 1


def test_forward_returns_to_the_deployed_versions_workers_first(functions: VersionedFunctions) -> None:
    run("rollback", "--yes")
    functions.moved.clear()
    assert run("rollback", "--forward", "--yes").stdout == "4 functions moved.\n"
    assert set(versions(functions).values()) == {2}
    assert functions.moved == ["f-work", "f-publish", "f-submit", "f-redirect"]


def test_a_named_function_returns_to_its_own_earlier_version(functions: VersionedFunctions) -> None:
    run("rollback", "work", "--yes")
    assert versions(functions) == {"f-submit": 2, "f-publish": 2, "f-work": 1, "f-redirect": 2}


def test_a_deployment_of_a_setting_is_undone_for_the_functions_that_it_changed(
    cloud: Cloud, functions: VersionedFunctions
) -> None:
    functions.codes["f-work"].append("new")
    functions.codes["f-publish"].append("new")
    functions.published["f-work"] = [AT, AT + timedelta(days=1), AT + timedelta(days=2)]
    functions.published["f-publish"] = [AT, AT + timedelta(days=1), AT + timedelta(days=2, minutes=2)]
    deploy(cloud, functions)
    run("rollback", "--yes")
    assert versions(functions) == {"f-submit": 2, "f-publish": 2, "f-work": 2, "f-redirect": 2}
    assert functions.moved == ["f-publish", "f-work"]


def test_of_two_deployments_of_settings_the_last_is_undone(cloud: Cloud, functions: VersionedFunctions) -> None:
    for name, day in (("f-work", 2), ("f-publish", 3)):
        functions.codes[name].append("new")
        functions.published[name] = [AT, AT + timedelta(days=1), AT + timedelta(days=day)]
    deploy(cloud, functions)
    run("rollback", "--yes")
    assert functions.moved == ["f-publish"]


def test_a_version_that_a_rollback_left_is_not_chosen_again(cloud: Cloud, functions: VersionedFunctions) -> None:
    run("rollback", "--yes")
    for name in functions.codes:
        functions.codes[name].append("newest")
    deploy(cloud, functions)
    run("rollback", "--yes")
    assert set(versions(functions).values()) == {1}


def test_other_commands_do_not_make_it_forget_an_earlier_rollback(cloud: Cloud, functions: VersionedFunctions) -> None:
    run("rollback", "--yes")
    log = DynamoAuditLog(cloud.table.client, table=cloud.table.name, retention=timedelta(days=400))
    auditor = Auditor(log, clock=clock.now, new_token=ids.new_token)
    for _ in range(120):
        auditor.begin("signal", by="a script", reason="", options={})
    for name in functions.codes:
        functions.codes[name].append("newest")
    deploy(cloud, functions)
    run("rollback", "--yes")
    assert set(versions(functions).values()) == {1}


def test_a_version_to_which_an_operator_returned_is_chosen_again(cloud: Cloud, functions: VersionedFunctions) -> None:
    run("rollback", "--yes")
    run("rollback", "--forward", "--yes")
    for name in functions.codes:
        functions.codes[name].append("newest")
    deploy(cloud, functions)
    run("rollback", "--yes")
    assert set(versions(functions).values()) == {2}


def test_a_new_function_stays(cloud: Cloud, functions: VersionedFunctions) -> None:
    functions.codes["f-publish"] = ["new"]
    deploy(cloud, functions)
    run("rollback", "--yes")
    assert versions(functions) == {"f-submit": 1, "f-publish": 1, "f-work": 1, "f-redirect": 1}
    assert "f-publish" not in functions.moved
    result = run("rollback", "publish", "--yes")
    assert (result.exit_code, "no earlier version to return to: publish" in result.stderr) == (1, True)


def test_a_version_of_the_code_can_be_named(cloud: Cloud, functions: VersionedFunctions) -> None:
    for name in functions.codes:
        functions.codes[name] += ["newer", "newest"]
    deploy(cloud, functions)
    run("rollback", "--to", "new", "--yes")
    assert set(versions(functions).values()) == {2}


def test_a_code_that_a_function_lacks_is_refused(functions: VersionedFunctions) -> None:
    functions.codes["f-work"][0] = "other"
    result = run("rollback", "--to", "old", "--yes")
    assert (result.exit_code, "no version with the code old: work" in result.stderr) == (1, True)
    assert functions.moved == []
    assert run("rollback", "submit", "--to", "old", "--yes").exit_code == 0


def test_a_dry_run_shows_the_plan_and_changes_nothing(functions: VersionedFunctions) -> None:
    lines = run("rollback", "--dry-run").stdout.splitlines()
    assert lines[0].split() == ["FUNCTION", "FROM", "(CODE)", "TO", "(CODE)", "PUBLISHED"]
    assert lines[1].split()[:5] == ["redirect", "2", "(new)", "1", "(old)"]
    assert (functions.moved, audited()) == ([], [])


def test_if_one_alias_cannot_be_moved_the_others_move_back(functions: VersionedFunctions) -> None:
    functions.refusing = {"f-work"}
    result = run("rollback", "--yes")
    assert result.exit_code == 1
    assert set(versions(functions).values()) == {2}
    assert functions.moved == ["f-redirect", "f-submit", "f-publish", "f-publish", "f-submit", "f-redirect"]
    assert [(entry["outcome"], entry["counts"]) for entry in audited()] == [("failed", {"functions": 0})]


def test_an_interruption_moves_all_back(functions: VersionedFunctions, monkeypatch: pytest.MonkeyPatch) -> None:
    update = functions.update_alias

    def interrupted(**request: Any) -> None:
        update(**request)
        if request["FunctionName"] == "f-publish" and request["FunctionVersion"] == "1":
            raise KeyboardInterrupt

    monkeypatch.setattr(functions, "update_alias", interrupted)
    assert run("rollback", "--yes").exit_code == 130
    assert set(versions(functions).values()) == {2}
    assert audited()[0]["outcome"] == "interrupted"


def test_an_alias_that_cannot_be_moved_back_is_named(
    functions: VersionedFunctions, monkeypatch: pytest.MonkeyPatch
) -> None:
    update = functions.update_alias

    def once(**request: Any) -> None:
        update(**request)
        functions.refusing |= {"f-submit", "f-publish"}

    monkeypatch.setattr(functions, "update_alias", once)
    functions.refusing = {"f-publish"}
    result = run("rollback", "submit", "publish", "--yes")
    assert (result.exit_code, "could not be moved back: submit" in result.stderr) == (1, True)
    functions.refusing = set()
    assert run("rollback", "submit", "publish", "--yes").exit_code == 0
    assert versions(functions)["f-submit"] == versions(functions)["f-publish"] == 1


def test_a_lost_answer_is_a_success(functions: VersionedFunctions) -> None:
    functions.losing = {"f-submit"}
    assert run("rollback", "--yes").exit_code == 0
    assert set(versions(functions).values()) == {1}


def test_an_alias_that_another_command_moved_meanwhile_stops_the_rollback(
    functions: VersionedFunctions, monkeypatch: pytest.MonkeyPatch
) -> None:
    update = functions.update_alias

    def late(**request: Any) -> None:
        if request["FunctionName"] == "f-submit":
            functions.revisions["f-submit"] += 1
        update(**request)

    monkeypatch.setattr(functions, "update_alias", late)
    result = run("rollback", "--yes")
    assert (result.exit_code, "Run the command again" in result.stderr) == (1, True)
    assert set(versions(functions).values()) == {2}


def test_a_gradual_deployment_ends_with_a_rollback(functions: VersionedFunctions) -> None:
    """Its alias points to the old version, and sends a part of the calls to the new one."""
    functions.live = dict.fromkeys(functions.codes, 1)
    functions.weights = {name: {"2": 0.1} for name in functions.codes}
    run("rollback", "--yes")
    assert set(versions(functions).values()) == {1}
    assert not any(functions.weights.values())


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        ("UPDATE_IN_PROGRESS", "cancel-update-stack --stack-name dev-Pipeline"),
        # CloudFormation refuses to cancel these.
        ("UPDATE_ROLLBACK_IN_PROGRESS", "It cannot be cancelled: wait until it has ended."),
        ("CREATE_IN_PROGRESS", "describe-stack-events --stack-name dev-Pipeline"),
    ],
)
def test_a_deployment_that_goes_on_is_not_disturbed(
    cloud: Cloud, functions: VersionedFunctions, status: str, advice: str
) -> None:
    deploy(cloud, functions, status=status)
    result = run("rollback", "--yes")
    assert (result.exit_code, advice in " ".join(result.stderr.split())) == (1, True)
    assert ("cancel-update-stack" in result.stderr) is (status == "UPDATE_IN_PROGRESS")
    assert functions.calls == {}


def test_the_versions_are_shown_also_during_a_deployment(cloud: Cloud, functions: VersionedFunctions) -> None:
    deploy(cloud, functions, status="UPDATE_IN_PROGRESS")
    assert (run("versions", "list").exit_code, run("versions", "prune", "--yes").exit_code) == (0, 1)


def test_the_cleanup_after_a_deployment_does_not_delay_a_rollback(cloud: Cloud, functions: VersionedFunctions) -> None:
    deploy(cloud, functions, status="UPDATE_COMPLETE_CLEANUP_IN_PROGRESS")
    assert run("rollback", "--yes").exit_code == 0
    assert set(versions(functions).values()) == {1}


def test_an_unknown_function_is_a_usage_error(functions: VersionedFunctions) -> None:
    result = run("rollback", "werk", "--yes")
    assert result.exit_code == 2
    assert "unknown function werk: use publish, redirect, submit, work" in result.stderr
    assert run("rollback", "--forward", "--to", "old", "--yes").exit_code == 2
    assert run("rollback").exit_code == 2
    assert functions.calls == {}


def test_a_stack_of_an_older_version_has_no_versions(cloud: Cloud) -> None:
    result = run("rollback", "--yes")
    assert (result.exit_code, "Deploy the version of this command line." in result.stderr) == (1, True)
    assert cloud.resources.mappings == {}


def test_status_shows_what_is_rolled_back(functions: VersionedFunctions) -> None:
    assert json.loads(run("status", "--json").stdout)["rolled_back"] == []
    assert "ROLLED BACK" not in run("status").stdout
    run("rollback", "work", "--yes")
    status = run("status").stdout
    assert "ROLLED BACK to code old: work 1 (deployed: 2)\n  tidemill rollback --forward" in status
    (shown,) = json.loads(run("status", "--json").stdout)["rolled_back"]
    assert shown == {"function": "work", "live": 1, "deployed": 2, "code": "old"}
    assert functions.calls["UpdateAlias"] == 1


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({Env.JOBS_TABLE: "jobs"}, {Env.JOBS_TABLE: "jobs-restored", Env.EPOCH: "1"}),
        ({Env.JOBS_TABLE: "jobs", Env.EPOCH: "1"}, {Env.JOBS_TABLE: "jobs", Env.EPOCH: "2"}),
    ],
)
@pytest.mark.parametrize("options", [(), ("work",), ("--to", "old")])
def test_no_function_returns_to_the_table_of_before_a_restore(
    functions: VersionedFunctions, options: Sequence[str], before: dict[str, str], after: dict[str, str]
) -> None:
    functions.variables = {("f-work", 1): before, ("f-work", 2): after}

    result = run("rollback", *options, "--yes")

    assert result.exit_code == 1
    assert (
        f"the jobs table jobs of epoch {before.get(Env.EPOCH, 0)}, which is not the one in use: work 1" in result.stderr
    )
    assert set(versions(functions).values()) == {2}
    assert run("rollback", *options, "--dry-run").exit_code == 1


def test_the_deployed_version_is_returned_to_from_before_a_restore(functions: VersionedFunctions) -> None:
    functions.variables = {("f-work", 1): {Env.JOBS_TABLE: "jobs"}, ("f-work", 2): {Env.JOBS_TABLE: "jobs-restored"}}
    functions.live["f-work"] = 1

    assert run("rollback", "--forward", "--yes").exit_code == 0
    assert set(versions(functions).values()) == {2}
