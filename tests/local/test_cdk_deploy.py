"""Steps of a deployment: what they leave when they end badly, and the outputs of several stacks as one."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from tests.local.sockets import free_port
from tidemill.local import cdk_deploy, environment
from tidemill.local.cdk_deploy import DeployError
from tidemill.local.wait import wait_until
from tidemill.names import Output


@pytest.fixture
def console() -> Console:
    return Console(file=io.StringIO())


def cdk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str) -> None:
    """Put a script in the place of the CDK command line."""
    (tmp_path / "cdk.js").write_text(script)
    monkeypatch.setattr(cdk_deploy, "CDK", tmp_path / "cdk.js")


def test_a_step_that_fails_is_named_with_the_end_of_what_it_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, console: Console
) -> None:
    cdk(monkeypatch, tmp_path, "console.error('no such bucket'); process.exit(3)")
    keys = environment.root_keys("test")
    with pytest.raises(DeployError, match=r"bootstrapping: .* code 3") as raised:
        cdk_deploy.deploy(tmp_path, f"http://127.0.0.1:{free_port()}", keys, console)
    assert "no such bucket" in str(raised.value)
    assert str(tmp_path / "bootstrap.log") in str(raised.value)


def test_what_the_app_itself_says_is_all_that_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, console: Console
) -> None:
    said = "functions/jobs/one.py, line 3: ModuleNotFoundError: No module named 'nothing'"
    last = "python3 app.py: Subprocess exited with error 1"
    cdk(monkeypatch, tmp_path, f"console.error({json.dumps(f'tidemill: {said}')} + '\\n{last}'); process.exit(1)")
    with pytest.raises(DeployError) as raised:
        cdk_deploy.synth("local", tmp_path / "cdk.out", console)
    assert str(raised.value) == f"synthesising stage local: {said}"


def test_what_a_step_started_ends_with_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, console: Console) -> None:
    """The CDK command line starts a shell, which starts the app, which starts Node again."""
    script = "require('child_process').spawn('sleep', ['60'], {stdio: 'inherit'}); setInterval(() => {}, 1000)"
    cdk(monkeypatch, tmp_path, script)
    with (
        pytest.raises(KeyboardInterrupt),
        cdk_deploy._cdk("waiting", (), environment.for_synth(), log=tmp_path / "log", cwd=tmp_path) as step,
    ):
        raise KeyboardInterrupt
    assert step.process.poll() is not None
    wait_until(lambda: not _members(step.process.pid), 5, "the group to be gone")


def _members(group: int) -> list[str]:
    return [
        stat.parent.name
        for stat in Path("/proc").glob("[0-9]*/stat")
        if stat.exists() and stat.read_text().rpartition(")")[2].split()[2] == str(group)
    ]


def test_outputs_of_two_stacks_are_one_and_what_stacks_hand_each_other_is_left_out() -> None:
    functions = (json.dumps({"submit": "a"}), json.dumps({"shorten": "b"}))
    found = cdk_deploy.merged(
        {
            "Pipeline": {"ApiId": "1", "Functions": functions[0], "ExportsOutputRefTable": "t"},
            "Shortener": {"ShortenerApiId": "2", "Functions": functions[1]},
        }
    )
    assert found == {
        Output.API_ID: "1",
        "ShortenerApiId": "2",
        Output.FUNCTIONS: json.dumps({"submit": "a", "shorten": "b"}),
    }
