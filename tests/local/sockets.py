"""A free port, and the ports on which a process listens."""

import re
import socket
from pathlib import Path

import pytest

LISTENING = "0A"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def listening(pid: int) -> set[tuple[str, int]]:
    """Addresses and ports that a process listens on, TCP and UDP. Skips the test on systems without `/proc`."""
    proc = Path("/proc", str(pid))
    if not proc.exists():
        pytest.skip("only Linux lists the sockets of a process")
    sockets = set()
    for descriptor in (proc / "fd").iterdir():
        if found := re.match(r"socket:\[(\d+)\]", str(descriptor.readlink())):
            sockets.add(found[1])
    return {
        (_address(fields[1].partition(":")[0]), int(fields[1].partition(":")[2], 16))
        for table in ("tcp", "tcp6", "udp", "udp6")
        for fields in map(str.split, (proc / "net" / table).read_text().splitlines()[1:])
        if fields[9] in sockets and (fields[3] == LISTENING or table.startswith("udp"))
    }


def _address(hexadecimal: str) -> str:
    packed = bytes.fromhex(hexadecimal)
    return socket.inet_ntoa(packed[::-1]) if len(packed) == len(b"IPv4") else hexadecimal
