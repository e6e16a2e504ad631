"""The command line as a separate process, against the deployed app."""

import json
from typing import Any
from uuid import uuid4

from tests.e2e.conftest import Deployed, Tidemill
from tests.support.patience import PATIENCE_SECONDS
from tidemill.local.wait import wait_until


def test_a_job_is_submitted_watched_listed_and_cancelled(tidemill: Tidemill) -> None:
    done = tidemill("submit", "demo.steps", '{"steps": 3}', "--lane", "bulk", "--wait")
    assert done.returncode == 0, done.stderr
    job = json.loads(done.stdout)
    assert (job["state"], job["lane"]) == ("succeeded", "bulk")
    assert f"{job['id']}  succeeded" in done.stderr

    group = str(uuid4())
    later, behind = (
        json.loads(tidemill("submit", "demo.flaky", "--delay", "1h", "--group", group).stdout) for _ in range(2)
    )
    assert (later["state"], behind["state"]) == ("scheduled", "waiting")
    scheduled = tidemill("list", "--state", "scheduled", "--type", "demo.flaky", "--since", "10m", "--all")
    assert later["id"] in scheduled.stdout, scheduled.stderr
    assert behind["id"] not in scheduled.stdout

    ids = [behind["id"], later["id"]]
    cancelled = tidemill("cancel", *ids, "--yes")
    assert cancelled.stdout.splitlines() == [f"{job_id}  cancelled" for job_id in ids], cancelled.stderr
    assert tidemill("redrive", "--own", later["id"], "--yes").returncode == 1
    assert tidemill("watch", *ids).returncode == 4


def test_the_lines_of_a_job_come_from_all_functions_in_order(tidemill: Tidemill) -> None:
    job = json.loads(tidemill("submit", "demo.steps", '{"steps": 3}').stdout)
    followed = tidemill("logs", job["id"], "--follow", "--json")
    assert followed.returncode == 0, followed.stderr
    shown = [json.loads(line) for line in followed.stdout.splitlines()]
    # The lines come as they arrive: that of publish perhaps after the job has ended.
    assert [each["line"]["message"] for each in shown if each["function"] == "work"][-1] == "succeeded"

    def lines_of_all() -> list[dict[str, Any]]:
        """The embedded AWS writes what a function logged when its call ends: for publish, perhaps after the job has."""
        found = [json.loads(line) for line in tidemill("logs", job["id"], "--json").stdout.splitlines()]
        return found if any(line["function"] == "publish" for line in found) else []

    lines = wait_until(lines_of_all, PATIENCE_SECONDS, "a line of publish")
    assert {line["line"]["job_id"] for line in lines} == {job["id"]}
    assert [line["line"]["done"] for line in lines if line["line"]["message"] == "step"] == [1, 2, 3]
    assert list(dict.fromkeys(line["function"] for line in lines)) == ["submit", "publish", "work"]
    assert "succeeded" in tidemill("logs", job["id"]).stdout.splitlines()[-1]


def test_a_repeated_batch_makes_no_second_jobs(tidemill: Tidemill, deployed: Deployed) -> None:
    lines = "".join(json.dumps({"type": "demo.flaky", "payload": {"failures": 0, "n": n}}) + "\n" for n in range(120))
    key = str(uuid4())

    def submitted() -> list[str]:
        """The ids, once all lines are accepted: a busy machine refuses the last ones of a batch for lack of time."""

        def accepted() -> list[str]:
            answer = tidemill("submit", "--batch", "-", "--key", key, typed=lines)
            ids = [line["job"]["id"] for line in map(json.loads, answer.stdout.splitlines()) if "job" in line]
            return ids if answer.returncode == 0 else []

        return wait_until(accepted, PATIENCE_SECONDS, "all lines to be accepted")

    first = submitted()
    before = deployed.stored()
    assert (submitted(), deployed.stored()) == (first, before)


def test_an_operator_sees_redrives_reconciles_and_purges(tidemill: Tidemill) -> None:
    dead = tidemill("submit", "demo.poison", '{"body": "x"}', "--wait")
    assert dead.returncode == 3, dead.stderr
    job_id = json.loads(dead.stdout)["id"]
    assert job_id in tidemill("dlq", "list", "--type", "demo.poison").stdout
    status = json.loads(tidemill("status", "--json").stdout)
    assert [lane["lane"] for lane in status["lanes"]] == ["critical", "default", "bulk"]
    assert status["dead_jobs"] >= 1
    assert tidemill("reconcile").returncode == 0
    assert tidemill("watch", job_id).returncode == 3
    purged = tidemill("purge", "--older-than", "0s", "--type", "demo.poison", "--yes")
    assert purged.returncode == 0, purged.stderr
    assert tidemill("get", job_id).returncode == 1


def test_a_drifted_mapping_is_found_and_repaired(deployed: Deployed, tidemill: Tidemill) -> None:
    """Before the drift nothing differs: each value of the real template is what the embedded AWS reports."""
    lambda_ = deployed.app.client("lambda")
    mapping = deployed.app.mapping("work-bulk")
    planned = json.loads(tidemill("repair", "--dry-run", "--json").stdout)
    assert (planned["drifted"], planned["missing"], planned["not_compared"]) == ([], [], {})

    lambda_.update_event_source_mapping(UUID=mapping, Enabled=False)
    repaired = tidemill("repair", "--yes", "--reason", "test", "--json")
    assert repaired.returncode == 0, repaired.stderr
    result = json.loads(repaired.stdout)
    assert [(each["kind"], each["setting"]) for each in result["drifted"]] == [("event source mapping", "Enabled")]
    assert (result["restored"], result["failed"]) == (1, 0)
    assert lambda_.get_event_source_mapping(UUID=mapping)["State"] == "Enabled"
