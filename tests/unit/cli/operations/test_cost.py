"""`tidemill cost`: the bills that it prints, without AWS."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.unit.cost.test_stage_parts import TEMPLATE
from tidemill.cli.main import tidemill
from tidemill.cost.list_prices import all_prices


@pytest.fixture(autouse=True)
def in_folder_without_app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Without credentials, too."""
    monkeypatch.chdir(tmp_path)
    for name in ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def run(*options: str) -> Result:
    return CliRunner().invoke(tidemill, ["cost", *options], prog_name="tidemill")


def printed(*options: str) -> Any:
    result = run("--json", *options)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def synthesised(folder: Path) -> Path:
    artifact = {"type": "aws:cloudformation:stack", "properties": {"templateFile": "a.template.json"}}
    (folder / "manifest.json").write_text(json.dumps({"artifacts": {"a": artifact}}))
    (folder / "a.template.json").write_text(json.dumps(TEMPLATE))
    return folder


def test_a_bill_has_a_line_for_each_use_and_their_total() -> None:
    bill = printed()["per_million_jobs"]

    assert {line["name"] for line in bill["lines"]} >= {"table writes", "queue requests", "invocations", "logs"}
    assert bill["total"] == pytest.approx(sum(line["dollars"] for line in bill["lines"]))
    assert all(line["units"] > 0 for line in bill["lines"])


def test_options_describe_the_jobs() -> None:
    plain, described = printed(), printed("--payload-bytes", "5000", "--attempts", "1.5", "--group", "--no-listing")

    assert described["profile"] == plain["profile"] | {
        "payload_bytes": 5000,
        "attempts": 1.5,
        "group": True,
        "listing": False,
    }
    assert described["per_million_jobs"]["total"] > plain["per_million_jobs"]["total"]


@pytest.mark.parametrize(
    ("compression", "text"),
    [("1", "A payload of more than 2,800 bytes costs less as a file"), ("100", "An item costs no more than a file")],
)
def test_the_place_of_a_payload_is_named(compression: str, text: str) -> None:
    assert text in run("--payload-bytes", "5000", "--compression", compression).stdout
    assert text not in run("--compression", compression).stdout


def test_the_idle_month_is_that_of_the_synthesised_app(tmp_path: Path) -> None:
    month = printed("--app", str(synthesised(tmp_path)))["idle_month"]

    assert {"alarms", "dashboards", "scheduler"} <= {line["name"] for line in month["lines"]}
    assert "AN IDLE MONTH" in run("--app", str(tmp_path)).stdout


def test_cdk_out_is_read_if_it_is_there(tmp_path: Path) -> None:
    assert printed()["idle_month"] is None
    assert "npx cdk synth" in run().stderr
    (tmp_path / "cdk.out").mkdir()
    synthesised(tmp_path / "cdk.out")

    assert printed()["idle_month"]["total"] > 0


def test_a_folder_without_app_is_an_error_that_names_the_command(tmp_path: Path) -> None:
    result = run("--app", str(tmp_path))

    assert result.exit_code == 1
    assert "holds no synthesised app" in result.stderr
    assert "npx cdk synth" in result.stderr


def test_a_number_out_of_its_range_is_wrong_usage() -> None:
    result = run("--batch", "101")

    assert result.exit_code == 2
    assert "batch 101 must be from 1 to 100" in result.stderr


@pytest.mark.parametrize("option", ["--rate", "--budget", "--attempts", "--retention-days"])
@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "1e308"])
def test_a_number_that_is_not_finite_or_far_too_large_is_wrong_usage(option: str, number: str) -> None:
    result = run(f"{option}={number}")

    assert (result.exit_code, result.stdout) == (2, "")


def test_the_prices_are_shown_with_date_and_source() -> None:
    assert len(printed("--prices")["prices"]) == len(all_prices())
    assert "2026-09-28" in run("--prices").stdout


def test_a_rate_shows_its_price_by_the_month_and_each_bound_that_it_exceeds() -> None:
    load = printed("--rate", "2000")["load"]

    assert load["dollars_per_month"] == pytest.approx(
        printed()["per_million_jobs"]["total"] * 2000 * 365 / 12 * 24 * 3600 / 1e6
    )
    assert [bound["name"] for bound in load["bounds"] if bound["binds"]] == ["API of the stage", "new table"]
    assert run("--rate", "2000").stdout.count("binds") == 2
    assert printed()["load"] is None


def test_the_worst_day_is_that_of_the_synthesised_app(tmp_path: Path) -> None:
    assert printed()["worst_day"] is None

    day = printed("--app", str(synthesised(tmp_path)))["worst_day"]

    assert {"table writes", "invocation time", "logs"} <= {line["name"] for line in day["lines"]}
    assert "THE WORST DAY" in run("--app", str(tmp_path)).stdout


def test_a_budget_of_a_tenant_is_a_quota_of_its_jobs() -> None:
    found = printed("--budget", "10", "--payload-bytes", "2000")
    quota, dollars = found["daily_quota"], found["per_million_jobs"]["total"] / 1e6

    assert quota["period_seconds"] == 24 * 60 * 60
    assert quota["count"] * dollars <= 10 < (quota["count"] + 1) * dollars
    shown = run("--budget", "10", "--payload-bytes", "2000").stdout
    assert f"tidemill config set quotas.TENANT '{json.dumps(quota)}'" in shown
    assert printed()["daily_quota"] is None
    # The most that a quota takes.
    assert printed("--budget", "1000000")["daily_quota"]["count"] == 100_000_000
