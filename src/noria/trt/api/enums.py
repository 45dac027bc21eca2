"""Enums of the module. Source: tensorrt-api spec 2.

Those of `ENUM_MEMBERS` have other numbers in other releases: there is one class a generation, and
only names are stored and compared.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from functools import cache
from typing import Any, cast

from noria.trt.exports import ENUM_MEMBERS
from noria.trt.release import current, generation


class NumberedEnum(IntEnum):
    """An enum that prints as `Class.NAME`, as the original's do."""

    def __str__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    def __eq__(self, other: object) -> bool:
        # members of two enums are never equal, whatever their numbers
        if isinstance(other, Enum) and type(other).__name__ != type(self).__name__:
            return False
        return int(self) == other if isinstance(other, int) else NotImplemented

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(int(self))


def make_enum(name: str, members: str) -> Any:
    """Make a `NumberedEnum`.

    Args:
        name: of the class.
        members: names with a space between them, each numbered one above the one before; `NAME=5`
            sets a number.
    """
    return cast(Any, NumberedEnum)(name, list(_numbers(members).items()), module=__name__)


def _numbers(members: str) -> dict[str, int]:
    found: dict[str, int] = {}
    number = -1
    for word in members.split():
        member, _, own = word.partition("=")
        found[member] = number = int(own or number + 1)
    return found


ActivationType = make_enum(
    "ActivationType",
    "RELU SIGMOID TANH LEAKY_RELU ELU SELU SOFTSIGN SOFTPLUS CLIP HARD_SIGMOID SCALED_TANH "
    "THRESHOLDED_RELU GELU_ERF GELU_TANH",
)
AllocatorFlag = make_enum("AllocatorFlag", "RESIZABLE")
BoundingBoxFormat = make_enum("BoundingBoxFormat", "CORNER_PAIRS CENTER_SIZES")
CalibrationAlgoType = make_enum(
    "CalibrationAlgoType",
    "LEGACY_CALIBRATION ENTROPY_CALIBRATION ENTROPY_CALIBRATION_2 MINMAX_CALIBRATION",
)
CumulativeOperation = make_enum("CumulativeOperation", "SUM")
DeviceType = make_enum("DeviceType", "GPU DLA")
ElementWiseOperation = make_enum(
    "ElementWiseOperation",
    "SUM PROD MAX MIN SUB DIV POW FLOOR_DIV AND OR XOR EQUAL GREATER LESS",
)
EngineCapability = make_enum("EngineCapability", "STANDARD DEFAULT=0 SAFETY DLA_STANDALONE")
ErrorCodeTRT = make_enum(
    "ErrorCodeTRT",
    "SUCCESS UNSPECIFIED_ERROR INTERNAL_ERROR INVALID_ARGUMENT INVALID_CONFIG FAILED_ALLOCATION "
    "FAILED_INITIALIZATION FAILED_EXECUTION FAILED_COMPUTATION INVALID_STATE UNSUPPORTED_STATE",
)
ErrorCode = make_enum(  # of the ONNX parser
    "ErrorCode",
    "SUCCESS INTERNAL_ERROR MEM_ALLOC_FAILED MODEL_DESERIALIZE_FAILED INVALID_VALUE INVALID_GRAPH "
    "INVALID_NODE UNSUPPORTED_GRAPH UNSUPPORTED_NODE UNSUPPORTED_NODE_ATTR UNSUPPORTED_NODE_INPUT "
    "UNSUPPORTED_NODE_DATATYPE UNSUPPORTED_NODE_DYNAMIC UNSUPPORTED_NODE_SHAPE REFIT_FAILED",
)
ExecutionContextAllocationStrategy = make_enum(
    "ExecutionContextAllocationStrategy", "STATIC ON_PROFILE_CHANGE USER_MANAGED"
)
FillOperation = make_enum("FillOperation", "LINSPACE RANDOM_UNIFORM RANDOM_NORMAL")
GatherMode = make_enum("GatherMode", "DEFAULT ELEMENT ND")
HardwareCompatibilityLevel = make_enum(
    "HardwareCompatibilityLevel", "NONE AMPERE_PLUS SAME_COMPUTE_CAPABILITY"
)
InterpolationMode = make_enum("InterpolationMode", "NEAREST LINEAR CUBIC")
LayerInformationFormat = make_enum("LayerInformationFormat", "ONELINE JSON")
LoopOutput = make_enum("LoopOutput", "LAST_VALUE CONCATENATE REVERSE")
MatrixOperation = make_enum("MatrixOperation", "NONE TRANSPOSE VECTOR")
MemoryPoolType = make_enum(
    "MemoryPoolType",
    "WORKSPACE DLA_MANAGED_SRAM DLA_LOCAL_DRAM DLA_GLOBAL_DRAM TACTIC_DRAM TACTIC_SHARED_MEMORY",
)
OnnxParserFlag = make_enum(
    "OnnxParserFlag",
    "NATIVE_INSTANCENORM ENABLE_UINT8_AND_ASYMMETRIC_QUANTIZATION_DLA REPORT_CAPABILITY_DLA "
    "ENABLE_PLUGIN_OVERRIDE ADJUST_FOR_DLA",
)
PaddingMode = make_enum(
    "PaddingMode",
    "EXPLICIT_ROUND_DOWN EXPLICIT_ROUND_UP SAME_UPPER SAME_LOWER CAFFE_ROUND_DOWN CAFFE_ROUND_UP",
)
PoolingType = make_enum("PoolingType", "MAX AVERAGE MAX_AVERAGE_BLEND")
ProfilingVerbosity = make_enum(
    "ProfilingVerbosity", "LAYER_NAMES_ONLY DEFAULT=0 NONE DETAILED VERBOSE=2"
)
QuantizationFlag = make_enum("QuantizationFlag", "CALIBRATE_BEFORE_FUSION")
ReduceOperation = make_enum("ReduceOperation", "SUM PROD MAX MIN AVG NONE")
ResizeCoordinateTransformation = make_enum(
    "ResizeCoordinateTransformation", "ALIGN_CORNERS ASYMMETRIC HALF_PIXEL"
)
ResizeRoundMode = make_enum("ResizeRoundMode", "HALF_UP HALF_DOWN FLOOR CEIL")
ResizeSelector = make_enum("ResizeSelector", "FORMULA UPPER")
RuntimePlatform = make_enum("RuntimePlatform", "SAME_AS_BUILD WINDOWS_AMD64")
SampleMode = make_enum("SampleMode", "STRICT_BOUNDS DEFAULT=0 WRAP CLAMP FILL REFLECT")
ScaleMode = make_enum("ScaleMode", "UNIFORM CHANNEL ELEMENTWISE")
ScatterMode = make_enum("ScatterMode", "ELEMENT ND")
SerializationFlag = make_enum(
    "SerializationFlag", "EXCLUDE_WEIGHTS EXCLUDE_LEAN_RUNTIME INCLUDE_REFIT"
)
TempfileControlFlag = make_enum(
    "TempfileControlFlag", "ALLOW_IN_MEMORY_FILES ALLOW_TEMPORARY_FILES"
)
TensorIOMode = make_enum("TensorIOMode", "NONE INPUT OUTPUT")
TensorLocation = make_enum("TensorLocation", "DEVICE HOST")
TilingOptimizationLevel = make_enum("TilingOptimizationLevel", "NONE FAST MODERATE FULL")
TopKOperation = make_enum("TopKOperation", "MAX MIN")
TripLimit = make_enum("TripLimit", "COUNT WHILE")
UffInputOrder = make_enum("UffInputOrder", "NCHW NHWC NC")
UnaryOperation = make_enum(
    "UnaryOperation",
    "EXP LOG SQRT RECIP ABS NEG SIN COS TAN SINH COSH ASIN ACOS ATAN ASINH ACOSH ATANH CEIL FLOOR "
    "ERF NOT SIGN ROUND ISINF ISNAN",
)
WeightsRole = make_enum("WeightsRole", "KERNEL BIAS SHIFT SCALE CONSTANT ANY")


def enum_class(name: str) -> Any:
    """The class of an enum of `ENUM_MEMBERS` in the release that is looked like.

    The union has the members of 8.6 and, with numbers above them, those of later releases.
    """
    return _enum_class(name, 0 if current().number is None else generation())


@cache
def _enum_class(name: str, number: int) -> Any:
    by_generation = {g: text for many, text in ENUM_MEMBERS[name].items() for g in many}
    members = by_generation[number or 8]
    if number == 0:
        later = [*_numbers(by_generation[10]), *_numbers(by_generation[11])]
        members = " ".join(dict.fromkeys([*members.split(), *later]))
    return make_enum(name, members)


def __getattr__(name: str) -> Any:
    if name in ENUM_MEMBERS:
        return enum_class(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def bit(member: Any) -> int:
    """The bit of a flag in a mask."""
    return 1 << int(member)


def names_in(enum: str, mask: int) -> frozenset[str]:
    """Names of the flags in a mask of this release; bits without a name are left out."""
    return frozenset(m.name for m in enum_class(enum) if mask & bit(m))


def from_mask(enum: str, names: frozenset[str]) -> int:
    """The mask of the flags with these names, as this release numbers them."""
    return sum(bit(m) for m in enum_class(enum) if m.name in names)
