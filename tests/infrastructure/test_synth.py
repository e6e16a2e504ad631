"""Synthesis takes everything from the context: with no account, credentials, git, home or network it does the same."""

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
        # What the CDK command line hands to the app, and Node.
        "CDK_OUTDIR": str(tmp_path / "cdk.out"),
        "CDK_CONTEXT_JSON": json.dumps(context),
        "PATH": str(tools),
        # Nothing else, and nobody to ask.
        "HTTP_PROXY": nowhere,
        "HTTPS_PROXY": nowhere,
    }
    return subprocess.run(
        [sys.executable, str(ROOT / "app.py")], env=environment, cwd=ROOT, capture_output=True, text=True, check=False
    )


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


@pytest.mark.parametrize(("context", "says"), [({"stage": "prd"}, "tidemill: unknown stage 'prd'")])
def test_a_wrong_setting_is_told_in_one_line(tmp_path: Path, context: dict[str, str], says: str) -> None:
    done = _synthesise(tmp_path, context)
    assert done.returncode == 1
    (line,) = (line for line in done.stderr.splitlines() if not line.startswith("b'"))
    assert line.startswith(says)


def test_the_cdk_command_line_is_pinned_and_its_lock_names_no_registry() -> None:
    version = json.loads((ROOT / "package.json").read_text())["devDependencies"]["aws-cdk"]
    lock = (ROOT / "package-lock.json").read_text()
    # npm's `latest` is a 3.0.0 that cannot read our assembly.
    assert version.startswith("2.")
    assert json.loads(lock)["packages"]["node_modules/aws-cdk"]["version"] == version
    assert "resolved" not in lock
    assert os.sep + os.sep not in lock
