"""Write the builder's half of the header that tensorrt_author.py makes.

For tests: builders, networks and a few layers as a library knows them. From line 8 on they are
inline code around implementations; enums are opaque, and tests give their numbers.
"""

from __future__ import annotations

import re

from tensorrt_slots import Line, Slot

_CLASSES = (
    "Tensor", "Layer", "ConvolutionLayer", "ActivationLayer", "ShuffleLayer", "PluginV2Layer",
    "OptimizationProfile", "HostMemory", "CudaEngine", "Runtime", "NetworkDefinition",
    "BuilderConfig", "Builder",
)  # fmt: skip
_KNOWN = frozenset([
    "DataType", "TensorFormat", "EngineCapability", "Dims", "Dims32", "Dims64", "IPluginV2",
    "IPluginV3", "IGpuAllocator", "IErrorRecorder", "IPluginRegistry", "IPluginCreator",
    "ILogger", "void", "bool", "char", "int", "long", "float", "double", "unsigned", "const",
    "size_t", "short",
])  # fmt: skip
_LOGGER = """class ILogger {
public:
    enum class Severity : int32_t { kINTERNAL_ERROR, kERROR, kWARNING, kINFO, kVERBOSE };
%s    virtual void log(Severity severity, const char *text)%s = 0;
%s    virtual ~ILogger() = default;
};
"""
_TYPES = """struct Weights {{
    DataType type;
    const void *values;
    int64_t count;
}};
struct Permutation {{
    int32_t order[8];
}};
class Dims2 : public Dims {{}};
class Dims3 : public Dims {{}};
class Dims4 : public Dims {{}};
class DimsHW : public Dims2 {{}};
{logger}"""
_MADE = """}}  // namespace nvinfer1
extern "C" void *createInferRuntime_INTERNAL(void *logger, int32_t version){noexcept};
extern "C" void *createInferBuilder_INTERNAL(void *logger, int32_t version){noexcept};
extern "C" nvinfer1::ILogger *getLogger(){noexcept};
namespace nvinfer1 {{
inline IRuntime *createInferRuntime(ILogger &logger) {{
    return static_cast<IRuntime *>(createInferRuntime_INTERNAL(&logger, NV_TENSORRT_VERSION));
}}
"""


def _text(slot: Slot) -> str:
    arguments = ", ".join(f"{text} a{i}" for i, text in enumerate(slot.arguments))
    arguments = arguments.replace("*const[] ", "*const ")
    space = "" if slot.result.endswith(("*", "&")) else " "
    return f"{slot.result}{space}{slot.name}({arguments}){' const' if slot.const else ''}"


def _names(line: Line) -> tuple[set[str], set[str]]:
    """Classes and enums that the functions name and the header lacks."""
    words: set[str] = set()
    for name in _CLASSES:
        for owner in (f"V{name}", f"I{name}"):
            if owner in line.interfaces:
                slots = line.all_slots(owner)
                words |= {w for s in slots for t in (s.result, *s.arguments)
                          for w in re.findall(r"[A-Za-z]\w*", t)}  # fmt: skip
    words -= {"Weights", "Permutation", "Dims2", "Dims3", "Dims4", "DimsHW", "CUstream_st"}
    words = {w for w in words if w not in _KNOWN}
    classes = {w for w in words if re.match(r"I[A-Z]", w)}
    return classes, words - classes


def _thin(line: Line, name: str) -> str:
    own = line.interfaces[f"V{name}"]
    layer = name.endswith("Layer") and name != "Layer"
    member = "mLayer" if name == "Layer" else "mImpl"
    out = [
        f"class I{name} : public {'ILayer' if layer else 'INoCopy'} {{",
        f"protected:\n    apiv::V{name} *{member};\npublic:",
    ]
    virtual = line.interfaces.get(f"I{name}")
    of_public = {slot.key for slot in virtual.slots} if virtual else set()
    slots = [*(virtual.slots if virtual else ()), *(s for s in own.slots if s.key not in of_public)]
    for slot in slots:
        if slot.name == "getPImpl":
            continue
        given = ", ".join(f"a{i}" for i in range(len(slot.arguments)))
        kind = "virtual " if slot.key in of_public else ""
        body = f"{{ return {member}->{slot.name}({given}); }}"
        out.append(f"    {kind}{_text(slot)} noexcept {body}")
    return "\n".join([*out, "};", ""])


def _pure(line: Line, owner: str) -> str:
    one = line.interfaces[owner]
    name = owner
    base = f" : public {one.base}" if one.base else ""
    out = [f"class {name}{base} {{", "public:"]
    noexcept = " noexcept" if line.noexcept else ""
    for slot in one.slots:
        if slot.name == "~":
            out.append(f"    virtual ~{name}() {{}}")
        else:
            out.append(f"    virtual {_text(slot)}{noexcept} = 0;")
    return "\n".join([*out, "};", ""])


def builder_text(line: Line) -> str:
    """Write the classes, to be read in namespace nvinfer1 behind those of plugins."""
    classes, enums = _names(line)
    noexcept = " noexcept" if line.noexcept else ""
    versioned = line.number >= 11
    first = "    virtual InterfaceInfo getInterfaceInfo() const noexcept { return {}; }\n"
    logger = _LOGGER % ("", noexcept, "")
    if versioned:
        logger = logger.replace("class ILogger {", "class ILogger : public IVersionedInterface {")
        logger = logger.replace("    virtual void log", first + "    virtual void log")
    out = [_TYPES.format(logger=logger)]
    out += [f"class {name};" for name in sorted(classes)]
    out += [f"enum class {name} : int32_t;" for name in sorted(enums)]
    if line.number < 8:
        out += [_pure(line, f"I{name}") for name in _CLASSES if f"I{name}" in line.interfaces]
    else:
        out.append("namespace apiv {")
        out += [_pure(line, f"V{n}").replace(" : public VRoot", " : public VRoot")
                for n in _CLASSES]  # fmt: skip
        out.append("}  // namespace apiv")
        out.append("class INoCopy {\npublic:\n    virtual ~INoCopy() = default;\n};")
        out += [_thin(line, name) for name in _CLASSES]
    out.append(_MADE.format(noexcept=noexcept))
    return (
        "\n".join(out)
        .replace("CUstream_st *const", "cudaStream_t")
        .replace("CUstream_st *", "cudaStream_t ")
    )
