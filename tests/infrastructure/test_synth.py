"""Synth reads only the context: it needs no account, credentials, git, home folder or network."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stacks.composition import ROOT


def _synthesise(tmp_path: Path, context: dict[str, str]) -> subprocess.CompletedProcess[str]:
    node = shutil.which("node")
    assert node, "Node is not on the PATH"
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "node").symlink_to(node)
    nowhere = "http://127.0.0.1:9"
    environment = {
        # The variables that the CDK command line sets for the app, and Node.
        "CDK_OUTDIR": str(tmp_path / "cdk.out"),
        "CDK_CONTEXT_JSON": json.dumps(context),
        "PATH": str(tools),
        # No other variable, and no network.
        "HTTP_PROXY": nowhere,
        "HTTPS_PROXY": nowhere,
    }
    return subprocess.run(
        [sys.executable, str(ROOT / "app.py")], env=environment, cwd=ROOT, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_synth_needs_neither_account_nor_credentials_nor_git(tmp_path: Path, built: Path) -> None:
    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    done = _synthesise(tmp_path, context | {"stage": "local"})
    assert done.returncode == 0, done.stderr
    manifest = json.loads((tmp_path / "cdk.out" / "manifest.json").read_text())
    stacks = {
        id_: artifact["environment"]
        for id_, artifact in manifest["artifacts"].items()
        if artifact["type"] == "aws:cloudformation:stack"
    }
    nowhere = "aws://unknown-account/unknown-region"
    assert stacks == {"Tidemill-local-Pipeline": nowhere, "Tidemill-local-Shortener": nowhere}


@pytest.mark.parametrize(("context", "message"), [({"stage": "prd"}, "tidemill: unknown stage 'prd'")])
def test_an_invalid_setting_is_reported_in_one_line(tmp_path: Path, context: dict[str, str], message: str) -> None:
    done = _synthesise(tmp_path, context)
    assert done.returncode == 1
    (line,) = (line for line in done.stderr.splitlines() if not line.startswith("b'"))
    assert line.startswith(message)


def test_the_cdk_command_line_is_pinned_and_its_lock_names_no_registry() -> None:
    version = json.loads((ROOT / "package.json").read_text())["devDependencies"]["aws-cdk"]
    lock = (ROOT / "package-lock.json").read_text()
    # npm's `latest` is 3.0.0, which cannot read this app's cloud assembly.
    assert version.startswith("2.")
    assert json.loads(lock)["packages"]["node_modules/aws-cdk"]["version"] == version
    assert "resolved" not in lock
    assert os.sep + os.sep not in lock
