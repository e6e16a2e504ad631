"""The environments of child processes. Each is built from an empty one, so that no real AWS profile is in reach.

Three kinds exist: for the emulator, for a synth (which calls package registries but not AWS), and for each client of
the emulator.
"""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tidemill.local.paths import STATE, VENV, node_folder

REGION: Final = "us-east-1"
#: The account that the emulator gives to every access key that is not an account number.
ACCOUNT: Final = "000000000000"
#: The user's variables that any program may need: path, terminal, language, folder for temporary files.
HARMLESS: Final = frozenset(
    ("PATH", "TERM", "COLUMNS", "LINES", "NO_COLOR", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "USER")
)
#: The variables that pip needs to reach the registries in the user's settings.
REGISTRY: Final = frozenset(
    (
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NETRC", "XDG_CONFIG_DIRS"),
    )
)
#: Calls to loopback bypass any proxy, also a proxy in the settings of the system.
LOOPBACK: Final = "127.0.0.1,localhost"


@dataclass(frozen=True, kw_only=True)
class Keys:
    """AWS credentials that only the emulator accepts."""

    access_key: str
    secret_key: str
    token: str | None = None

    def variables(self) -> dict[str, str]:
        variables = {"AWS_ACCESS_KEY_ID": self.access_key, "AWS_SECRET_ACCESS_KEY": self.secret_key}
        return variables | ({"AWS_SESSION_TOKEN": self.token} if self.token else {})


def root_keys(instance: str) -> Keys:
    """Different keys for each instance, because the CDK command line caches the account of a key."""
    return Keys(access_key=f"TIDEMILL{instance.upper().replace('-', '')}", secret_key="known-to-everybody")  # noqa: S106


def for_aws(endpoint: str, keys: Keys) -> dict[str, str]:
    """For a process that calls the emulator at `endpoint` and no other AWS."""
    return _plain() | _no_profile() | keys.variables() | {"AWS_ENDPOINT_URL": endpoint}


def for_synth() -> dict[str, str]:
    """Without keys and endpoint, since a synth does not call AWS. With the user's settings of package registries."""
    registry = {
        name: value for name, value in os.environ.items() if name in REGISTRY or name.startswith(("PIP_", "NO_PROXY"))
    }
    return registry | _pip_of_the_user() | _plain() | _no_profile()


def for_emulator(folder: Path, port: int) -> dict[str, str]:
    """The whole environment of the emulator. Functions inherit it without the settings that the launcher removes."""
    return {
        "PATH": os.defpath,
        "LANG": "C.UTF-8",
        "HOME": str(home()),
        "TMPDIR": str(folder / "tmp"),
        "BIND_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(port),
        # The host in the URLs that the emulator returns. It does not listen on ::1, which "localhost" may mean.
        "MINISTACK_HOST": "127.0.0.1",
        "MINISTACK_REGION": REGION,
        "MINISTACK_ACCOUNT_ID": ACCOUNT,
        # The other listeners of the emulator ignore BIND_HOST and would be open to the network.
        "IOT_MTLS_ENABLED": "0",
        "SFTP_ENABLED": "0",
        # The emulator removes the containers of all other emulators that it finds. Without Docker it finds none.
        "DOCKER_HOST": f"unix://{folder}/no-docker",
        "LAMBDA_EXECUTOR": "local",
        "LAMBDA_ACCOUNT_CONCURRENCY": "50",
        "LAMBDA_WARM_TTL_SECONDS": "120",
        "LOG_LEVEL": "INFO",
    }


def without_aws(environment: Mapping[str, str]) -> dict[str, str]:
    """For this process: `environment` without the variables that could lead a library to a real account."""
    return {name: value for name, value in environment.items() if not name.upper().startswith(("AWS_", "CDK_"))}


def _plain() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name in HARMLESS}
    # Node itself comes before the script `node` in `.venv/bin`, which would start a Python each time.
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
    """A home folder in place of the user's, so that `~/.aws`, `~/.cdk.json` and similar files stay out of reach."""
    home = STATE / "home"
    home.mkdir(parents=True, exist_ok=True)
    return home


def _pip_of_the_user() -> dict[str, str]:
    """The user's pip settings and cache, which pip would otherwise look for in the user's home folder."""
    user = Path.home()
    configuration = Path(os.environ.get("XDG_CONFIG_HOME", user / ".config"))
    cache = Path(os.environ.get("XDG_CACHE_HOME", user / ".cache"))
    files = [configuration / "pip" / "pip.conf", user / ".pip" / "pip.conf"]
    if sys.platform == "darwin":
        files.insert(0, user / "Library" / "Application Support" / "pip" / "pip.conf")
        cache = user / "Library" / "Caches"
    found = {"PIP_CACHE_DIR": str(cache / "pip"), "NETRC": str(user / ".netrc")}
    present = [file for file in files if file.is_file()]
    return found | ({"PIP_CONFIG_FILE": str(present[0])} if present else {})
