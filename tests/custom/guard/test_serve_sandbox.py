"""What a worker gives up before it loads a library, and what it keeps where there is a GPU."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from headrace.custom.guard import keeper

pytestmark = pytest.mark.skipif(keeper.can_guard() is not None, reason="no workers here")

MIB = 1 << 20
TRIES = f"""
import errno, json, mmap, os, socket, sys, tempfile
from headrace._core import _native

left = _native.guard_sandbox(256 * {MIB}, gpu=sys.argv[1] == "gpu")
done = {{"left": left}}


def attempt(name, act):
    try:
        act()
        done[name] = "works"
    except OSError as error:
        done[name] = errno.errorcode[error.errno]
    except MemoryError:
        done[name] = "ENOMEM"


PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
attempt("internet", lambda: socket.socket(socket.AF_INET))
attempt("internet datagrams", lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM))
attempt("netlink", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW))
attempt("pair", socket.socketpair)
attempt("unix", lambda: socket.socket(socket.AF_UNIX))
with tempfile.TemporaryDirectory() as folder:
    at = os.path.join(folder, "s")
    ears = []
    attempt("bind", lambda: ears.append(socket.socket(socket.AF_UNIX)) or ears[0].bind(at))
    attempt("listen", lambda: ears[0].listen() if ears else socket.socketpair()[0].listen())
    pair = socket.socketpair()[0]
    attempt("connect", lambda: pair.connect(at))
    attempt("accept", lambda: pair.accept())
attempt("other process", lambda: os.kill(os.getppid(), 0))
attempt("itself", lambda: os.kill(os.getpid(), 0))
# as CUDA does: addresses that nothing is behind yet
attempt("reserve", lambda: mmap.mmap(-1, 2048 * {MIB}, PRIVATE, mmap.PROT_READ))
attempt("little", lambda: bytearray(64 * {MIB}))
attempt("much", lambda: bytearray(512 * {MIB}))
print(json.dumps(done))
"""
REFUSED = {
    "left": [],
    "internet": "EACCES",
    "internet datagrams": "EACCES",
    "netlink": "EACCES",
    "pair": "works",
    "connect": "EACCES",
    "accept": "EACCES",
    "other process": "EPERM",
    "itself": "works",
    "little": "works",
    "much": "ENOMEM",
}


@pytest.mark.parametrize(
    ("machine", "more"),
    [
        ("cpu", {"unix": "EACCES", "bind": "EACCES", "listen": "EACCES", "reserve": "ENOMEM"}),
        ("gpu", dict.fromkeys(("unix", "bind", "listen", "reserve"), "works")),
    ],
)
def test_what_is_refused(machine: str, more: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", TRIES, machine],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == REFUSED | more
