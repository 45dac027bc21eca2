"""Enums of the module. Source: tensorrt-api spec 2.

Those of `ENUM_MEMBERS` have other numbers in other releases: there is one class a generation, and
only names are stored and compared.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache
from typing import Any, cast

from headrace.plugins.types import NumberedEnum, OrderedEnum
from headrace.trt.exports import ENUM_MEMBERS
from headrace.trt.release import Span, Version, current, generation

_MEMBERS: dict[str, str] = {
    "ActivationType": (
        "RELU SIGMOID TANH LEAKY_RELU ELU SELU SOFTSIGN SOFTPLUS CLIP HARD_SIGMOID SCALED_TANH "
        "THRESHOLDED_RELU GELU_ERF GELU_TANH"
    ),
    "AllocatorFlag": "RESIZABLE",
    "AttentionNormalizationOp": "NONE SOFTMAX",
    "BoundingBoxFormat": "CORNER_PAIRS CENTER_SIZES",
    "CalibrationAlgoType": (
        "LEGACY_CALIBRATION ENTROPY_CALIBRATION ENTROPY_CALIBRATION_2 MINMAX_CALIBRATION"
    ),
    "CausalMaskKind": "NONE UPPER_LEFT LOWER_RIGHT",
    "CumulativeOperation": "SUM",
    "DeviceType": "GPU DLA",
    "ElementWiseOperation": "SUM PROD MAX MIN SUB DIV POW FLOOR_DIV AND OR XOR EQUAL GREATER LESS",
    "ErrorCode": (  # of the ONNX parser
        "SUCCESS INTERNAL_ERROR MEM_ALLOC_FAILED MODEL_DESERIALIZE_FAILED INVALID_VALUE "
        "INVALID_GRAPH INVALID_NODE UNSUPPORTED_GRAPH UNSUPPORTED_NODE UNSUPPORTED_NODE_ATTR "
        "UNSUPPORTED_NODE_INPUT UNSUPPORTED_NODE_DATATYPE UNSUPPORTED_NODE_DYNAMIC "
        "UNSUPPORTED_NODE_SHAPE REFIT_FAILED"
    ),
    "ErrorCodeTRT": (
        "SUCCESS UNSPECIFIED_ERROR INTERNAL_ERROR INVALID_ARGUMENT INVALID_CONFIG "
        "FAILED_ALLOCATION FAILED_INITIALIZATION FAILED_EXECUTION FAILED_COMPUTATION "
        "INVALID_STATE UNSUPPORTED_STATE"
    ),
    "EngineStat": "TOTAL_WEIGHTS_SIZE STRIPPED_WEIGHTS_SIZE",
    "ExecutionContextAllocationStrategy": "STATIC ON_PROFILE_CHANGE USER_MANAGED",
    "FillOperation": "LINSPACE RANDOM_UNIFORM RANDOM_NORMAL",
    "GatherMode": "DEFAULT ELEMENT ND",
    "HardwareCompatibilityLevel": "NONE AMPERE_PLUS SAME_COMPUTE_CAPABILITY",
    "InterpolationMode": "NEAREST LINEAR CUBIC",
    "KVCacheMode": "LINEAR",
    "LayerInformationFormat": "ONELINE JSON",
    "LoopOutput": "LAST_VALUE CONCATENATE REVERSE",
    "MatrixOperation": "NONE TRANSPOSE VECTOR",
    "OnnxParserFlag": (
        "NATIVE_INSTANCENORM ENABLE_UINT8_AND_ASYMMETRIC_QUANTIZATION_DLA REPORT_CAPABILITY_DLA "
        "ENABLE_PLUGIN_OVERRIDE ADJUST_FOR_DLA"
    ),
    "PoolingType": "MAX AVERAGE MAX_AVERAGE_BLEND",
    "ProfilingVerbosity": "LAYER_NAMES_ONLY DEFAULT=0 NONE DETAILED VERBOSE=2",
    "QuantizationFlag": "CALIBRATE_BEFORE_FUSION",
    "ReduceOperation": "SUM PROD MAX MIN AVG NONE",
    "ResizeCoordinateTransformation": "ALIGN_CORNERS ASYMMETRIC HALF_PIXEL",
    "ResizeRoundMode": "HALF_UP HALF_DOWN FLOOR CEIL",
    "ResizeSelector": "FORMULA UPPER",
    "RuntimePlatform": "SAME_AS_BUILD WINDOWS_AMD64",
    "ScaleMode": "UNIFORM CHANNEL ELEMENTWISE",
    "ScatterMode": "ELEMENT ND",
    "SeekPosition": "SET CUR END",
    "SerializationFlag": "EXCLUDE_WEIGHTS EXCLUDE_LEAN_RUNTIME INCLUDE_REFIT",
    "TempfileControlFlag": "ALLOW_IN_MEMORY_FILES ALLOW_TEMPORARY_FILES",
    "TensorIOMode": "NONE INPUT OUTPUT",
    "TensorLocation": "DEVICE HOST",
    "TilingOptimizationLevel": "NONE FAST MODERATE FULL",
    "TopKOperation": "MAX MIN",
    "TripLimit": "COUNT WHILE",
    "UffInputOrder": "NCHW NHWC NC",
    "UnaryOperation": (
        "EXP LOG SQRT RECIP ABS NEG SIN COS TAN SINH COSH ASIN ACOS ATAN ASINH ACOSH ATANH CEIL "
        "FLOOR ERF NOT SIGN ROUND ISINF ISNAN"
    ),
    "WeightsRole": "KERNEL BIAS SHIFT SCALE CONSTANT ANY",
}
"""Enums that every release numbers alike: name -> members, as `make_enum` takes them."""


_ORDERED = (
    "AllocatorFlag BuilderFlag EngineCapability EngineStat ErrorCodeTRT "
    "ExecutionContextAllocationStrategy NetworkDefinitionCreationFlag SeekPosition Severity "
    "SerializationFlag TacticSource"
)
"""Enums whose members TensorRT orders. Source: its Python bindings, `py::arithmetic`."""


_MEMBER = re.compile(r"(\w+)(?:=(\d+))?(\S*)")


def make_enum(name: str, members: str) -> Any:
    """Make a `NumberedEnum`, or an `OrderedEnum` where TensorRT orders its members.

    Args:
        name: of the class.
        members: names with a space between them, each numbered one above the one before; `NAME=5`
            sets a number, and `NAME>=10.8` is absent before that release.
    """
    base = OrderedEnum if name in _ORDERED.split() else NumberedEnum
    return cast(Any, base)(name, list(_numbers(members).items()), module=__name__)


def _numbers(members: str) -> dict[str, int]:
    numbers: dict[str, int] = {}
    number = -1
    for member, own, span in _MEMBER.findall(members):
        number = int(own or number + 1)
        if Span.of(span).has(current().number):
            numbers[member] = number
    return numbers


def enum_class(name: str) -> type[NumberedEnum]:
    """The class of an enum in the release that is looked like.

    Of those that releases number differently, the union has the members of 8.6 and, with numbers
    above them, those of later releases.
    """
    return _enum_class(name, None if name in _MEMBERS else current().number)


@cache
def _enum_class(name: str, number: Version | None) -> type[NumberedEnum]:
    if name in _MEMBERS:
        kind: type[NumberedEnum] = make_enum(name, _MEMBERS[name])
        return kind
    by_generation = {g: text for many, text in ENUM_MEMBERS[name].items() for g in many}
    members = by_generation[generation()]
    if number is None:
        known = _numbers(members)
        later = dict.fromkeys([*_numbers(by_generation[10]), *_numbers(by_generation[11])])
        members = " ".join([members, *(n for n in later if n not in known)])
    numbered: type[NumberedEnum] = make_enum(name, members)
    return numbered


def __getattr__(name: str) -> type[NumberedEnum]:
    if name in _MEMBERS or name in ENUM_MEMBERS:
        return enum_class(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def names_in(enum: str, mask: int) -> frozenset[str]:
    """Names of the flags in a mask of this release; bits without a name are left out."""
    return frozenset(m.name for m in enum_class(enum) if mask >> int(m) & 1)


def from_mask(enum: str, names: Collection[str]) -> int:
    """The mask of the flags with these names, as this release numbers them."""
    return sum(1 << int(m) for m in enum_class(enum) if m.name in names)


class Flagged:
    """Base of objects with flags that applications set; only names are kept."""

    _FLAGS = ""  # the enum
    _flags: frozenset[str]

    @property
    def flags(self) -> int:
        """Mask of the flags that are set."""
        return from_mask(self._FLAGS, self._flags)

    @flags.setter
    def flags(self, value: int) -> None:
        self._flags = names_in(self._FLAGS, int(value))

    def set_flag(self, flag: NumberedEnum) -> None:
        """Ask for something."""
        self._flags |= {flag.name}

    def clear_flag(self, flag: NumberedEnum) -> None:
        """Do not ask for it."""
        self._flags -= {flag.name}

    def get_flag(self, flag: NumberedEnum) -> bool:
        """Whether it is asked for."""
        return flag.name in self._flags
