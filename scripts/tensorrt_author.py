"""Write the header that a library of TensorRT's plugins is compiled against, of the slot tables.

usage: tensorrt_author.py LINE TARGET

For tests: the classes of `native/foreign/slots` as the library's side has them, in namespace
nvinfer1, with what plugins, creators and the registry need. The host calls what was compiled with
it by the same tables, `tensorrt_slots.py`; that those are right says `tensorrt_check.py`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tensorrt_author_builder import builder_text
from tensorrt_slots import Line, Slot, read, write

_VERSIONS = {7: 7201, 8: 8601, 10: 101600, 11: 110100}
_PLUGINS = ("IPluginV2", "IPluginV2Ext", "IPluginV2IOExt", "IPluginV2DynamicExt")
_VERSIONED = (
    "IPluginCapability", "IPluginResource", "IPluginCreatorInterface", "IPluginV3",
    "IPluginV3OneCore", "IPluginV3OneBuild", "IPluginV3OneBuild@v2", "IPluginV3OneRuntime",
    "IPluginCreator", "IPluginCreatorV3One",
)  # fmt: skip
"""Classes of lines 10 and 11 in a namespace of versions; the last two say what a creator makes."""
_GENERATION = {name: number for number, name in enumerate(_PLUGINS)}
_KINDS = {
    "IPluginV3": "PLUGIN_V3",
    "IPluginCreator": "PLUGIN CREATOR_V1",
    "IPluginCreatorV3One": "PLUGIN CREATOR_V3ONE",
    "IPluginV3OneCore": "PLUGIN_V3ONE_CORE",
    "IPluginV3OneBuild": "PLUGIN_V3ONE_BUILD",
    "IPluginV3OneBuild@v2": "PLUGIN_V3ONE_BUILD",
    "IPluginV3OneRuntime": "PLUGIN_V3ONE_RUNTIME",
    "IPluginResource": "IPluginResource",
    "IInt8EntropyCalibrator2": "INT8_ENTROPY_CALIBRATOR_2",
}
_BASES = {"IPluginV3OneCore": "IPluginCapability", "IPluginV3OneBuild": "IPluginCapability",
          "IPluginV3OneRuntime": "IPluginCapability", "IPluginCreator": "IPluginCreatorInterface",
          "IPluginCreatorV3One": "IPluginCreatorInterface"}  # fmt: skip
"""Bases without functions of their own, which the table leaves out."""

_START = """// TensorRT {first} to {last} as its plugins know it. Made by tensorrt_author.py.
#pragma once
#include <cstddef>
#include <cstdint>
#define NV_TENSORRT_MAJOR {major}
#define NV_TENSORRT_VERSION {version}
struct CUstream_st;
typedef struct CUstream_st *cudaStream_t;
struct cudnnContext;
struct cublasContext;
namespace nvinfer1 {{
typedef char AsciiChar;
enum class DataType : int32_t {{
    kFLOAT, kHALF, kINT8, kINT32, kBOOL, kUINT8, kFP8, kBF16, kINT64
}};
enum class TensorFormat : int32_t {{ kLINEAR, kCHW2, kHWC8, kCHW4, kCHW16, kCHW32 }};
typedef TensorFormat PluginFormat;
enum class DimensionOperation : int32_t {{
    kSUM, kPROD, kMAX, kMIN, kSUB, kEQUAL, kLESS, kFLOOR_DIV, kCEIL_DIV
}};
enum class PluginFieldType : int32_t {{
    kFLOAT16, kFLOAT32, kFLOAT64, kINT8, kINT16, kINT32, kCHAR, kDIMS, kUNKNOWN, kBF16, kINT64
}};
enum class PluginCapabilityType : int32_t {{ kCORE, kBUILD, kRUNTIME }};
enum class TensorRTPhase : int32_t {{ kBUILD, kRUNTIME }};
enum class EngineCapability : int32_t {{ kSTANDARD }};
enum class APILanguage : int32_t {{ kCPP, kPYTHON }};
{dims}
struct PluginField {{
    const char *name;
    const void *data;
    PluginFieldType type;
    int32_t length;
    PluginField(const char *name = nullptr, const void *data = nullptr,
                PluginFieldType type = PluginFieldType::kUNKNOWN, int32_t length = 0)
        : name(name), data(data), type(type), length(length) {{}}
}};
struct PluginFieldCollection {{
    int32_t nbFields;
    const PluginField *fields;
}};
struct PluginTensorDesc {{
    Dims dims;
    DataType type;
    TensorFormat format;
    float scale;
}};
struct DynamicPluginTensorDesc {{
    PluginTensorDesc desc;
    Dims min;
    Dims max;
{opt}}};
struct InterfaceInfo {{
    const char *kind;
    int32_t major;
    int32_t minor;
}};
class IErrorRecorder;
class IGpuAllocator;
"""
_DIMS = {
    7: "class Dims {\npublic:\n    int nbDims;\n    int d[8];\n    int32_t type[8];\n};",
    8: "class Dims32 {\npublic:\n    int32_t nbDims;\n    int32_t d[8];\n};\ntypedef Dims32 Dims;",
    10: "class Dims64 {\npublic:\n    int32_t nbDims;\n    int64_t d[8];\n};\ntypedef Dims64 Dims;",
}
_THIN = """class IDimensionExpr {{
protected:
    apiv::VDimensionExpr *mImpl;
    virtual ~IDimensionExpr() = default;

public:
    bool isConstant() const noexcept {{ return mImpl->isConstant(); }}
    {extent} getConstantValue() const noexcept {{ return mImpl->getConstantValue(); }}
}};
class IExprBuilder {{
protected:
    apiv::VExprBuilder *mImpl;
    virtual ~IExprBuilder() = default;

public:
    const IDimensionExpr *constant({extent} value) noexcept {{ return mImpl->constant(value); }}
    const IDimensionExpr *operation(DimensionOperation op, const IDimensionExpr &first,
                                    const IDimensionExpr &second) noexcept {{
        return mImpl->operation(op, first, second);
    }}
}};
"""
_EXPRS = """struct DimsExprs {
    int32_t nbDims;
    const IDimensionExpr *d[8];
};
"""
_END = """template <typename T>
class PluginRegistrar {
public:
    PluginRegistrar() { getPluginRegistry()->registerCreator(instance, ""); }

private:
    T instance{};
};
}  // namespace nvinfer1
#define REGISTER_TENSORRT_PLUGIN(name) \\
    static nvinfer1::PluginRegistrar<name> pluginRegistrar##name {}
"""


def _body(line: Line, owner: str, slot: Slot) -> str:
    """What a function does that the headers give a body."""
    if slot.name == "getTensorRTVersion":
        generation = _GENERATION.get(owner, 0)
        return f"return {generation} << 24 | (NV_TENSORRT_VERSION & 0xFFFFFF);"
    if slot.name == "getInterfaceInfo":
        return f'return {{"{_KINDS[owner]}", {2 if owner.endswith("@v2") else 1}, 0}};'
    known = {"getFormatCombinationLimit": "return 100;", "getAliasedInput": "return -1;",
             "getAlgorithm": "return CalibrationAlgoType(2);"}  # fmt: skip
    if slot.result == "void":
        return ""
    return known.get(slot.name, "return {};")


def _class(line: Line, name: str) -> str:
    one = line.interfaces[name]
    plain = name.partition("@")[0]
    base = _BASES.get(name, one.base) if one.base == "IVersionedInterface" else one.base
    if name == "IPluginV3OneBuild@v2":
        base = "v_1_0::IPluginV3OneBuild"
    out = [f"class {plain}{f' : public {base}' if base else ''} {{", "public:"]
    own = [*one.overrides, *one.slots]
    if _GENERATION.get(name):
        own += [s for s in line.all_slots(name) if s.name == "getTensorRTVersion"]
    for slot in own:
        if slot.name == "~":
            out.append(f"    virtual ~{plain}() = default;")
            continue
        given = ", ".join(slot.arguments)
        noexcept = "" if slot.throws else " noexcept"
        space = "" if slot.result.endswith(("*", "&")) else " "
        text = f"    virtual {slot.result}{space}{slot.name}({given})"
        text += (" const" if slot.const else "") + noexcept
        out.append(text + (" = 0;" if slot.pure else f" {{ {_body(line, name, slot)} }}"))
    return "\n".join([*out, "};", ""]).replace("CUstream_st *", "cudaStream_t")


def author_text(line: Line) -> str:
    """Write the header of a line."""
    number = line.number
    wide = number >= 10
    out = [
        _START.format(
            first=line.first, last=line.last, major=number, version=_VERSIONS[number],
            dims=_DIMS[min(number, 10)], opt="    Dims opt;\n" if wide else "",
        )
    ]  # fmt: skip
    if number < 8:
        out += [_class(line, "IDimensionExpr"), _class(line, "IExprBuilder")]
    else:
        out += ["class IDimensionExpr;\nnamespace apiv {\n", _class(line, "VRoot")]
        out += [
            _class(line, "VDimensionExpr"),
            _class(line, "VExprBuilder"),
            "}  // namespace apiv\n",
        ]
        out.append(_THIN.format(extent="int64_t" if wide else "int32_t"))
    out.append(_EXPRS)
    if wide:
        out += [_class(line, "IVersionedInterface"), "class IPluginResourceContext;\n"]
        out.append("class IPluginV2;\n")
    out += [_class(line, name) for name in _PLUGINS]
    if wide:
        for name in _VERSIONED:
            plain, _, second = name.partition("@")
            space = "v_2_0" if second else "v_1_0"
            out += [f"namespace {space} {{\n", _class(line, name), f"}}  // namespace {space}\n"]
            alias = "IPluginV3OneBuildV2" if second else plain
            out.append(f"using {alias} = {space}::{plain};\n")
        out += ["class IPluginResourceContext {\npublic:\n    virtual IGpuAllocator *"
                "getGpuAllocator() const noexcept = 0;\n    virtual IErrorRecorder *"
                "getErrorRecorder() const noexcept = 0;\n    virtual ~IPluginResourceContext() = "
                "default;\n};\n"]  # fmt: skip
    else:
        out.append(_class(line, "IPluginCreator"))
    out += [_class(line, "IPluginRegistry"), "}  // namespace nvinfer1\n"]
    out.append('extern "C" nvinfer1::IPluginRegistry *getPluginRegistry() noexcept;\n')
    out += ["namespace nvinfer1 {\n", builder_text(line)]
    if number < 11:
        out.append("enum class CalibrationAlgoType : int32_t;")
        out += [_class(line, f"IInt8{name}") for name in ("Calibrator", "EntropyCalibrator2")]
    return "\n".join([*out, _END])


if __name__ == "__main__":
    write(Path(sys.argv[2]), author_text(read(int(sys.argv[1]))))
