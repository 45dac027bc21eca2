"""Checks of worker processes: which protections the kernel of this machine enforces."""

from __future__ import annotations

from collections.abc import Iterator

from headrace._core import _native
from headrace.custom.guard import GuardOptions
from headrace.custom.guard.keeper import can_guard
from headrace.custom.guard.process import GuardedProcess
from headrace.custom.guard.protections import OPEN
from headrace.diagnose.doctor.checks import Check

_FILES = "files, and the memory of other processes"
_SINCE = {2: "links", 3: "shortening", 4: "TCP", 5: "devices", 6: "abstract sockets and signals"}
"""Version of Landlock -> a further protection."""


def guard_checks() -> Iterator[Check]:
    """Start a worker, and look at the protections that it got."""
    if reason := can_guard():
        yield Check("guard", "workers", "absent", f"custom libraries run unguarded: {reason}")
        return
    process = GuardedProcess("doctor", GuardOptions(restarts=0))
    with process.lock:
        process.started("doctor")
    notices = {notice.code: notice for notice in process.notices}
    process.close()
    yield Check("guard", "workers", "ok", "custom libraries can run in worker processes")
    version = _native.guard_landlock_version()
    opened = notices.get("worker-open")
    if version:
        more = [text for since, text in _SINCE.items() if since <= version]
        text = f"version {version}: {', '.join([_FILES, *more])}"
        yield Check("guard", "Landlock", "ok", text)
    else:
        others = "files" not in (opened.data["open"] if opened else ())
        text = "not in this kernel" + (": namespaces close files instead" if others else "")
        yield Check("guard", "Landlock", "absent", text, ("Linux 5.13 or newer has it",))
    if opened is None:
        text = f"none of {len(OPEN)} protections is refused"
        yield Check("guard", "protections", "ok", text)
    else:
        yield Check("guard", "protections", "absent", "\n".join(opened.data["why"]))
