"""Programs and tools of GStreamer that find the elements."""

from __future__ import annotations

import os
import re
import shutil
import site
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import headrace
from headrace._core.errors import HeadraceError, MissingExtraError
from headrace._core.files import os_errors
from headrace.binary.elf import ElfError, ElfFile
from headrace.custom.compile.toolchain import run_folders
from headrace.gstreamer.cmeta.layout import GENERATIONS, NEWEST, struct_rows
from headrace.gstreamer.elements.register import ELEMENTS

_LOADED = """import os
import signal
import site
import sys

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    try:  # Ctrl-C ends the program as before: the loader's Python took it
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    except ValueError:
        pass  # the program loads elements in another thread
os.environ.pop("PYTHONHOME", None)  # of the loader alone
sys.executable = {python!r}  # processes that are started find this installation
site.addsitedir({site!r})
from headrace.gstreamer.elements.register import factory

__gstelementfactory__ = factory({name!r})
"""
_HEAD = 4096
ELF_MAGIC = b"\x7fELF"
_OF_TENSORRT = ("libnvinfer", "libnvonnxparser", "libnvparsers")
_OF_METADATA = ("libnvds", "libnvbuf", "libheadrace_deepstream")
_RELEASE = re.compile(r"deepstream-(\d+\.\d+)")
_FIRST_OF_LAYOUT = 9
"""Releases from this one on have the layout of objects and frames that the library has."""
_LOADER = "gstreamer1.0-python3-plugin-loader"
_LOADER_HOME = "/usr"
"""Where the loader's Python, the distribution's, has its modules.

It would take those of the first `python3` on PATH, and the compiled ones of another release fail.
"""


def is_tool(program: str) -> bool:
    """True for a tool of GStreamer's own, such as `gst-launch-1.0`, that is installed."""
    return program.startswith("gst-") and shutil.which(program) is not None


def is_program(path: Path) -> bool:
    """True for a file that is no Python source: a compiled program, or another shell's script.

    Raises:
        HeadraceError: it holds something else that is no text.
    """
    if not path.is_file():
        return False
    with os_errors(HeadraceError, "the script cannot be read", path), path.open("rb") as file:
        head = file.read(_HEAD)
    if head.startswith(ELF_MAGIC):
        return True
    if head.startswith(b"#!"):
        return b"python" not in head.partition(b"\n")[0]
    if b"\0" in head:
        raise HeadraceError("the file is neither Python source nor a program", where=str(path))
    return False


def check_layout(elf: ElfFile) -> None:
    """Refuse a program with structures of metadata in another layout than the library's.

    Headrace's headers leave a mark in each object; without one, the folder tells in which the
    program looks for its libraries. Libraries and plugins that a program loads are checked when
    they first ask for metadata.

    Raises:
        HeadraceError: its headers were of a release whose layout differs.
    """
    if not any(name.startswith(_OF_METADATA) for name in elf.needed):
        return
    mark = (
        (elf.section(".note.headrace") or b"").rstrip(b"\0").rpartition(b"\0")[2].decode("latin-1")
    )
    folders = [_RELEASE.search(folder) for folder in elf.run_paths]
    release = mark or next((match[1] for match in folders if match), NEWEST)
    if mark == NEWEST or (not mark and int(release.partition(".")[0]) >= _FIRST_OF_LAYOUT):
        return
    sizes = struct_rows()["NvDsObjectMeta"].sizes
    older = max((g for g in GENERATIONS if g <= release), default=GENERATIONS[0])
    raise HeadraceError(
        f"the program was compiled with headers of {release}: "
        f"objects, rectangles, surfaces and events have another layout",
        where=str(elf.path),
        expected=f"headers of {NEWEST} (NvDsObjectMeta has {sizes[NEWEST]} bytes, "
        f"{sizes[older]} in {older})",
        fix="compile its sources anew: headrace compile --exe",
    )


def run_program(path: Path, arguments: Sequence[str]) -> NoReturn:
    """Become a program of the user's that is no Python; one over GStreamer finds the elements.

    Raises:
        HeadraceError: it may not be executed, or was compiled against TensorRT's own libraries.
        MissingExtraError: see `run_tool`.
    """
    if not os.access(path, os.X_OK):
        raise HeadraceError(
            "the program may not be executed", where=str(path), fix=f"chmod +x {path}"
        )
    program, over_gstreamer = str(path.resolve()), True
    with suppress(ElfError):  # a shell's script, whose programs are not known
        elf = ElfFile.read(path)
        needed = elf.needed
        if theirs := [name for name in needed if name.startswith(_OF_TENSORRT)]:
            raise HeadraceError(
                f"the program is linked against {', '.join(theirs)}",
                where=str(path),
                expected="a script, a program over GStreamer, or one made for Headrace",
                fix="compile its sources anew: headrace compile --exe",
            )
        over_gstreamer = any(name.startswith("libgst") for name in needed)
        check_layout(elf)
    if over_gstreamer:
        run_tool(program, arguments)
    os.execv(program, [str(path), *arguments])


def run_tool(program: str, arguments: Sequence[str]) -> NoReturn:
    """Become a tool of GStreamer that finds the elements.

    GStreamer's loader of Python takes one element a file; the files lie beside a list of plugins
    of their own, so that other programs' list stays as it is.

    Raises:
        MissingExtraError: GStreamer, or its loader of Python, is not installed.
    """
    from headrace.gstreamer.pyds.loading import gstreamer

    known = os.environ.pop("GST_PLUGIN_PATH", None)  # plugins in C find their libraries below alone
    gstreamer()
    if not _has_loader():
        raise MissingExtraError(
            "GStreamer cannot load elements written in Python", fix=f"apt install {_LOADER}"
        )
    folder = _loader_folder()
    for name in ELEMENTS:
        text = _LOADED.format(site=_site_folder(), name=name, python=sys.executable)
        path = folder / "python" / f"{name}.py"
        if not path.is_file() or path.read_text() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    paths = os.pathsep.join([str(folder), *([known] if known else [])])
    # The tool itself is linked to GStreamer: see `keep_unwinder`.
    ahead = ":".join(filter(None, ("libgcc_s.so.1", os.environ.get("LD_PRELOAD"))))
    libraries = [str(folder) for folder in run_folders()]
    if known := os.environ.get("LD_LIBRARY_PATH"):
        libraries.append(known)
    own = {
        "LD_LIBRARY_PATH": os.pathsep.join(libraries),
        "GST_PLUGIN_PATH": paths,
        "GST_REGISTRY": str(folder / "registry"),
        "LD_PRELOAD": ahead,
        "PYTHONHOME": _LOADER_HOME,
    }
    os.execvpe(program, [program, *arguments], os.environ | own)


def _has_loader() -> bool:
    return any(True for _ in Path("/usr/lib").glob("*/gstreamer-1.0/libgstpython.so"))


def _loader_folder() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "headrace" / f"gstreamer-{headrace.__version__}"


def _site_folder() -> str:
    """The folder of packages that holds this installation, or its link."""
    import numpy as np  # lies where the packages do

    folder = str(Path(np.__file__).parents[2])
    return folder if folder in site.getsitepackages() else site.getsitepackages()[0]
