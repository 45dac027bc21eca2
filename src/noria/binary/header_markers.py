"""Markers that noria's headers leave in a library, read before it is loaded."""

from __future__ import annotations

from noria.binary.elf import ElfFile
from noria.binary.entry_points import entry_points, without_c_linkage

SYMBOL = "noria_host_api_1"
MARKER = "noria_headers_tensorrt"
REVISION = "noria_headers_revision"
ON_HOST = "noria_headers_cuda_host"
"""Its code for GPUs was compiled for the host."""
CREATORS = "getPluginCreators"
FACTORIES = tuple(f"NvDsInferPluginFactory{kind}Get" for kind in ("Caffe", "Uff", "Runtime"))
GIVERS = frozenset([CREATORS, *FACTORIES])
"""Functions that give objects the host calls: their library need not call the host itself."""


OLD_SIGNATURE_BEFORE = 8
"""The TensorRT with which engine creators of configured names got a config."""


def made_for_tensorrt(elf: ElfFile) -> int | None:
    """The major version of TensorRT that noria's headers stood for; None without them."""
    number = elf.number(MARKER)
    return number // 1000 if number else None


def uses_host(elf: ElfFile) -> bool:
    """Whether the library has networks or plugins of noria's headers."""
    if any(s.name == SYMBOL for s in elf.symbols):
        return True
    exported = elf.exported()
    return MARKER in exported and not GIVERS.isdisjoint(exported)


def export_hints(elf: ElfFile, *, has_plugins: bool = False) -> list[str]:
    """Return hints about a library without parsers, or with parsers that no config can name.

    Args:
        elf: the library.
        has_plugins: it registers plugins, or may do so: it need have no parsers.
    """
    if hidden := without_c_linkage(elf):
        names = ", ".join(hidden[:4])
        return [f'write extern "C" before {names}: without it no config can name {names}']
    if entry_points(elf) or has_plugins or not GIVERS.isdisjoint(elf.exported()):
        return []
    others = sorted(n for n in elf.functions() if not n.startswith("_"))
    if others:
        names = ", ".join(others[:4]) + (", …" if len(others) > 4 else "")
        return [
            f"no function has a usual name; what {names} is, the config tells by the key "
            "(engine-create-func-name, parse-bbox-func-name …)"
        ]
    return ['it exports no parser: is extern "C" missing?']
