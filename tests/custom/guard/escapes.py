"""An application whose guarded library tries every way of `sources/escapes/`.

usage: escapes.py LIBRARY FOLDER. Prints what became of each, and what it noticed itself, as JSON.
As root it becomes another user with ESCAPE_USER. ESCAPE_HIDE=landlock, or landlock,namespaces,
makes the kernel say that it has none. With ESCAPE_DIE it is killed once all was tried.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
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
WAYS = "".join(
    (SOURCE.parent / name).read_text()
    for name in re.findall(r'#include "(escapes/.*)"', SOURCE.read_text())
)
PAGE = Path(__file__).parents[3] / "SECURITY.md"
WAY = re.compile(r'^(?:WAY\((\w+), "(\w+)"\)|// row: (.+))', re.MULTILINE)
HARM = ("hang", "die", "forge")  # calls that its worker does not outlive
PRINTED = b"printed before\n"
SECRET = "kept-from-the-worker-4711"
ENOSYS, EPERM = 38, 1
X86_64 = 62  # of ELF's machines
LANDLOCK, UNSHARE = (444, 445, 446), (272,)


def ways(library: Path | None = None) -> dict[str, str]:
    """Name of each way of a library -> the layer that stops it; without one, of x86-64."""
    text = WAYS
    if library is not None and library.read_bytes()[18] != X86_64:
        text = re.sub(r"#if defined\(__x86_64__\).*?#endif", "", text, flags=re.DOTALL)
    return {name: layer for name, layer, _ in WAY.findall(text) if name}


def rows() -> dict[str, list[str]]:
    """Each row of the page about workers -> its ways; the start of a row stands above them."""
    table = PAGE.read_text().partition("| A library in a worker |")[2].partition("\n\n")[0]
    found: dict[str, list[str]] = {line.split(" | ")[0][2:]: [] for line in table.splitlines()[2:]}
    row: list[str] = []
    for name, _, start in WAY.findall(WAYS):
        if start:
            of = [text for text in found if text.startswith(start)]
            row = found[of[0]] if len(of) == 1 else []
        else:
            row.append(name)
    return found


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
        "output": [fcntl.fcntl(fd, fcntl.F_GETFL) for fd in (1, 2)],
        "log": os.fstat(2).st_size >= len(PRINTED),
    }


def harmed(library: str) -> dict[str, str]:
    """What became of calls after which there is no worker, and of one that nobody made."""
    import numpy as np

    from headrace.custom import open_library
    from headrace.custom.guard import GuardOptions, keeper
    from headrace.errors import HeadraceError
    from headrace.meta import DetectionParams, Layer, NetworkInfo

    told = {}
    opened = open_library(library, guard="always", guard_options=GuardOptions(timeout_s=2))
    parse = opened.bbox_parser("ParseHarm")
    for number, name in enumerate(HARM):
        layers = {"way": Layer("way", np.full(1, number, np.float32))}
        try:
            parse(layers, NetworkInfo(8, 8, 3), DetectionParams(1, np.zeros(1, np.float32)))
            told[name] = "answers"
        except HeadraceError as error:
            told[name] = str(error)
    opened.close()
    script = 'echo x > "$ESCAPE_FOLDER/victim.txt"; echo "$?"'.replace(
        "$ESCAPE_FOLDER", os.environ["ESCAPE_FOLDER"]
    )
    told["program"] = str(keeper.keeper().run(["/bin/sh", "-c", script], 10.0)).strip()
    return told


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
    if Path(library).read_bytes()[18] != X86_64:
        os.environ["ESCAPE_EMULATED"] = "1"
    ours, theirs, log = os.dup(1), os.pipe(), os.open(folder / "log", os.O_RDWR | os.O_CREAT)
    os.dup2(theirs[1], 1)
    os.dup2(log, 2)
    os.write(1, PRINTED)
    os.write(2, PRINTED)
    signals: list[int] = []
    for number in (signal.SIGURG, signal.SIGIO):
        signal.signal(number, lambda number, _: signals.append(number))
    before = state(folder)
    opened = open_library(library, guard="always", guard_options=GuardOptions(timeout_s=60))
    parse = opened.bbox_parser("ParseEscape")
    params = DetectionParams(1, np.zeros(1, np.float32))
    told: dict[str, str] = {}
    pids = set()
    kept = opened.output_memory.take(np.float32, (1 << 16,))
    kept[:] = 1
    for number, name in enumerate(ways(Path(library))):
        layers = {"way": Layer("way", np.full(1, number, np.float32))}
        box = parse(layers, NetworkInfo(8, 8, 3), params).boxes[0]
        told[name] = "works" if box[0] else errno.errorcode.get(int(box[1]), str(int(box[1])))
        pids.add(opened.process.pid)
    if os.environ.get("ESCAPE_DIE"):
        os.kill(os.getpid(), signal.SIGKILL)
    orphans = len(processes(library)) - 1
    opened.close()
    time.sleep(0.05)
    left = len(processes(library))
    heard = []
    for ear in ears:
        with suppress(BlockingIOError):
            heard.append(ear.recv(16).decode())
    shared.unlink()
    done = {
        "told": told,
        "notices": [[n.code, n.level, dict(n.data)] for n in opened.decisions],
        "before": before,
        "after": state(folder),
        "workers": len(pids),
        "orphans": [orphans, left],
        "harmed": harmed(library),
        "printed": os.read(theirs[0], 1 << 16).decode(),
        "heard": heard,
        "signals": signals,
        "tensor": float(kept.sum()),
    }
    os.write(ours, json.dumps(done).encode())


def processes(library: str) -> list[int]:
    """Processes that have the library in their memory, and have not ended."""
    having = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            if library in Path(f"/proc/{pid}/maps").read_text():
                having.append(int(pid))
    return having


if __name__ == "__main__":
    if user := int(os.environ.pop("ESCAPE_USER", "0")):
        become(user)
        os.execv(sys.executable, [sys.executable, *sys.argv])
    main(sys.argv[1], Path(sys.argv[2]))
