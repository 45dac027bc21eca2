"""Which files a worker reaches: those that it may read, write, and ask as devices."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from glob import glob
from pathlib import Path

from headrace._core.errors import ConfigError
from headrace._core.plain_record import PlainRecord

_ALWAYS = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_GPU = ("/dev/nvidia*", "/dev/nvhost*", "/dev/nvmap", "/dev/nvgpu", "/dev/nvsciipc", "/dev/dri",
        "/dev/dxg")  # fmt: skip
_LINKS = ("/proc/self", "/proc/thread-self")
_SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/opt", "/nix", "/sys",
           "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.preload",
           "/etc/alternatives", "/etc/localtime", "/etc/nsswitch.conf", "/etc/OpenCL",
           "/etc/fonts")  # fmt: skip


class Reach(PlainRecord, frozen=True):
    """Paths of files and folders, with all that is in them.

    Attributes:
        reads: what may be read.
        narrow: nothing else is; otherwise any folder may be listed.
        writes: what may be read and changed.
        devices: what may be read, written and asked.
    """

    reads: tuple[str, ...]
    narrow: bool
    writes: tuple[str, ...]
    devices: tuple[str, ...]


class NamedPaths(PlainRecord, frozen=True):
    """The paths of `custom-lib-paths`.

    Attributes:
        reads: absolute paths; without one a worker reads what its user may.
        writes: absolute paths, which may be read, too.
    """

    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()

    @classmethod
    def read(cls, entries: Sequence[str], folder: Path, where: str = "") -> NamedPaths:
        """Read the entries, `read:PATH` or `write:PATH`; paths are relative to a folder.

        Raises:
            ConfigError: an entry is neither, or its path is not there.
        """
        named: dict[str, list[str]] = {"read": [], "write": []}
        for entry in entries:
            kind, _, text = entry.partition(":")
            if kind not in named or not text:
                raise ConfigError(
                    f"custom-lib-paths: {entry!r} names no path",
                    where=where,
                    expected="read:PATH or write:PATH, separated by ;",
                )
            path = os.path.abspath(folder / os.path.expanduser(text))
            if not os.path.exists(path):
                raise ConfigError(
                    f"custom-lib-paths: {path} does not exist",
                    where=where,
                    expected="a folder or a file that is there before the worker starts",
                )
            named[kind].append(path)
        return cls(tuple(named["read"]), tuple(named["write"]))


def reach_of(reads: Sequence[str], writes: Sequence[str], *, gpu: bool) -> Reach:
    """Return the files that this process may reach from now on.

    Args:
        reads: all that it needs beside the system and this interpreter; empty: what its user may,
            without devices.
        writes: its temporary folder, and others.
        gpu: a driver of NVIDIA works in it.
    """
    devices = (*_ALWAYS, *(path for pattern in _GPU if gpu for path in glob(pattern)))
    own = f"/proc/{os.getpid()}"
    libraries = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    if reads:
        places = [sys.prefix, sys.base_prefix, *sys.path, *libraries, *_SYSTEM, *reads]
        places += [name for name in _inside("/proc") if not name[6:].isdigit()]
    else:
        places = [name for name in _inside("/") if name != "/dev"]
    # Names of threads are written into its own folder.
    return Reach(
        tuple(p for p in places if os.path.isabs(p) and p not in _LINKS),
        bool(reads),
        tuple(writes),
        (*devices, own),
    )


def _inside(folder: str) -> list[str]:
    names: list[str] = []
    with suppress(OSError):
        names = os.listdir(folder)
    return [os.path.join(folder, name) for name in names]
