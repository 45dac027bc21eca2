"""An application whose guarded library tries every way of `sources/escapes.cpp`.

usage: escapes.py LIBRARY FOLDER. Prints what became of each, and what it noticed itself, as JSON.
As root it becomes another user with ESCAPE_USER. ESCAPE_HIDE=landlock, or landlock,namespaces,
makes the kernel say that it has none.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import re
import resource
import signal
import socket
import struct
import sys
import time
from contextlib import suppress
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "sources" / "escapes.cpp"
WAY = re.compile(r'^WAY\((\w+), "(\w+)"\)', re.MULTILINE)
SECRET = "kept-from-the-worker-4711"
ENOSYS, EPERM = 38, 1
LANDLOCK, UNSHARE = (444, 445, 446), (272,)


def ways() -> dict[str, str]:
    """Name of each way -> the layer that stops it."""
    return dict(WAY.findall(SOURCE.read_text()))


def hide(what: str) -> None:
    """Make the kernel refuse system calls, as one without them does."""
    rows = [struct.pack("HBBI", 0x20, 0, 0, 0)]
    calls = dict.fromkeys(LANDLOCK, ENOSYS) if "landlock" in what else {}
    calls |= dict.fromkeys(UNSHARE, EPERM) if "namespaces" in what else {}
    for number, error in calls.items():
        rows.append(struct.pack("HBBI", 0x15, 0, 1, number))
        rows.append(struct.pack("HBBI", 0x06, 0, 0, 0x50000 | error))
    rows.append(struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000))
    code = ctypes.create_string_buffer(b"".join(rows))
    program = struct.pack("HxxxxxxQ", len(rows), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    assert libc.prctl(22, 2, ctypes.create_string_buffer(program)) == 0


def become(user: int) -> None:
    """Become another user, for whom the interpreter can be reached wherever it is."""
    libc = ctypes.CDLL(None, use_errno=True)
    prefix = Path(sys.base_prefix)
    hidden = [p for p in prefix.parents if len(p.parts) > 1 and not p.stat().st_mode & 1]
    if hidden:  # as /root is: a folder of the same name, of this process alone, has it
        top = bytes(hidden[-1])
        done = [
            libc.unshare(0x20000),
            libc.mount(b"none", b"/", None, 0x4000 | 1 << 18, None),
        ]
        handle = os.open(prefix, os.O_PATH)
        done.append(libc.mount(b"none", top, b"tmpfs", 0, b"mode=755"))
        prefix.mkdir(parents=True)
        place = f"/proc/self/fd/{handle}".encode()
        done.append(libc.mount(place, bytes(prefix), None, 0x5000, None))
        assert not any(done), os.strerror(ctypes.get_errno())
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)


def state(folder: Path) -> dict[str, object]:
    """What a library must not change of the application and its files."""
    about = (folder / "victim.txt").stat()
    return {
        "files": sorted(p.name for p in folder.iterdir()),
        "text": (folder / "victim.txt").read_text(),
        "file": [about.st_mode, about.st_mtime_ns, about.st_nlink, about.st_uid],
        "attributes": os.listxattr(folder / "victim.txt"),
        "priority": os.getpriority(os.PRIO_PROCESS, 0),
        "scheduler": os.sched_getscheduler(0),
        "cores": sorted(os.sched_getaffinity(0)),
        "limit": resource.getrlimit(resource.RLIMIT_CORE),
        "first to die": Path("/proc/self/oom_score_adj").read_text(),
        "name": Path("/proc/self/comm").read_text(),
        "shared": sorted(n for n in os.listdir("/dev/shm") if n == "headrace-escape"),
    }


def main(library: str, folder: Path) -> None:
    if hidden := os.environ.get("ESCAPE_HIDE"):
        hide(hidden)
    import numpy as np

    from headrace.custom import open_library
    from headrace.custom.guard import GuardOptions
    from headrace.meta import DetectionParams, Layer, NetworkInfo

    (folder / "victim.txt").write_text("as it was")
    (folder / "empty").mkdir()
    (folder / "cwd").mkdir()
    os.chdir(folder / "cwd")
    shared = Path(f"/dev/shm/headrace-victim-{os.getpid()}")
    shared.write_text("frames")
    ears = [socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(2)]
    ears[0].bind(str(folder / "datagrams"))
    abstract = f"headrace-escape-{os.getpid()}"
    ears[1].bind(f"\0{abstract}")
    for ear in ears:
        ear.setblocking(False)
    _, terminal = os.openpty()
    kept = os.open(folder / "victim.txt", os.O_RDWR)
    os.environ |= {
        "ESCAPE_APP": str(os.getpid()),
        "ESCAPE_FOLDER": str(folder),
        "ESCAPE_FD": str(kept),
        "ESCAPE_DATAGRAMS": str(folder / "datagrams"),
        "ESCAPE_ABSTRACT": abstract,
        "ESCAPE_SHARED": str(shared),
        "ESCAPE_TERMINAL": os.ttyname(terminal),
        "ESCAPE_API_TOKEN": SECRET,
        "ESCAPE_REVERSE": SECRET[::-1],
    }
    signals: list[int] = []
    for number in (signal.SIGURG, signal.SIGIO):
        signal.signal(number, lambda number, _: signals.append(number))
    before = state(folder)
    opened = open_library(library, guard="always", guard_options=GuardOptions(timeout_s=60))
    parse = opened.bbox_parser("ParseEscape")
    params = DetectionParams(1, np.zeros(1, np.float32))
    told: dict[str, str] = {}
    pids = set()
    for number, name in enumerate(ways()):
        layers = {"way": Layer("way", np.full(1, number, np.float32))}
        box = parse(layers, NetworkInfo(8, 8, 3), params).boxes[0]
        told[name] = "works" if box[0] else errno.errorcode.get(int(box[1]), str(int(box[1])))
        pids.add(opened.process.pid)
    children = [int(p) for p in os.listdir("/proc") if p.isdigit() and _of_worker(int(p), library)]
    orphan = [p for p in children if p not in pids]
    opened.close()
    time.sleep(0.05)
    left = [p for p in orphan if _of_worker(p, library)]
    heard = []
    for ear in ears:
        with suppress(BlockingIOError):
            heard.append(ear.recv(16).decode())
    shared.unlink()
    print(json.dumps({
        "told": told,
        "notices": [[n.code, n.level, dict(n.data)] for n in opened.decisions],
        "before": before,
        "after": state(folder),
        "workers": len(pids),
        "orphans": [len(orphan), len(left)],
        "heard": heard,
        "signals": signals,
    }))  # fmt: skip


def _of_worker(pid: int, library: str) -> bool:
    """Return whether a process has the library in its memory, and has not ended."""
    with suppress(OSError):
        return library in Path(f"/proc/{pid}/maps").read_text()
    return False


if __name__ == "__main__":
    if user := int(os.environ.pop("ESCAPE_USER", "0")):
        become(user)
        os.execv(sys.executable, [sys.executable, *sys.argv])
    main(sys.argv[1], Path(sys.argv[2]))
