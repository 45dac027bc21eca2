"""Names that a library needs of libraries that are not installed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from noria.binary.elf import ElfError, ElfFile
from noria.binary.library_search import find_library

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
        r"initLibNvInferPlugins|create\w*Plugin|.*8nvinfer16plugin|getPluginCreators",
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


@dataclass
class Demand:
    """Names needed of one library that is not installed.

    Attributes:
        versions: version nodes that it must have.
        names: (symbol, version or None) pairs, in the order of the symbol table.
    """

    soname: str
    versions: tuple[str, ...] = ()
    names: list[tuple[str, str | None]] = field(default_factory=list)


def demands(elf: ElfFile) -> list[Demand]:
    """List the names needed of each of NVIDIA's libraries that the loader would not find.

    Symbols that an installed library offers, and those whose name is of no NVIDIA library, are not
    among it: that these are missing is an error of the library's build.
    """
    found = [
        Demand(name, tuple(elf.version_needs.get(name, ())))
        for name in elf.needed
        if is_nvidia(name) and find_library(name, elf) is None
    ]
    if not found:
        return []
    by_name = {demand.soname: demand for demand in found}
    offered = _offered(elf)
    for symbol in elf.symbols:
        if symbol.defined or not symbol.name:
            continue
        if symbol.needed_from is not None:
            if symbol.needed_from in by_name:
                by_name[symbol.needed_from].names.append((symbol.name, symbol.version))
        elif symbol.name not in offered and (owner := _owner(symbol.name, found)):
            owner.names.append((symbol.name, None))
    return found


def undefined_names(elf: ElfFile) -> list[str]:
    """Undefined symbols that neither an installed nor a stand-in's library offers; strong ones."""
    offered = _offered(elf)
    missing = demands(elf)
    covered = {name for demand in missing for name, _ in demand.names}
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
    """The missing library that a symbol without version belongs to, by its name."""
    fitting = [
        demand
        for library, names in _FAMILIES
        for demand in missing
        if re.match(library, demand.soname) and re.match(names, symbol)
    ]
    return fitting[0] if fitting else None


def _offered(elf: ElfFile) -> frozenset[str]:
    """Names that the installed libraries it is linked against export, and theirs."""
    names: set[str] = set()
    seen: set[Path] = set()
    waiting = [(name, elf) for name in elf.needed]
    while waiting:
        name, wanted_by = waiting.pop()
        path = find_library(name, wanted_by)
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
