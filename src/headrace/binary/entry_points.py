"""Entry points: the functions of a C++ library that the host would call, by their symbols.

A function with C linkage has no parameters in its symbol: fixed names are certain, others follow
a convention. Source: custom-library spec 2.2, 2.3.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headrace.binary.code_calls import CodeCalls
from headrace.binary.elf import ElfFile
from headrace.binary.symbol_names import demangled


@dataclass(frozen=True, slots=True)
class EntryPointKind:
    """One kind of entry point.

    Attributes:
        key: the key that names it, None for functions of fixed name.
        signature: its type, without the function's name.
        called: when, how often, and in which thread.
    """

    name: str
    key: str | None
    signature: str
    called: str


_LAYERS = "const std::vector<NvDsInferLayerInfo>&, const NvDsInferNetworkInfo&"
_FRAME = "once per frame or object, in the thread that runs the model's outputs, one at a time"
_BUILD = "once per build of an engine, in the thread that starts the model"
KINDS: dict[str, EntryPointKind] = {
    kind.name: kind
    for kind in (
        EntryPointKind(
            "detector",
            "parse-bbox-func-name",
            f"bool ({_LAYERS}, const NvDsInferParseDetectionParams&, "
            "std::vector<NvDsInferObjectDetectionInfo>&)",
            _FRAME,
        ),
        EntryPointKind(
            "instance segmentation",
            "parse-bbox-instance-mask-func-name",
            f"bool ({_LAYERS}, const NvDsInferParseDetectionParams&, "
            "std::vector<NvDsInferInstanceMaskInfo>&)",
            _FRAME,
        ),
        EntryPointKind(
            "classifier",
            "parse-classifier-func-name",
            f"bool ({_LAYERS}, float, std::vector<NvDsInferAttribute>&, std::string&)",
            _FRAME,
        ),
        EntryPointKind(
            "segmentation",
            "parse-segmentation-func-name",
            f"bool ({_LAYERS}, float, unsigned int, int*, float*&)",
            _FRAME,
        ),
        EntryPointKind(
            "engine creator",
            "engine-create-func-name",
            "bool (nvinfer1::IBuilder*, nvinfer1::IBuilderConfig*, "
            "const NvDsInferContextInitParams*, nvinfer1::DataType, nvinfer1::ICudaEngine*&)",
            _BUILD,
        ),
        EntryPointKind(
            "input initialiser",
            None,
            f"bool ({_LAYERS}, unsigned int)",
            "once per start, in the thread that starts the model, if it has more than one input",
        ),
        EntryPointKind(
            "old engine creator",
            None,
            "bool (nvinfer1::IBuilder*, NvDsInferContextInitParams*, nvinfer1::DataType, "
            "nvinfer1::ICudaEngine*&)",
            _BUILD + ", if engine-create-func-name is not set",
        ),
        EntryPointKind(
            "model parser",
            None,
            "IModelParser* (const NvDsInferContextInitParams*)",
            _BUILD + ", if no engine creator is there",
        ),
        EntryPointKind(
            "plugin factory",
            None,
            "bool (factory&, NvDsInferPluginFactoryType&) / void (factory&)",
            "around the reading of a Caffe or UFF model, or of an engine",
        ),
    )
}

FIXED: dict[str, str] = {
    "NvDsInferInitializeInputLayers": "input initialiser",
    "NvDsInferCudaEngineGet": "old engine creator",
    "NvDsInferCreateModelParser": "model parser",
    **{
        f"NvDsInferPluginFactory{kind}{call}": "plugin factory"
        for kind in ("Caffe", "Uff", "Runtime")
        for call in ("Get", "Destroy")
    },
}

# By convention of the public collections; the first that fits.
_BY_NAME: tuple[tuple[str, str], ...] = (
    (r"EngineGet|CreateEngine|EngineCreate", "engine creator"),
    (r"Classif(i)?er|Softmax|NVPlate", "classifier"),
    (r"SemSeg|Segformer|ChangeNet|Segmentation", "segmentation"),
    (r"Mask|Mrcnn", "instance segmentation"),
    (r"[Pp]arse", "detector"),
)
_DEVICE = re.compile(r"(_cuda|Cuda)$")


@dataclass(frozen=True, slots=True)
class EntryPoint:
    """A function that the host would call.

    Attributes:
        certain: its name is fixed, its source checks it, or its code fills vectors of one kind
            alone; else its kind is a guess by its name.
        checked: its source checks its type by a macro of headrace's headers.
        device: by convention of its name, it takes pointers to GPU memory.
    """

    name: str
    kind: str
    certain: bool
    device: bool = False
    checked: bool = False

    @property
    def about(self) -> EntryPointKind:
        """The description of its kind."""
        return KINDS[self.kind]


def entry_points(elf: ElfFile) -> list[EntryPoint]:
    """Return the entry points among the exported functions.

    Those of fixed names come first, then those whose source checks their type, or of usual names. A
    function of any other name is one, too, where its code fills vectors of a kind that none of
    these has.
    """
    names = sorted(n for n in elf.functions() if not n.startswith("_"))
    calls, checked = CodeCalls(elf), _checked_kinds(elf)
    points = [EntryPoint(name, FIXED[name], True) for name in names if name in FIXED]
    others = []
    for name in names:
        if name in FIXED:
            continue
        if not (name in checked or _may_be(name)):
            others.append(name)
            continue
        kinds = (checked[name],) if name in checked else filled_by(calls, name)
        if kind := kinds[0] if len(kinds) == 1 else _kind_of(name):
            device = bool(_DEVICE.search(name))
            points.append(EntryPoint(name, kind, len(kinds) == 1, device, name in checked))
    missing = set(filled(elf)) - {point.kind for point in points}
    for name in others if missing else ():
        fills = filled_by(calls, name)
        if len(fills) == 1 and fills[0] in missing:
            points.append(EntryPoint(name, fills[0], True, bool(_DEVICE.search(name))))
    return points


# As the symbols that the CHECK_CUSTOM_… macros make call the kinds.
_CHECKED = {
    "detector": "detector",
    "instance": "instance segmentation",
    "classifier": "classifier",
    "segmentation": "segmentation",
    "creator": "engine creator",
}


def checked_kind(elf: ElfFile, name: str) -> str | None:
    """Return the kind that a macro of headrace's headers checks in a function's source, or None."""
    return _checked_kinds(elf).get(name)


def _checked_kinds(elf: ElfFile) -> dict[str, str]:
    """Return the kinds of all such functions, by name."""
    kinds = {}
    for symbol in elf.symbols:
        if symbol.defined and symbol.name.startswith("headrace_is_"):
            mark, _, name = symbol.name.removeprefix("headrace_is_").partition("_")
            if mark in _CHECKED:
                kinds[name] = _CHECKED[mark]
    return kinds


def kinds_of(calls: CodeCalls, name: str) -> tuple[str, ...]:
    """Kinds that a function can be: the one that its source checks, else those that it fills.

    Empty where nothing shows.
    """
    checked = checked_kind(calls.elf, name)
    return (checked,) if checked else filled_by(calls, name)


# Types whose vectors a library instantiates: what its parsers fill.
_FILLED = {
    "NvDsInferObjectDetectionInfo": "detector",
    "NvDsInferParseObjectInfo": "detector",
    "NvDsInferInstanceMaskInfo": "instance segmentation",
    "NvDsInferAttribute": "classifier",
}


def filled(elf: ElfFile) -> tuple[str, ...]:
    """Kinds of parsers that its code must have, by the vectors that it instantiates."""
    return _kinds_filled(s.name for s in elf.symbols)


def filled_by(calls: CodeCalls, name: str) -> tuple[str, ...]:
    """Kinds of parsers that one function can be, by the vectors that its code reaches.

    Empty where nothing shows; several where it uses several vectors.
    """
    return _kinds_filled(calls.reached(name))


def _kinds_filled(symbols: Iterable[str]) -> tuple[str, ...]:
    text = "\n".join(symbols)
    return tuple(
        dict.fromkeys(
            kind for type_, kind in _FILLED.items() if re.search(rf"vectorI\d+{type_}", text)
        )
    )


def returns_boxes(elf: ElfFile) -> bool:
    """Whether it seems to have a detector parser: by name, or by the vectors in its code."""
    return "detector" in filled(elf) or any(p.kind == "detector" for p in entry_points(elf))


def without_c_linkage(elf: ElfFile) -> list[str]:
    """Names of functions that would be entry points, had they C linkage, sorted."""
    names = set()
    for symbol in elf.functions():
        if symbol.startswith("_Z"):
            name, mark, _ = demangled(symbol).partition("(")
            if mark and name.isidentifier() and (name in FIXED or _may_be(name)):
                names.add(name)
    return sorted(names - set(elf.functions()))


def standing(name: str, expected: str, calls: CodeCalls) -> tuple[int, str]:
    """Rank how badly a function of a library fits a kind, from 0, and name the kind that it fits.

    `missing_name_hints` sorts by it.
    """
    if _DEVICE.search(name):
        return 3, "for GPU memory by its name"
    kinds = kinds_of(calls, name)
    if kinds and expected not in kinds:
        return 2, f"for {KINDS[kinds[0]].key} by its code"
    kind = expected if kinds else FIXED.get(name) or _kind_of(name)
    if kind == expected:
        return 0, ""
    # any parser may be called Parse…: that it is a detector's is a guess
    if kind is None or (kind == "detector" and expected != "engine creator"):
        return 1, ""
    key = KINDS[kind].key
    what = f"by its name for {key}" if key else f"which is the {kind} without any key"
    return 2, what


def _kind_of(name: str) -> str | None:
    return next((k for pattern, k in _BY_NAME if re.search(pattern, name)), None)


def _may_be(name: str) -> bool:
    return "parse" in name.lower() or bool(re.search(_BY_NAME[0][0], name))


SYMBOL = "headrace_host_api_1"
MARKER = "headrace_headers_tensorrt"
REVISION = "headrace_headers_revision"
ON_HOST = "headrace_headers_cuda_host"
"""Its code for GPUs was compiled for the host."""
CREATORS = frozenset({"getCreators", "getPluginCreators"})
"""Functions that list creators, of TensorRT 10 and of 8.6; the first one found is called."""
LOGGER_FINDER = "setLoggerFinder"
FACTORIES = tuple(f"NvDsInferPluginFactory{kind}Get" for kind in ("Caffe", "Uff", "Runtime"))
GIVERS = frozenset([*CREATORS, *FACTORIES])
"""Functions that give objects the host calls: their library need not call the host itself."""
_PLUGIN = re.compile(r"gst_plugin_\w+_get_desc")


OLD_SIGNATURE_BEFORE = 8
"""The TensorRT with which engine creators of configured names got a config."""


def made_for_tensorrt(elf: ElfFile) -> int | None:
    """The major version of TensorRT that headrace's headers stood for; None without them."""
    number = elf.number(MARKER)
    return number // 1000 if number else None


def uses_host(elf: ElfFile) -> bool:
    """Whether the library has networks or plugins of headrace's headers."""
    if any(s.name == SYMBOL for s in elf.symbols):
        return True
    exported = elf.exported()
    return MARKER in exported and not GIVERS.isdisjoint(exported)


_NAMED_ELSEWHERE: Mapping[str, str] = {
    "NvMOT_Process": "it is a tracker's library: ll-lib-file of [tracker] names it",
    "nvds_msg2p_ctx_create": "it makes payloads of messages: msg2p-lib names it",
    "CustomTensorPreparation": "it is a library of nvdspreprocess, whose file names it",
}


def export_hints(elf: ElfFile, *, has_plugins: bool = False) -> list[str]:
    """Return hints about a library without parsers, or with parsers that no config can name.

    One that registers plugins (`has_plugins`), or may do so, need have no parsers.
    """
    if hidden := without_c_linkage(elf):
        names = ", ".join(hidden[:4])
        return [f'write extern "C" before {names}: without it no config can name {names}']
    if entry_points(elf) or has_plugins or not GIVERS.isdisjoint(elf.exported()):
        return []
    if any(_PLUGIN.fullmatch(name) for name in elf.functions()):
        return [
            "it is a plugin of GStreamer: name its folder in GST_PLUGIN_PATH, and start the "
            "application with headrace exec"
        ]
    others = sorted(n for n in elf.functions() if not n.startswith("_"))
    if kinds := [words for name, words in _NAMED_ELSEWHERE.items() if name in others]:
        return kinds
    if others:
        names = ", ".join(others[:4]) + (", …" if len(others) > 4 else "")
        return [
            f"no function has a usual name; what {names} is, the config tells by the key "
            "(engine-create-func-name, parse-bbox-func-name …)"
        ]
    return ['it exports no parser: is extern "C" missing?']
