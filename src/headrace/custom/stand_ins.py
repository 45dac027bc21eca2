"""Stand-ins for libraries of NVIDIA's SDK that a user's library is linked against."""

from __future__ import annotations

import ctypes
import os
import platform
import re
import sys
import tempfile
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from headrace._core import _native
from headrace._core.errors import CustomLibraryError
from headrace._core.findings import Finding
from headrace.binary.elf import ElfError, ElfFile, is_foreign
from headrace.binary.library_search import find_elsewhere, find_library, loaded_libraries
from headrace.binary.tensorrt_line import served
from headrace.custom.compile.toolchain import gpu_present
from headrace.custom.stand_in_image import AARCH64, ANCHOR, X86_64, Image, area, build

# Families of NVIDIA's libraries, and the names of their functions: unversioned symbols do not say
# where they are expected. Source: custom-library spec 5.2, 5.3, 5.5.
_FAMILIES: tuple[tuple[str, str], ...] = (
    (r"libcudart\.so", r"_*cuda[A-Z]"),
    (r"libcublas(Lt)?\.so", r"cublas"),
    (r"libcudnn\w*\.so", r"cudnn"),
    (r"libcufft\w*\.so", r"cufft"),
    (r"libcurand\.so", r"curand"),
    (r"libcusolver\w*\.so", r"cusolver"),
    (r"libcusparse\.so", r"cusparse"),
    (r"libnpp\w+\.so", r"npp"),
    (r"libnvrtc\S*\.so", r"nvrtc"),
    (r"libnvToolsExt\.so", r"nvtx"),
    (r"libcuda\.so", r"cu[A-Z]"),
    (r"libnvonnxparser\w*\.so", r".*nvonnxparser|createNvOnnx|getNvOnnxParserVersion"),
    (
        r"libnv(parsers|caffe_?parser|uff_?parser)\.so",
        r".*nv(caffe|uff)parser|createNv(Caffe|Uff)|shutdownProtobufLibrary",
    ),
    (
        r"libnvinfer_plugin\w*\.so",
        r"initLibNvInferPlugins|create\w*Plugin|.*8nvinfer16plugin|getPluginCreators|getCreators",
    ),
    (
        r"libnvinfer(_\w+)?\.so",
        r"getPluginRegistry|getInferLibVersion|getInferLib\w+|getLogger|getBuilderPluginRegistry|"
        r"createInfer\w+|_Z.*8nvinfer1|setInternalLibraryPath|getNvrtcVersion",
    ),
    (r"libnvbuf\w+\.so", r"NvBuf"),
    (
        r"libnvds\w*\.so|libnvdsgst\w*\.so",
        r"nvds_|nvdsinfer|NvDs|_Z.*(NvDs|nvds)|gst_\w*nvds|(is|get)_nvds|alloc_|copy_|release_",
    ),
    (r"libnvdla\w*\.so|libnvcu\w+\.so", r"nvdla|_Z.*nvdla"),
)


def is_nvidia(soname: str) -> bool:
    """Whether a library of that name belongs to NVIDIA's SDK."""
    return any(re.match(library, soname) for library, _ in _FAMILIES)


def is_tensorrt(soname: str) -> bool:
    """Whether it is one of TensorRT's libraries: headrace stands in for them, installed or not."""
    return bool(_TENSORRT.match(soname))


_TENSORRT = re.compile(r"libnv(infer|onnxparser|parsers|caffe_?parser|uff_?parser)\w*\.so")


@dataclass
class Demand:
    """Names needed of one library that is not installed.

    Attributes:
        versions: version nodes that it must have.
        names: (symbol, version or None) pairs, in the order of the symbol table.
        everywhere: libraries that do not name it are to find it, too.
    """

    soname: str
    versions: tuple[str, ...] = ()
    names: list[tuple[str, str | None]] = field(default_factory=list)
    everywhere: bool = False


def demands(elf: ElfFile) -> list[Demand]:
    """List the names needed of each of NVIDIA's libraries that the loader would not find.

    Symbols that an installed library offers, and those whose name is of no NVIDIA library, are not
    among it: that these are missing is an error of the library's build. For another machine there
    is no library to be installed here: of such a file every missing library is listed, and the last
    that is not of NVIDIA gets the names that nothing else offers.
    """
    foreign = is_foreign(elf)
    needs = [
        Demand(name, tuple(elf.version_needs.get(name, ())))
        for name in elf.needed
        if is_tensorrt(name) or ((foreign or is_nvidia(name)) and find_library(name, elf) is None)
    ]
    use = None if is_foreign(elf) else served(elf)
    if use is not None and use.soname is None:
        needs.append(Demand(ANY_TENSORRT, everywhere=True))
    if not needs:
        return []
    by_name = {demand.soname: demand for demand in needs}
    version = use.soname.partition(".so")[2] if use is not None and use.soname else ""
    present = [Demand(name + version, everywhere=True) for name in _LOADED]
    others = [demand for demand in needs if foreign and not is_nvidia(demand.soname)]
    offered = _offered(elf, runtime=bool(others))
    for symbol in elf.symbols:
        if symbol.defined or not symbol.name:
            continue
        if symbol.needed_from is not None:
            if symbol.needed_from in by_name:
                by_name[symbol.needed_from].names.append((symbol.name, symbol.version))
        elif symbol.name in offered or (foreign and symbol.weak):
            continue
        elif owner := _owner(symbol.name, needs):
            owner.names.append((symbol.name, None))
        elif not symbol.weak and (loaded := _owner(symbol.name, present)):
            by_name.setdefault(loaded.soname, loaded).names.append((symbol.name, None))
        elif others:
            others[-1].names.append((symbol.name, None))
    return list({demand.soname: demand for demand in (*needs, *by_name.values())}.values())


ANY_TENSORRT = "libnvinfer.so"
"""Stands in for the libnvinfer of libraries of plugins that are linked against none."""
_LOADED = ("libnvinfer_plugin.so", "libnvonnxparser.so", "libnvparsers.so")
"""What the original's process has loaded: libraries call it, linked against it or not."""


def undefined_names(elf: ElfFile) -> list[str]:
    """Undefined symbols that neither an installed nor a stand-in's library offers; strong ones."""
    offered = _offered(elf)
    covered = {name for demand in demands(elf) for name, _ in demand.names}
    return [
        s.name
        for s in elf.symbols
        if not s.defined
        and s.name
        and not s.weak
        and s.needed_from is None
        and s.name not in covered
        and s.name not in offered
    ]


def _owner(symbol: str, missing: Iterable[Demand]) -> Demand | None:
    """Find the missing library that a symbol without version belongs to, by its name."""
    for library, names in _FAMILIES:
        for demand in missing:
            if re.match(library, demand.soname) and re.match(names, symbol):
                return demand
    return None


_RUNTIME = re.compile(r"(ld-linux\S*|lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+))\.so")
"""Libraries of C and C++: thousands of names, none of them of a family above."""


def _offered(elf: ElfFile, *, runtime: bool = True) -> frozenset[str]:
    """Names that the installed libraries it is linked against export, and theirs.

    Args:
        elf: the library.
        runtime: those of C's and C++'s own libraries, too.
    """
    names: set[str] = set()
    seen: set[Path] = set()
    waiting, loaded = [(name, elf) for name in elf.needed], loaded_libraries()
    while waiting:
        name, wanted_by = waiting.pop()
        if is_tensorrt(name) or (not runtime and _RUNTIME.match(name)):
            continue
        path = find_library(name, wanted_by, loaded)
        if path is None or path in seen:
            continue
        seen.add(path)
        try:
            exported, needed = _exports(path, path.stat().st_mtime_ns)
        except (ElfError, OSError):
            continue
        names |= exported
        waiting += [(n, elf) for n in needed]
    return frozenset(names)


@lru_cache(maxsize=64)
def _exports(path: Path, _changed: int) -> tuple[frozenset[str], tuple[str, ...]]:
    elf = ElfFile.read(path)
    return frozenset(elf.exported()), elf.needed


_DATA = re.compile(r"_ZT[VIST]")  # vtables, type infos, their names, tables of virtual bases
_VIRTUAL_FUNCTIONS = 96

_MACHINES = {"x86_64": X86_64, "aarch64": AARCH64}

_lock = threading.Lock()
_loaded: dict[str, _Loaded] = {}
_type_infos: dict[str, int] = {}


class _Loaded(Image):
    """One in this process, by the address of its anchor."""

    def __init__(self, anchor: int, soname: str, nodes: tuple[str, ...], file: str) -> None:
        where = area(len(nodes))
        base = anchor - where.writable
        memory = (ctypes.c_char * where.end).from_address(base)
        super().__init__(memoryview(memory).cast("B"), base, soname, nodes)
        self.file = file
        self.type_infos = _type_infos
        self.class_type_info = _native.class_type_info()

    def target(self, function: str) -> int:
        return _native.stand_in_target(function, self.soname)


def supported() -> bool:
    """Return whether stand-ins can be made on this machine."""
    return sys.platform == "linux" and platform.machine() in _MACHINES


def _take_place(demands: Iterable[Demand], where: str) -> None:
    """Load, or extend, the stand-ins that a library needs; they stay as long as the process.

    Raises:
        CustomLibraryError: this machine cannot load them, or one is full.
    """
    with _lock:
        _native.foreign_serve()
        for demand in demands:
            try:
                loaded = _loaded.get(demand.soname) or _open(demand)
                if demand.everywhere:
                    ctypes.CDLL(loaded.file, ctypes.RTLD_GLOBAL)
                for name, version in demand.names:
                    if (name, version) not in loaded.names:
                        add_symbol(loaded, name, version)
            except (OSError, MemoryError, ValueError) as error:
                raise CustomLibraryError(
                    f"{demand.soname} is not installed, and nothing can stand in for it: {error}",
                    where=where,
                ) from error


def _open(demand: Demand) -> _Loaded:
    image = build(demand.soname, demand.versions, _MACHINES[platform.machine()])
    library = _load(image, demand.soname)
    anchor = ctypes.addressof(ctypes.c_char.in_dll(library, ANCHOR))
    loaded = _Loaded(anchor, demand.soname, demand.versions, str(library._name))
    _loaded[demand.soname] = loaded
    return loaded


def _load(content: bytes, soname: str) -> ctypes.CDLL:
    """Load an image."""
    try:
        file = os.memfd_create(f"headrace-stand-in-{soname}")
    except (AttributeError, OSError):
        with tempfile.TemporaryDirectory(prefix="headrace-stand-in-") as folder:
            path = Path(folder, soname)
            path.write_bytes(content)
            return ctypes.CDLL(str(path))
    # It stays open: the loader knows libraries by their paths, and a number used again would be
    # taken for the library that had it before.
    os.write(file, content)
    return ctypes.CDLL(f"/proc/self/fd/{file}")


def add_symbol(image: Image, name: str, version: str | None) -> None:
    """Make an image export a symbol: a function, or data by the names of the C++ ABI.

    Raises:
        ValueError: it has no such version.
        MemoryError: it is full.
    """
    if version is not None and version not in image.nodes:
        raise ValueError(
            f"another library was loaded first that asks for other versions of it than {version}"
        )
    if not _DATA.match(name):
        image.add_function(name, version)
    elif name.startswith("_ZTI"):
        image.add_type_info(name, version)
    elif name.startswith("_ZTS"):
        text = name[4:].encode() + b"\0"
        text += bytes(-len(text) % 8)
        words = [int.from_bytes(text[i : i + 8], "little") for i in range(0, len(text), 8)]
        image.add_data(name, version, words)
    else:
        # A vtable: how many functions it has is unknown, each is the same.
        readable = f"a virtual function of {_native.demangle('_ZTI' + name[4:])}"
        each = image.add_function(readable.replace("typeinfo for ", ""), None)
        type_info = image.type_infos.get("_ZTI" + name[4:])
        if type_info is None:
            type_info = image.add_type_info("_ZTI" + name[4:], None)
        words = [0, type_info, *[each] * _VIRTUAL_FUNCTIONS]
        image.add_data(name, version, words, range(1, len(words)))


_SHOWN = 6


def provide_stand_ins(elf: ElfFile, decisions: list[Finding]) -> None:
    """Make the loader find the libraries of NVIDIA that the library is linked against.

    An installed library is never replaced, but for TensorRT's: its objects would not be headrace's.
    With a GPU, copies that pip or NVIDIA's toolkit installed are loaded from where they are. The
    others get a stand-in.

    Raises:
        CustomLibraryError: a stand-in cannot be loaded.
    """
    if not supported():
        return
    where = str(elf.path)
    missing = demands(elf)
    if missing and gpu_present():
        for demand in list(missing):
            if not is_tensorrt(demand.soname) and (path := find_elsewhere(demand.soname)):
                ctypes.CDLL(str(path))
                missing.remove(demand)
                decisions.append(
                    Finding("library-taken", "info", f"{demand.soname} is taken from {path}", where)
                )
    if not missing:
        return
    _native.stand_in_calls()  # those of another library
    _take_place(missing, where)
    names = [demand.soname for demand in missing]
    there = [name for name in names if is_tensorrt(name) and find_library(name, elf)]
    absent = [name for name in names if name not in there]
    text = f"not installed: {', '.join(absent)}; " if absent else ""
    text += f"installed, but not loaded: {', '.join(there)}; " if there else ""
    text += "headrace stands in, and a function that calls into it "
    decisions.append(Finding("library-stand-in", "info", f"{text}gets an error", where))


def note_calls(elf: ElfFile, decisions: list[Finding], made: list[tuple[str, str]]) -> None:
    """Add a notice of missing functions that the library called while it was loaded.

    Args:
        elf: the library.
        decisions: what is added to.
        made: (function, library) of each call.
    """
    if calls := list(dict.fromkeys(made)):
        text = ", ".join(f"{function} of {library}" for function, library in calls[:_SHOWN])
        more = f" and {len(calls) - _SHOWN} more" if len(calls) > _SHOWN else ""
        text = f"while it was loaded, it called {text}{more}: the answer was 0"
        decisions.append(Finding("library-stand-in", "info", text, str(elf.path)))
