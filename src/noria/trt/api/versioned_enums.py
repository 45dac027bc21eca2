"""Enums whose numbers differ between releases: one class per generation, compared by name.

Nothing of noria keeps their numbers: names are stored and compared. Source: tensorrt-api spec 2.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from noria.trt.api.enums import numbered
from noria.trt.release import current, generation

_LAYERS_8 = [
    "CONVOLUTION",
    "FULLY_CONNECTED",
    "ACTIVATION",
    "POOLING",
    "LRN",
    "SCALE",
    "SOFTMAX",
    "DECONVOLUTION",
    "CONCATENATION",
    "ELEMENTWISE",
    "PLUGIN",
    "UNARY",
    "PADDING",
    "SHUFFLE",
    "REDUCE",
    "TOPK",
    "GATHER",
    "MATRIX_MULTIPLY",
    "RAGGED_SOFTMAX",
    "CONSTANT",
    "RNN_V2",
    "IDENTITY",
    "PLUGIN_V2",
    "SLICE",
    "SHAPE",
    "PARAMETRIC_RELU",
    "RESIZE",
    "TRIP_LIMIT",
    "RECURRENCE",
    "ITERATOR",
    "LOOP_OUTPUT",
    "SELECT",
    "FILL",
    "QUANTIZE",
    "DEQUANTIZE",
    "CONDITION",
    "CONDITIONAL_INPUT",
    "CONDITIONAL_OUTPUT",
    "SCATTER",
    "EINSUM",
    "ASSERTION",
    "ONE_HOT",
    "NON_ZERO",
    "GRID_SAMPLE",
    "NMS",
    "REVERSE_SEQUENCE",
    "NORMALIZATION",
    "CAST",
]
_LAYERS_10 = [
    "CONVOLUTION",
    "CAST",
    "ACTIVATION",
    "POOLING",
    "LRN",
    "SCALE",
    "SOFTMAX",
    "DECONVOLUTION",
    "CONCATENATION",
    "ELEMENTWISE",
    "PLUGIN",
    "UNARY",
    "PADDING",
    "SHUFFLE",
    "REDUCE",
    "TOPK",
    "GATHER",
    "MATRIX_MULTIPLY",
    "RAGGED_SOFTMAX",
    "CONSTANT",
    "IDENTITY",
    "PLUGIN_V2",
    "SLICE",
    "SHAPE",
    "PARAMETRIC_RELU",
    "RESIZE",
    "TRIP_LIMIT",
    "RECURRENCE",
    "ITERATOR",
    "LOOP_OUTPUT",
    "SELECT",
    "FILL",
    "QUANTIZE",
    "DEQUANTIZE",
    "CONDITION",
    "CONDITIONAL_INPUT",
    "CONDITIONAL_OUTPUT",
    "SCATTER",
    "EINSUM",
    "ASSERTION",
    "ONE_HOT",
    "NON_ZERO",
    "GRID_SAMPLE",
    "NMS",
    "REVERSE_SEQUENCE",
    "NORMALIZATION",
    "PLUGIN_V3",
    "SQUEEZE",
    "UNSQUEEZE",
    "CUMULATIVE",
    "DYNAMIC_QUANTIZE",
    "ATTENTION_INPUT",
    "ATTENTION_OUTPUT",
    "ROTARY_EMBEDDING",
    "KVCACHE_UPDATE",
    "MOE",
    "DIST_COLLECTIVE",
]
_FLAGS_8 = [
    "FP16",
    "INT8",
    "DEBUG",
    "GPU_FALLBACK",
    "STRICT_TYPES",
    "REFIT",
    "DISABLE_TIMING_CACHE",
    "TF32",
    "SPARSE_WEIGHTS",
    "SAFETY_SCOPE",
    "OBEY_PRECISION_CONSTRAINTS",
    "PREFER_PRECISION_CONSTRAINTS",
    "DIRECT_IO",
    "REJECT_EMPTY_ALGORITHMS",
    "ENABLE_TACTIC_HEURISTIC",
    "VERSION_COMPATIBLE",
    "EXCLUDE_LEAN_RUNTIME",
    "FP8",
]
_FLAGS_10 = [
    "FP16",
    "INT8",
    "DEBUG",
    "GPU_FALLBACK",
    "REFIT",
    "DISABLE_TIMING_CACHE",
    "TF32",
    "SPARSE_WEIGHTS",
    "SAFETY_SCOPE",
    "OBEY_PRECISION_CONSTRAINTS",
    "PREFER_PRECISION_CONSTRAINTS",
    "DIRECT_IO",
    "REJECT_EMPTY_ALGORITHMS",
    "VERSION_COMPATIBLE",
    "EXCLUDE_LEAN_RUNTIME",
    "FP8",
    "ERROR_ON_TIMING_CACHE_MISS",
    "BF16",
    "DISABLE_COMPILATION_CACHE",
    "STRIP_PLAN",
    "REFIT_IDENTICAL",
    "WEIGHT_STREAMING",
    "INT4",
    "REFIT_INDIVIDUAL",
    "STRICT_NANS",
    "MONITOR_MEMORY",
    "FP4",
    "EDITABLE_TIMING_CACHE",
    "DISTRIBUTIVE_INDEPENDENCE",
]
_FLAGS_11 = {
    "DEBUG": 2, "GPU_FALLBACK": 3, "REFIT": 4, "DISABLE_TIMING_CACHE": 5, "TF32": 6,
    "SPARSE_WEIGHTS": 7, "SAFETY_SCOPE": 8, "DIRECT_IO": 11, "VERSION_COMPATIBLE": 12,
    "EXCLUDE_LEAN_RUNTIME": 13, "ERROR_ON_TIMING_CACHE_MISS": 15,
    "DISABLE_COMPILATION_CACHE": 17, "STRIP_PLAN": 18, "REFIT_IDENTICAL": 19,
    "WEIGHT_STREAMING": 20, "REFIT_INDIVIDUAL": 22, "STRICT_NANS": 23, "MONITOR_MEMORY": 24,
    "EDITABLE_TIMING_CACHE": 26, "DISTRIBUTIVE_INDEPENDENCE": 27,
}  # fmt: skip

_TABLES: dict[str, dict[int, dict[str, int]]] = {
    "LayerType": {
        8: {n: i for i, n in enumerate(_LAYERS_8)},
        10: {n: i for i, n in enumerate(_LAYERS_10)},
        11: {n: i for i, n in enumerate(_LAYERS_10)},
    },
    "BuilderFlag": {
        8: {n: i for i, n in enumerate(_FLAGS_8)},
        10: {n: i for i, n in enumerate(_FLAGS_10)} | {"WEIGHTLESS": 19},
        11: _FLAGS_11,
    },
    "NetworkDefinitionCreationFlag": {
        8: {"EXPLICIT_BATCH": 0, "EXPLICIT_PRECISION": 1},
        10: {
            "EXPLICIT_BATCH": 0,
            "STRONGLY_TYPED": 1,
            "PREFER_JIT_PYTHON_PLUGINS": 2,
            "PREFER_AOT_PYTHON_PLUGINS": 3,
        },
        11: {
            "STRONGLY_TYPED": 0,
            "PREFER_JIT_PYTHON_PLUGINS": 1,
            "PREFER_AOT_PYTHON_PLUGINS": 2,
        },
    },
    "PreviewFeature": {
        8: {
            "FASTER_DYNAMIC_SHAPES_0805": 0,
            "DISABLE_EXTERNAL_TACTIC_SOURCES_FOR_CORE_0805": 1,
            "PROFILE_SHARING_0806": 2,
        },
        10: {
            "PROFILE_SHARING_0806": 0,
            "ALIASED_PLUGIN_IO_10_03": 1,
            "RUNTIME_ACTIVATION_RESIZE_10_10": 2,
            "MULTIDEVICE_RUNTIME_10_16": 3,
        },
        11: {"ALIASED_PLUGIN_IO_10_03": 0, "RUNTIME_ACTIVATION_RESIZE_10_10": 1},
    },
    "TacticSource": {
        8: {
            "CUBLAS": 0,
            "CUBLAS_LT": 1,
            "CUDNN": 2,
            "EDGE_MASK_CONVOLUTIONS": 3,
            "JIT_CONVOLUTIONS": 4,
        },
        10: {
            "CUBLAS": 0,
            "CUBLAS_LT": 1,
            "CUDNN": 2,
            "EDGE_MASK_CONVOLUTIONS": 3,
            "JIT_CONVOLUTIONS": 4,
        },
        11: {"EDGE_MASK_CONVOLUTIONS": 0, "JIT_CONVOLUTIONS": 1},
    },
}
VERSIONED_ENUMS = frozenset(_TABLES)


def enum_class(name: str) -> Any:
    """The enum as the release that is looked like has it; the union adds later names behind."""
    return _made(name, 0 if current().number is None else generation())


@cache
def _made(name: str, number: int) -> Any:
    table = _TABLES[name]
    members = dict(table[number or 8])
    if number == 0:
        for later in (10, 11):
            for member in table[later]:
                if member not in members:
                    members[member] = max(members.values()) + 1
    return numbered(name, members.items())


def bit(member: Any) -> int:
    """The bit of a flag in a mask."""
    return 1 << int(member)


def names_in(enum: str, mask: int) -> frozenset[str]:
    """Names of the flags in a mask of this release; bits without a name are left out."""
    return frozenset(m.name for m in enum_class(enum) if mask & bit(m))


def from_mask(enum: str, names: frozenset[str]) -> int:
    """The mask of the flags with these names, as this release numbers them."""
    return sum(bit(m) for m in enum_class(enum) if m.name in names)
