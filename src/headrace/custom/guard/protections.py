"""Protections from a worker that the kernel of this machine may refuse."""

from __future__ import annotations

from collections.abc import Sequence

from headrace._core.findings import Finding

OPEN = {
    "core-files": "their core files are not switched off",
    "rights": "they keep the rights of root",
    "new-rights": "programs that they start may get more rights",
    "outlives": "they may outlive the application",
    "memory-limit": "their memory is not limited",
    "calls": "the network and other processes are not closed to them",
    "memory-of-others": "they can read and change the memory of other processes",
    "files": "they can change all files that their user can",
    "reads": "they can read more than custom-lib-paths names",
}
"""What `guard_sandbox` could not do, by name -> in words."""

Left = Sequence[tuple[str, str]]
"""(name of `OPEN`, why)."""


def open_notice(left: Left) -> list[Finding]:
    """Make the notice of refused protections: the same for all workers of a run."""
    if not left:
        return []
    words = [f"{OPEN[name]} ({why})" if why else OPEN[name] for name, why in left]
    data = {"open": [name for name, _ in left], "why": words}
    text = "workers are not closed off: {why}"
    remedy = "run headrace in a container; Landlock, since Linux 5.13, closes files and memory"
    return [Finding("worker-open", "warning", text, "guarded libraries", data, remedies=(remedy,))]


def held_notice(names: Sequence[str], where: str) -> list[Finding]:
    """Make the notice of variables of the environment that a worker does not get."""
    if not names:
        return []
    data = {"names": list(names), "count": len(names)}
    text = "its worker does not get {names}, which look like credentials or are held back: "
    text += "--guard-env NAME passes one"
    return [Finding("guard-env", "info", text, where, data)]
