"""What a worker gives up before it loads a library, and what it keeps where there is a GPU."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headrace._core import _native
from headrace.custom.guard import keeper

pytestmark = pytest.mark.skipif(keeper.can_guard() is not None, reason="no workers here")

MIB = 1 << 20
TRIES = f"""
import errno, json, mmap, os, socket, sys, tempfile
from headrace._core import _native
from headrace.custom.guard.reach import reach_of

gpu = sys.argv[1] == "gpu"
own = tempfile.mkdtemp()
reach = reach_of([], [own], gpu=gpu)
places = list(reach.reads), reach.narrow, list(reach.writes), list(reach.devices)
left = _native.guard_sandbox(256 * {MIB}, gpu, *places, *map(int, sys.argv[2:]))
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
with tempfile.TemporaryDirectory(dir=own) as folder:
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


FILES = """
victim = sys.argv.pop()
attempt("new", lambda: open(victim + ".new", "w"))
attempt("change", lambda: open(victim, "r+"))
attempt("shorten", lambda: os.truncate(victim, 0))
attempt("empty", lambda: os.open(victim, os.O_RDONLY | os.O_TRUNC))
attempt("empty without rights", lambda: os.open(victim, os.O_ACCMODE | os.O_TRUNC))
attempt("open for neither", lambda: os.open(victim, os.O_ACCMODE))
attempt("take", lambda: os.rename(victim, own + "/taken"))
attempt("link", lambda: os.link(victim, own + "/linked"))
attempt("remove", lambda: os.remove(victim))
attempt("read", lambda: open(victim).read())
attempt("memory", lambda: open(f"/proc/{os.getppid()}/mem"))
attempt("own", lambda: os.rename(open(own + "/a", "w").name, own + "/b"))
"""
CLOSED = dict.fromkeys(
    ("new", "change", "shorten", "empty", "empty without rights", "open for neither", "take",
     "link", "remove", "memory")
)  # fmt: skip


def sandboxed(code: str, *arguments: object) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


@pytest.mark.parametrize(
    ("machine", "more"),
    [
        ("cpu", {"unix": "EACCES", "bind": "EACCES", "listen": "EACCES", "reserve": "ENOMEM"}),
        ("gpu", dict.fromkeys(("unix", "bind", "listen", "reserve"), "works")),
    ],
)
def test_what_is_refused(machine: str, more: dict[str, str]) -> None:
    assert sandboxed(TRIES, machine) == REFUSED | more


DRIVER = """
import threading
quits, ids = threading.Event(), []
thread = threading.Thread(target=lambda: ids.append(threading.get_native_id()) or quits.wait())
thread.start()
while not ids:
    pass
name = f"/proc/self/task/{ids[0]}/comm"
attempt("name a thread", lambda: os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)))
link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
attempt("bind without a file", lambda: link.bind(chr(0) + f"headrace-{os.getpid()}"))
attempt("listen there", lambda: link.listen(128))
for folder in ("/sys/devices/system/cpu/online", "/proc/cpuinfo", "/proc/self/maps"):
    attempt(folder, lambda: open(folder).close())
quits.set()
"""


@pytest.mark.parametrize("version", range(8))
def test_a_driver_can_start_in_it(version: int) -> None:
    """What libcuda 580 was seen to ask for in cuInit and in the making of a context."""
    if version > _native.guard_landlock_version():
        pytest.skip("this kernel has an older one")
    head = TRIES.split("with tempfile")[0]
    told = sandboxed(head + DRIVER + "print(json.dumps(done))", "gpu", version)
    if not version and told["left"]:
        pytest.skip("no namespaces here")
    driver = {name: answer for name, answer in told.items() if name not in REFUSED}
    assert set(driver.values()) == {"works"}, driver


@pytest.mark.parametrize("version", range(8))
def test_every_version_of_landlock_closes_files_and_memory(tmp_path: Path, version: int) -> None:
    """And namespaces do, where there is none."""
    if version > _native.guard_landlock_version():
        pytest.skip("this kernel has an older one")
    victim = tmp_path / "victim.txt"
    victim.write_text("as it was")
    head, last = TRIES.split("PRIVATE =")[0], "print(json.dumps(done))"
    code = head.replace("sys.argv[2:]", "sys.argv[2:3]") + FILES + last
    told = sandboxed(code, "cpu", version, victim)
    if not version and told["left"]:
        pytest.skip("no namespaces here")
    assert {name for name in CLOSED if told[name] == "works"} == set()
    assert (told["read"], told["own"], told["left"]) == ("works", "works", [])
    assert victim.read_text() == "as it was"
    assert list(tmp_path.iterdir()) == [victim]
