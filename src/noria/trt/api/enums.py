"""Enums whose numbers are the same in every release. Source: tensorrt-api spec 2."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, IntEnum
from typing import Any, cast


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


def numbered(name: str, pairs: Iterable[tuple[str, int]]) -> Any:
    """A new `NumberedEnum`."""
    return cast(Any, NumberedEnum)(name, list(pairs), module=__name__)


def _numbered(name: str, members: str) -> Any:
    return numbered(name, [(word, i) for i, word in enumerate(members.split())])


ActivationType = _numbered(
    "ActivationType",
    "RELU SIGMOID TANH LEAKY_RELU ELU SELU SOFTSIGN SOFTPLUS CLIP HARD_SIGMOID SCALED_TANH "
    "THRESHOLDED_RELU GELU_ERF GELU_TANH",
)
AllocatorFlag = _numbered("AllocatorFlag", "RESIZABLE")
AttentionIOForm = _numbered("AttentionIOForm", "PADDED_BHND PACKED_NHD")
AttentionNormalizationOp = _numbered("AttentionNormalizationOp", "NONE SOFTMAX")
BoundingBoxFormat = _numbered("BoundingBoxFormat", "CORNER_PAIRS CENTER_SIZES")
CalibrationAlgoType = _numbered(
    "CalibrationAlgoType",
    "LEGACY_CALIBRATION ENTROPY_CALIBRATION ENTROPY_CALIBRATION_2 MINMAX_CALIBRATION",
)
CausalMaskKind = _numbered("CausalMaskKind", "NONE UPPER_LEFT LOWER_RIGHT")
CollectiveOperation = _numbered(
    "CollectiveOperation",
    "ALL_REDUCE ALL_GATHER BROADCAST REDUCE REDUCE_SCATTER ALL_TO_ALL GATHER SCATTER",
)
CumulativeOperation = _numbered("CumulativeOperation", "SUM")
DeviceType = _numbered("DeviceType", "GPU DLA")
ElementWiseOperation = _numbered(
    "ElementWiseOperation",
    "SUM PROD MAX MIN SUB DIV POW FLOOR_DIV AND OR XOR EQUAL GREATER LESS",
)
EngineCapability = numbered(
    "EngineCapability",
    [("STANDARD", 0), ("DEFAULT", 0), ("SAFETY", 1), ("DLA_STANDALONE", 2)],
)
ErrorCodeTRT = _numbered(
    "ErrorCodeTRT",
    "SUCCESS UNSPECIFIED_ERROR INTERNAL_ERROR INVALID_ARGUMENT INVALID_CONFIG FAILED_ALLOCATION "
    "FAILED_INITIALIZATION FAILED_EXECUTION FAILED_COMPUTATION INVALID_STATE UNSUPPORTED_STATE",
)
ErrorCode = _numbered(  # of the ONNX parser
    "ErrorCode",
    "SUCCESS INTERNAL_ERROR MEM_ALLOC_FAILED MODEL_DESERIALIZE_FAILED INVALID_VALUE INVALID_GRAPH "
    "INVALID_NODE UNSUPPORTED_GRAPH UNSUPPORTED_NODE UNSUPPORTED_NODE_ATTR UNSUPPORTED_NODE_INPUT "
    "UNSUPPORTED_NODE_DATATYPE UNSUPPORTED_NODE_DYNAMIC UNSUPPORTED_NODE_SHAPE REFIT_FAILED",
)
ExecutionContextAllocationStrategy = _numbered(
    "ExecutionContextAllocationStrategy", "STATIC ON_PROFILE_CHANGE USER_MANAGED"
)
FillOperation = _numbered("FillOperation", "LINSPACE RANDOM_UNIFORM RANDOM_NORMAL")
GatherMode = _numbered("GatherMode", "DEFAULT ELEMENT ND")
HardwareCompatibilityLevel = _numbered(
    "HardwareCompatibilityLevel", "NONE AMPERE_PLUS SAME_COMPUTE_CAPABILITY"
)
InterpolationMode = _numbered("InterpolationMode", "NEAREST LINEAR CUBIC")
KVCacheMode = _numbered("KVCacheMode", "LINEAR")
LayerInformationFormat = _numbered("LayerInformationFormat", "ONELINE JSON")
LoopOutput = _numbered("LoopOutput", "LAST_VALUE CONCATENATE REVERSE")
MatrixOperation = _numbered("MatrixOperation", "NONE TRANSPOSE VECTOR")
MemoryPoolType = _numbered(
    "MemoryPoolType",
    "WORKSPACE DLA_MANAGED_SRAM DLA_LOCAL_DRAM DLA_GLOBAL_DRAM TACTIC_DRAM TACTIC_SHARED_MEMORY",
)
MoEActType = _numbered("MoEActType", "NONE SILU")
OnnxParserFlag = _numbered(
    "OnnxParserFlag",
    "NATIVE_INSTANCENORM ENABLE_UINT8_AND_ASYMMETRIC_QUANTIZATION_DLA REPORT_CAPABILITY_DLA "
    "ENABLE_PLUGIN_OVERRIDE ADJUST_FOR_DLA",
)
PaddingMode = _numbered(
    "PaddingMode",
    "EXPLICIT_ROUND_DOWN EXPLICIT_ROUND_UP SAME_UPPER SAME_LOWER CAFFE_ROUND_DOWN CAFFE_ROUND_UP",
)
PoolingType = _numbered("PoolingType", "MAX AVERAGE MAX_AVERAGE_BLEND")
ProfilingVerbosity = numbered(
    "ProfilingVerbosity",
    [("LAYER_NAMES_ONLY", 0), ("DEFAULT", 0), ("NONE", 1), ("DETAILED", 2), ("VERBOSE", 2)],
)
QuantizationFlag = _numbered("QuantizationFlag", "CALIBRATE_BEFORE_FUSION")
ReduceOperation = _numbered("ReduceOperation", "SUM PROD MAX MIN AVG NONE")
ResizeCoordinateTransformation = _numbered(
    "ResizeCoordinateTransformation", "ALIGN_CORNERS ASYMMETRIC HALF_PIXEL"
)
ResizeRoundMode = _numbered("ResizeRoundMode", "HALF_UP HALF_DOWN FLOOR CEIL")
ResizeSelector = _numbered("ResizeSelector", "FORMULA UPPER")
RuntimePlatform = _numbered("RuntimePlatform", "SAME_AS_BUILD WINDOWS_AMD64")
SampleMode = numbered(
    "SampleMode",
    [("STRICT_BOUNDS", 0), ("DEFAULT", 0), ("WRAP", 1), ("CLAMP", 2), ("FILL", 3), ("REFLECT", 4)],
)
ScaleMode = _numbered("ScaleMode", "UNIFORM CHANNEL ELEMENTWISE")
ScatterMode = _numbered("ScatterMode", "ELEMENT ND")
SerializationFlag = _numbered(
    "SerializationFlag", "EXCLUDE_WEIGHTS EXCLUDE_LEAN_RUNTIME INCLUDE_REFIT"
)
TempfileControlFlag = _numbered(
    "TempfileControlFlag", "ALLOW_IN_MEMORY_FILES ALLOW_TEMPORARY_FILES"
)
TensorIOMode = _numbered("TensorIOMode", "NONE INPUT OUTPUT")
TensorLocation = _numbered("TensorLocation", "DEVICE HOST")
TilingOptimizationLevel = _numbered("TilingOptimizationLevel", "NONE FAST MODERATE FULL")
TopKOperation = _numbered("TopKOperation", "MAX MIN")
TripLimit = _numbered("TripLimit", "COUNT WHILE")
UffInputOrder = _numbered("UffInputOrder", "NCHW NHWC NC")
UnaryOperation = _numbered(
    "UnaryOperation",
    "EXP LOG SQRT RECIP ABS NEG SIN COS TAN SINH COSH ASIN ACOS ATAN ASINH ACOSH ATANH CEIL FLOOR "
    "ERF NOT SIGN ROUND ISINF ISNAN",
)
WeightsRole = _numbered("WeightsRole", "KERNEL BIAS SHIFT SCALE CONSTANT ANY")
