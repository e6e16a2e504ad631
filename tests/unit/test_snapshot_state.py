"""With SnapStart, many environments begin with the state that one import left. It must hold nothing of one of them.

https://docs.aws.amazon.com/lambda/latest/dg/snapstart-uniqueness.html
"""

import json
import subprocess
import sys
from pathlib import Path

from tests.unit.test_composition import HANDLERS, ROOT

#: Imports the modules and prints what an import must not leave, as JSON: calls of clocks and of sources of randomness
#: in our files, connections, threads and clients.
IMPORT = """
import gc, importlib, json, sys, threading

found = set()
NAMES = set("urandom time time_ns monotonic monotonic_ns perf_counter now utcnow today random getrandbits randbits "
            "choice shuffle seed uuid1 uuid4 token_hex token_bytes token_urlsafe getpid".split())
root, modules = sys.argv[1], sys.argv[2:]


def watch(frame, event, argument):
    if event == "c_call":
        name, caller = argument.__name__, frame
    elif event == "call" and frame.f_back:
        name, caller = frame.f_code.co_name, frame.f_back
    else:
        return
    file = caller.f_code.co_filename
    if name in NAMES and file.startswith((root + "/shared/", root + "/functions/")):
        found.add(f"{file}:{caller.f_lineno} calls {name}")


sys.addaudithook(lambda event, _arguments: event in {"socket.connect", "socket.getaddrinfo"} and found.add(event))
sys.setprofile(watch)
for module in modules:
    importlib.import_module(module)
sys.setprofile(None)
if threading.active_count() > 1:
    found.add("a thread")
import botocore.client, botocore.session
kept = (botocore.client.BaseClient, botocore.session.Session)
found.update(type(each).__name__ for each in gc.get_objects() if isinstance(each, kept))
print(json.dumps(sorted(found)))
"""


def imported(*modules: str, root: Path = ROOT) -> list[str]:
    """What the imports have left, in a process without any setting. Our files are those of `root`."""
    ran = subprocess.run(
        [sys.executable, "-c", IMPORT, str(root), *modules],
        cwd=ROOT,
        env={} if root == ROOT else {"PYTHONPATH": str(root / "shared")},
        check=True,
        capture_output=True,
        text=True,
    )
    found: list[str] = json.loads(ran.stdout)
    return found


def test_the_import_of_the_handlers_leaves_no_clock_no_randomness_no_connection_and_no_client() -> None:
    assert imported(*HANDLERS) == []


def test_the_check_finds_what_must_not_be_there(tmp_path: Path) -> None:
    """Each of these would be the same in every environment."""
    code = """
import secrets, threading, time, uuid
import boto3
TOKEN, BEGAN, ID = secrets.token_hex(), time.time(), uuid.uuid4()
CLIENT = boto3.client("sqs", region_name="eu-west-1")
threading.Thread(target=threading.Event().wait, daemon=True).start()
"""
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "leaves_state.py").write_text(code)

    found = imported("leaves_state", root=tmp_path)

    calls = {each.rpartition(" ")[2] for each in found if " calls " in each}
    assert calls == {"token_hex", "time", "uuid4"}
    assert {"SQS", "a thread"} <= set(found)
