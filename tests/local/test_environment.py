"""No child process sees a real profile, key, endpoint or proxy of the environment."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.local.sockets import free_port
from tidemill.local import environment
from tidemill.local.environment import Keys
from tidemill.local.lifecycle import bare
from tidemill.local.paths import ROOT, STATE
from tidemill.local.signed_caller import Caller

NOWHERE = f"http://127.0.0.1:{free_port()}"
HOSTILE = {
    "AWS_PROFILE": "production",
    "AWS_DEFAULT_PROFILE": "production",
    "AWS_ACCESS_KEY_ID": "AKIAREAL",
    "AWS_SECRET_ACCESS_KEY": "real",
    "AWS_SESSION_TOKEN": "real",
    "AWS_ENDPOINT_URL": NOWHERE,
    "AWS_ENDPOINT_URL_DYNAMODB": NOWHERE,
    "AWS_ENDPOINT_URL_STS": NOWHERE,
    "AWS_REGION": "eu-west-9",
    "AWS_DEFAULT_REGION": "eu-west-9",
    "AWS_CONFIG_FILE": "/nowhere/config",
    "AWS_SHARED_CREDENTIALS_FILE": "/nowhere/credentials",
    "AWS_CA_BUNDLE": "/nowhere/bundle.pem",
    "AWS_DATA_PATH": "/nowhere/models",
    "AWS_MAX_ATTEMPTS": "nonsense",
    "AWS_RETRY_MODE": "nonsense",
    "AWS_USE_FIPS_ENDPOINT": "true",
    "AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/real",
    "AWS_WEB_IDENTITY_TOKEN_FILE": "/nowhere/token",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{NOWHERE}/credentials",
    "CDK_DEFAULT_ACCOUNT": "123456789012",
    "CDK_DEFAULT_REGION": "eu-west-9",
    "CDK_CONTEXT_JSON": "{}",
    "CDK_HOME": "/nowhere",
    "HTTP_PROXY": NOWHERE,
    "HTTPS_PROXY": NOWHERE,
    "ALL_PROXY": NOWHERE,
    "http_proxy": NOWHERE,
    "https_proxy": NOWHERE,
    "NO_PROXY": "example.com",
    "no_proxy": "example.com",
    "NODE_OPTIONS": "--require /nowhere.js",
    "JSII_NODE": "/nowhere/node",
    "PYTHONPATH": "/nowhere",
    "GATEWAY_PORT": "1",
    "BIND_HOST": "0.0.0.0",
}
KEYS = Keys(access_key="known", secret_key="known", token="known")
CHILDREN: Mapping[str, Callable[[], dict[str, str]]] = {
    "the emulator": lambda: environment.for_emulator(STATE / "some", 4566),
    "a synth": environment.for_synth,
    "what talks to the emulator": lambda: environment.for_aws("http://127.0.0.1:4566", KEYS),
}


@pytest.fixture
def hostile(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in HOSTILE.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("hostile")
@pytest.mark.parametrize("child", CHILDREN)
def test_no_hostile_value_reaches_a_child(child: str) -> None:
    seen = CHILDREN[child]()
    # A synth reaches the package registries with the settings of the user. It has neither keys nor an endpoint.
    proxies = {name for name in HOSTILE if name.lower() in {"http_proxy", "https_proxy", "all_proxy"}}
    allowed = proxies if child == "a synth" else set()
    assert {name for name, value in HOSTILE.items() if seen.get(name) == value} == allowed


@pytest.mark.usefixtures("hostile")
def test_a_synth_has_neither_keys_nor_an_endpoint() -> None:
    assert not {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL"} & environment.for_synth().keys()


@pytest.mark.parametrize("child", CHILDREN)
def test_no_child_has_the_home_folder_of_the_user(child: str) -> None:
    seen = CHILDREN[child]()
    assert Path(seen["HOME"]).is_relative_to(STATE)
    for name in {"AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"} & seen.keys():
        assert not Path(seen[name]).read_bytes()


def test_an_unlisted_variable_reaches_no_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_TOOL_OF_TOMORROW", "x")
    assert all("SOME_TOOL_OF_TOMORROW" not in child() for child in CHILDREN.values())


def test_a_synth_finds_the_settings_of_pip_though_it_has_another_home(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("PIP_TIMEOUT", "7")
    monkeypatch.delenv("PIP_CONFIG_FILE", raising=False)
    (tmp_path / "pip").mkdir()
    (tmp_path / "pip" / "pip.conf").touch()
    seen = environment.for_synth()
    assert (seen["PIP_CONFIG_FILE"], seen["PIP_TIMEOUT"]) == (str(tmp_path / "pip" / "pip.conf"), "7")


def test_the_environment_of_this_process_names_no_account() -> None:
    left = environment.without_aws({**HOSTILE, "PATH": "/bin"})
    assert not [name for name in left if name.startswith(("AWS_", "CDK_"))]
    assert left["PATH"] == "/bin"


def test_each_instance_has_keys_of_its_own() -> None:
    assert environment.root_keys("up") != environment.root_keys("run-1a2b3c")
    assert environment.root_keys("run-1a2b3c").access_key.isalnum()


@pytest.mark.emulator
@pytest.mark.usefixtures("hostile")
def test_calls_reach_only_the_emulator_in_a_hostile_environment() -> None:
    with bare() as root:
        assert root.endpoint.startswith("http://127.0.0.1:")
        assert root.client("sts").get_caller_identity()["Account"] == environment.ACCOUNT
        assert root.client("dynamodb").list_tables()["TableNames"] == []
        assert root.request("GET", f"{root.endpoint}/_ministack/health").status == 200
        assert _from_a_child(root) == {"account": environment.ACCOUNT, "tables": []}


def _from_a_child(caller: Caller) -> object:
    """The result of plain boto3 in a child process, as the command line uses it."""
    script = (
        "import boto3, json; print(json.dumps({"
        "'account': boto3.client('sts').get_caller_identity()['Account'], "
        "'tables': boto3.client('dynamodb').list_tables()['TableNames']}))"
    )
    assert os.environ["AWS_PROFILE"] == "production"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=caller.environment(), cwd=ROOT, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)
