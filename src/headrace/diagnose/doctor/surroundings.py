"""Checks of FFmpeg, GStreamer, the C++ compiler and the optional packages."""

from __future__ import annotations

import platform
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, metadata, requires, version

import av

from headrace._core.errors import HeadraceError
from headrace._core.lazy import install_command
from headrace._core.storages import PACKAGES as STORAGES
from headrace._core.storages import usable_schemes
from headrace.custom.compile.toolchain import find_compiler
from headrace.custom.emulated.emulator import INSTALL, Emulator, find_emulator
from headrace.diagnose.doctor.checks import Check, State
from headrace.engine.backends import PACKAGES
from headrace.gstreamer.pyds.loading import gstreamer

_GSTREAMER = "GStreamer"
_WRITES = {"libx264": "annotated videos (H.264)"}
_OWN = frozenset(PACKAGES)  # extras that are runtimes: see `engine_check`


def video_checks() -> Iterator[Check]:
    """Check the FFmpeg that PyAV brings."""
    number = ".".join(map(str, av.library_versions["libavcodec"]))
    yield Check("video", "FFmpeg", "ok", f"libavcodec {number}, PyAV {av.__version__}")
    for encoder, use in _WRITES.items():
        try:
            av.codec.Codec(encoder, "w")
        except ValueError:  # av.codec.UnknownCodecError
            text = f"this FFmpeg has no {encoder}: {use} cannot be written"
            yield Check("video", encoder, "problem", text, ("pip install --force-reinstall av",))
        else:
            yield Check("video", encoder, "ok", f"writes {use}")


def gstreamer_check() -> Check:
    """Check GStreamer."""
    try:
        return Check("tools", _GSTREAMER, "ok", gstreamer().version_string())
    except HeadraceError as error:
        # bindings without GStreamer: the namespace is not there
        absent = error.__cause__ is None or isinstance(error.__cause__, ValueError)
        state: State = "absent" if absent else "problem"
        return Check.of("tools", _GSTREAMER, state, error)


def compiler_checks() -> Iterator[Check]:
    """Check the C++ compiler."""
    try:
        line = subprocess.run(
            [find_compiler(), "--version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=20,
            check=True,
        ).stdout.splitlines()[0]
    except HeadraceError as error:
        yield Check.of("tools", "compiler", "absent", error)
    except (OSError, subprocess.SubprocessError, IndexError) as error:
        text = f"does not tell its version: {error}"
        yield Check("tools", "compiler", "problem", text, ("set CXX to another compiler",))
    else:
        yield Check("tools", "compiler", "ok", line)


def emulator_checks() -> Iterator[Check]:
    """Check the emulator of AArch64 on x86-64."""
    if platform.machine() != "x86_64" or sys.platform != "linux":
        return
    found = find_emulator()
    if isinstance(found, Emulator):
        text = f"{found.program} runs libraries for AArch64, with those of {found.root}"
        yield Check("tools", "emulator", "ok", text)
    else:
        text = f"libraries for AArch64 do not run here: {found}"
        yield Check("tools", "emulator", "absent", text, (INSTALL,))


def extra_checks() -> Iterator[Check]:
    """Check the packages of each extra."""
    try:
        names = metadata("headrace").get_all("Provides-Extra") or []
    except PackageNotFoundError:  # its source is on the path, nothing is installed
        return
    for extra in names:
        if extra in _OWN:
            continue
        have, missing = [], []
        for line in requires("headrace") or ():
            requirement, _, when = line.partition(";")
            if f'extra == "{extra}"' not in when:
                continue
            package = re.split(r"[^A-Za-z0-9._-]", requirement.strip())[0]
            try:
                have.append(f"{package} {version(package)}")
            except PackageNotFoundError:
                missing.append(package)
        if missing:
            text = f"{', '.join(missing)} not installed"
            yield Check("extra", extra, "absent", text, (install_command(extra),))
        else:
            yield Check("extra", extra, "ok", ", ".join([*have, *_schemes(extra)]))


def _schemes(extra: str) -> Iterator[str]:
    """The schemes of storages that work, then the others with their packages, for that extra."""
    if extra == "remote":
        usable = usable_schemes()
        yield from (f"{scheme}:// works" for scheme in usable if usable[scheme])
        missing = [scheme for scheme in usable if not usable[scheme]]
        yield from (f"{scheme}:// needs pip install {STORAGES[scheme]}" for scheme in missing)
