"""What a child process may see of the environment: built up from nothing, so that no real AWS profile is in reach.

Three kinds: the emulator's own, a synth (which asks package registries and no AWS), and whatever talks to the emulator.
"""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tidemill.local.paths import STATE, VENV, node_folder

REGION: Final = "us-east-1"
#: The emulator's answer to every key that is not an account's number.
ACCOUNT: Final = "000000000000"
#: Of the person's variables, what any program may want: a path, a terminal, a language, a place for temporary files.
HARMLESS: Final = frozenset(
    ("PATH", "TERM", "COLUMNS", "LINES", "NO_COLOR", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "USER")
)
#: What pip needs to reach the registries that the person's settings name.
REGISTRY: Final = frozenset(
    (
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NETRC", "XDG_CONFIG_DIRS"),
    )
)
#: Loopback goes past any proxy, also one that the system rather than a variable names.
LOOPBACK: Final = "127.0.0.1,localhost"


@dataclass(frozen=True, kw_only=True)
class Keys:
    """AWS credentials that only the emulator takes."""

    access_key: str
    secret_key: str
    token: str | None = None

    def variables(self) -> dict[str, str]:
        variables = {"AWS_ACCESS_KEY_ID": self.access_key, "AWS_SECRET_ACCESS_KEY": self.secret_key}
        return variables | ({"AWS_SESSION_TOKEN": self.token} if self.token else {})


def root_keys(instance: str) -> Keys:
    """Other ones for each instance: the CDK command line remembers which account a key belongs to."""
    return Keys(access_key=f"TIDEMILL{instance.upper().replace('-', '')}", secret_key="known-to-everybody")  # noqa: S106


def for_aws(endpoint: str, keys: Keys) -> dict[str, str]:
    """For what talks to the emulator at `endpoint` and to nothing else."""
    return _plain() | _no_profile() | keys.variables() | {"AWS_ENDPOINT_URL": endpoint}


def for_synth() -> dict[str, str]:
    """Without keys and endpoint, since a synth calls no AWS; with the person's way to the package registries."""
    registry = {
        name: value for name, value in os.environ.items() if name in REGISTRY or name.startswith(("PIP_", "NO_PROXY"))
    }
    return registry | _pip_athome() | _plain() | _no_profile()


def for_emulator(folder: Path, port: int) -> dict[str, str]:
    """The whole environment of the emulator. The functions inherit it, but for what the launcher keeps from them."""
    return {
        "PATH": os.defpath,
        "LANG": "C.UTF-8",
        "HOME": str(home()),
        "TMPDIR": str(folder / "tmp"),
        "BIND_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(port),
        # The host in the URLs that it hands out; "localhost" may mean ::1, where it does not listen.
        "MINISTACK_HOST": "127.0.0.1",
        "MINISTACK_REGION": REGION,
        "MINISTACK_ACCOUNT_ID": ACCOUNT,
        # Its other listeners would be open to the network whatever BIND_HOST says.
        "IOT_MTLS_ENABLED": "0",
        "SFTP_ENABLED": "0",
        # It removes the containers of every other emulator that it finds; it is to find none.
        "DOCKER_HOST": f"unix://{folder}/no-docker",
        "LAMBDA_EXECUTOR": "local",
        "LAMBDA_ACCOUNT_CONCURRENCY": "50",
        "LAMBDA_WARM_TTL_SECONDS": "120",
        "LOG_LEVEL": "INFO",
    }


def without_aws(environment: Mapping[str, str]) -> dict[str, str]:
    """For this very process: `environment` without anything that could lead a library to a real account."""
    return {name: value for name, value in environment.items() if not name.upper().startswith(("AWS_", "CDK_"))}


def _plain() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name in HARMLESS}
    # Node itself, before the script of that name in `.venv/bin`, which would start a Python each time.
    path = [str(node_folder() / "bin"), str(VENV / "bin"), kept.get("PATH", os.defpath)]
    return kept | {
        "PATH": os.pathsep.join(path),
        "HOME": str(home()),
        "NO_PROXY": LOOPBACK,
        "no_proxy": LOOPBACK,
        "CDK_HOME": str(home() / ".cdk"),
        "CDK_DISABLE_CLI_TELEMETRY": "true",
        "CDK_DISABLE_VERSION_CHECK": "true",
    }


def _no_profile() -> dict[str, str]:
    empty = home() / "no-aws-profile"
    empty.touch()
    return {
        "AWS_CONFIG_FILE": str(empty),
        "AWS_SHARED_CREDENTIALS_FILE": str(empty),
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
    }


def home() -> Path:
    """Instead of the person's: `~/.aws`, `~/.cdk.json` and their like stay out of reach."""
    home = STATE / "home"
    home.mkdir(parents=True, exist_ok=True)
    return home


def _pip_athome() -> dict[str, str]:
    """The person's pip settings and cache, which pip would look for in the person's home folder."""
    person = Path.home()
    configuration = Path(os.environ.get("XDG_CONFIG_HOME", person / ".config"))
    cache = Path(os.environ.get("XDG_CACHE_HOME", person / ".cache"))
    files = [configuration / "pip" / "pip.conf", person / ".pip" / "pip.conf"]
    if sys.platform == "darwin":
        files.insert(0, person / "Library" / "Application Support" / "pip" / "pip.conf")
        cache = person / "Library" / "Caches"
    found = {"PIP_CACHE_DIR": str(cache / "pip"), "NETRC": str(person / ".netrc")}
    present = [file for file in files if file.is_file()]
    return found | ({"PIP_CONFIG_FILE": str(present[0])} if present else {})
