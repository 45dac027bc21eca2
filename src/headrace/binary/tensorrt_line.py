"""Facts of libraries that were compiled against TensorRT's own headers, by their files.

All is read in the file, nothing is run. Within a line of releases (5.1 to 7.2, 8.0 to 9.3, 10, 11)
virtual functions have the same places, so one registry serves a line: `native/foreign`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from headrace.binary.elf import ElfError, ElfFile
from headrace.binary.entry_points import CREATORS, made_for_tensorrt, uses_host

LINES = {7: "5.1 to 7.2", 8: "8.0 to 9.3", 10: "10", 11: "11"}
"""Line -> the releases of TensorRT in it."""
_SONAME = re.compile(r"libnvinfer(_\w+)?\.so\.(\d{1,3})(\.|$)")
_ASKED = re.compile(r"getPluginRegistry|getBuilderPluginRegistry|createInfer\w+_INTERNAL")
_MAKERS = re.compile(r"NvDsInfer\w*CudaEngineGet|NvDsInferCreateModelParser")
_NEWER = b"N8nvinfer15v_1_0"
"""How the names of classes begin that are in a namespace of versions: from 10 on."""
_BASES = (
    "IPluginV2DynamicExt", "IPluginV2IOExt", "IPluginV2Ext", "IPluginV2", "IPluginV3",
    "IPluginCreatorV3One", "IPluginCreator",
)  # fmt: skip
_FACTORIES = re.compile(r"create(RPNROI|FasterRCNN|Normalize|PriorBox|AnchorGenerator|NMS|"
                        r"DetectionOutput|Permute|Concat|PReLU|Reorg|Region|Clip|Lrelu|"
                        r"BatchedNMS|Split|InstanceNorm\w*|Nvplugin)\w*Plugin")  # fmt: skip


@dataclass(frozen=True)
class TensorrtUse:
    """The demands of a library of TensorRT's own headers.

    Attributes:
        elf: its file.
        line: 7, 8, 10 or 11; None if the file does not tell: 7 or 8.
        soname: the libnvinfer that it is linked against, which told the line; None without.
    """

    elf: ElfFile
    line: int | None
    soname: str | None

    @property
    def releases(self) -> str:
        """The releases that it may be of, as text."""
        return f"TensorRT {LINES[self.line]}" if self.line else "TensorRT 5.1 to 9.3"

    @property
    def expected(self) -> int:
        """Line of the registry to hand out; 78 where creators decide between 7 and 8."""
        return self.line or 78

    @cached_property
    def bases(self) -> tuple[str, ...]:
        """Plugin and creator classes that it derives from, as far as their names are in it.

        A class whose base is among them may have others of its bases derived from, too.
        """
        names = [n for n in _BASES if _mentions(self.elf, n)]
        newer = ("IPluginV2DynamicExt", "IPluginV2IOExt")
        implied = {"IPluginV2Ext": newer, "IPluginV2": (*newer, "IPluginV2Ext")}
        return tuple(n for n in names if not set(implied.get(n, ())) & set(names))

    @cached_property
    def factories(self) -> tuple[str, ...]:
        """Functions of the old libnvinfer_plugin that it calls, sorted."""
        asked = {s.name for s in self.elf.symbols if not s.defined}
        return tuple(sorted(n for n in asked if _FACTORIES.fullmatch(n)))

    @property
    def mixed(self) -> str | None:
        """The contradiction to the line that it is linked against; None without."""
        if self.line is not None and self.line < 10 and self.elf.data.find(_NEWER) >= 0:
            return (
                f"it is linked against {self.soname}, and has classes of TensorRT 10 or newer: "
                "headers and library of its build were of different releases"
            )
        return None


def _mentions(elf: ElfFile, name: str) -> bool:
    return any(elf.data.find(mangled) >= 0 for mangled in _mangled(name))


def _mangled(name: str) -> tuple[bytes, bytes]:
    own = f"{len(name)}{name}".encode()
    return b"N8nvinfer1" + own + b"E\0", _NEWER + own + b"E\0"


def tensorrt_use(elf: ElfFile, maker: str | None = None) -> TensorrtUse | None:
    """Return the demands of a library on TensorRT's own libraries; None without any.

    Libraries of headrace's headers ask for nothing there. `maker` is a function that makes
    networks: by what it is given it may call TensorRT without a name of it.
    """
    if uses_host(elf):
        return None
    asked = {s.name for s in elf.symbols if not s.defined and s.name}
    calls = any(_ASKED.fullmatch(name) for name in asked)
    given = not CREATORS.isdisjoint(elf.exported()) and elf.data.find(b"8nvinfer1") >= 0
    old = any(_FACTORIES.fullmatch(name) for name in asked)
    # one that only calls what it is given asks for nothing by name
    makers = {maker} if maker else set(filter(_MAKERS.fullmatch, elf.exported()))
    makes = made_for_tensorrt(elf) is None and not makers.isdisjoint(elf.exported())
    if not (calls or given or old or makes):
        return None
    for soname in elf.needed:
        parts = _SONAME.match(soname)
        if parts and (line := line_of(int(parts[2]))):
            return TensorrtUse(elf, line, soname)
    if not (calls or given or old) and elf.data.find(b"nvinfer1") < 0:
        return None  # nothing says that its headers were TensorRT's
    return TensorrtUse(elf, 10 if elf.data.find(_NEWER) >= 0 else None, None)


def asks_tensorrt(symbol: str) -> bool:
    """Whether an undefined symbol is a function of TensorRT's own libraries."""
    return any(pattern.fullmatch(symbol) for pattern in (_ASKED, _FACTORIES))


def line_of(major: int) -> int | None:
    """Return the line of a release by its first number; None for one that has none here."""
    if 5 <= major <= 7:
        return 7
    if major in (8, 9):
        return 8
    return major if major in LINES else None


def served(elf: ElfFile, maker: str | None = None) -> TensorrtUse | None:
    """Return `tensorrt_use` if the library's plugins can be called; else None."""
    use = tensorrt_use(elf, maker)
    named = use is not None and use.soname is None and any(map(_SONAME.match, elf.needed))
    return None if named else use


def brings_plugins(elf: ElfFile) -> bool:
    """Whether opening a library may register plugins: of headrace's headers, or of TensorRT's."""
    return uses_host(elf) or served(elf) is not None


def file_brings_plugins(path: Path) -> bool:
    """Whether a file is a library that `brings_plugins`."""
    try:
        return brings_plugins(ElfFile.read(path))
    except (ElfError, OSError):
        return False
