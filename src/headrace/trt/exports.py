"""The table of releases: every public name of `headrace.trt` and the numbers of enums that changed.

A row is a name with the releases that have it: `Name>=10.5` came with 10.5, `Name<11` left with
11, and `Name=other.path` finds `other.path` in the module. Methods and properties that not every
release has stand above their class, see `headrace.trt.release.versioned`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from headrace._core.errors import EngineError
from headrace.trt.release import Span, current, missing

_NAMES = {
    "headrace.plugins": (
        "DataType DimensionOperation Dims DimsExprs DynamicPluginTensorDesc "
        "get_plugin_registry IDimensionExpr IExprBuilder IPluginCreator "
        "IPluginCreatorInterface>=10 IPluginCreatorV3One>=10 IPluginResource>=10 "
        "IPluginResourceContext>=10 IPluginV2 IPluginV2DynamicExt IPluginV2Ext "
        "IPluginV2IOExt IPluginV3>=10 IPluginV3OneBuild>=10 IPluginV3OneBuildV2>=10.3 "
        "IPluginV3OneCore>=10 IPluginV3OneRuntime>=10 PluginCapabilityType>=10 PluginField "
        "PluginFieldCollection PluginFieldType PluginTensorDesc TensorFormat "
        "TensorRTPhase>=10 PluginFieldCollection_=PluginFieldCollection "
        "IPluginV2DynamicExtBase=IPluginV2DynamicExt>=9"
    ),
    "headrace.plugins.base": "InterfaceInfo>=10 IPluginCapability>=10 IVersionedInterface>=10",
    "headrace.plugins.registry": "IPluginRegistry=PluginRegistry",
    "headrace.plugins.standard": "init_libnvinfer_plugins",
    "headrace.plugins.types": (
        "APILanguage>=10 e8m0=DataType.E8M0>=10.12 bfloat16=DataType.BF16>=9 bool=DataType.BOOL "
        "Dims2 Dims3 Dims4 DimsHW float16=DataType.HALF float32=DataType.FLOAT "
        "fp4=DataType.FP4>=10.8 fp8=DataType.FP8 int32=DataType.INT32 int4=DataType.INT4>=10 "
        "int64=DataType.INT64>=9 int8=DataType.INT8 PluginCreatorVersion>=10 "
        "PluginFormat=TensorFormat QuickPluginCreationRequest>=10.9 uint8=DataType.UINT8"
    ),
    "headrace.trt.api.algorithms": (
        "IAlgorithm<11 IAlgorithmContext<11 IAlgorithmIOInfo<11 IAlgorithmSelector<11 "
        "IAlgorithmVariant<11"
    ),
    "headrace.trt.api.builder": "Builder get_builder_plugin_registry",
    "headrace.trt.api.calibration": (
        "IInt8Calibrator<11 IInt8EntropyCalibrator<11 IInt8EntropyCalibrator2<11 "
        "IInt8LegacyCalibrator<11 IInt8MinMaxCalibrator<11"
    ),
    "headrace.trt.api.config": "IBuilderConfig",
    "headrace.trt.api.context": "IExecutionContext",
    "headrace.trt.api.engine": "ICudaEngine",
    "headrace.trt.types.enums": (
        "ActivationType AllocatorFlag>=8 AttentionNormalizationOp>=10.14 BoundingBoxFormat "
        "BuilderFlag CalibrationAlgoType<11 CausalMaskKind>=11 "
        "CumulativeOperation>=10.5 DeviceType ElementWiseOperation EngineCapability "
        "EngineStat>=10.14 ErrorCode ErrorCodeTRT ExecutionContextAllocationStrategy>=10 "
        "FillOperation GatherMode HardwareCompatibilityLevel InterpolationMode KVCacheMode>=10.15 "
        "LayerInformationFormat LayerType LoopOutput MatrixOperation MemoryPoolType>=8.4 "
        "NetworkDefinitionCreationFlag OnnxParserFlag PaddingMode PoolingType PreviewFeature "
        "ProfilingVerbosity QuantizationFlag<11 ReduceOperation ResizeCoordinateTransformation "
        "ResizeMode=InterpolationMode<10 ResizeRoundMode ResizeSelector RuntimePlatform>=10.3 "
        "SampleMode ScaleMode ScatterMode SeekPosition>=10.7 SerializationFlag>=10 "
        "SliceMode=SampleMode<10 TacticSource TempfileControlFlag TensorIOMode TensorLocation "
        "TilingOptimizationLevel>=10.8 TopKOperation TripLimit UffInputOrder<10 UnaryOperation "
        "WeightsRole"
    ),
    "headrace.trt.api.inspector": "EngineInspector",
    "headrace.trt.api.legacy_parsers": "CaffeParser<10 IBlobNameToTensor<10 UffParser<10",
    "headrace.trt.api.interfaces": (
        "IDebugListener>=10 IGpuAllocator IGpuAsyncAllocator>=10 IOutputAllocator IProfiler "
        "IProgressMonitor>=10 Profiler IRuntimeConfig>=10.8 ISerializationConfig>=10 "
        "IStreamReader>=10 IStreamReaderV2>=10.7 IStreamWriter>=10.13 ITimingCache "
        "TimingCacheKey>=10.8 TimingCacheValue>=10.8"
    ),
    "headrace.trt.api.network": "INetworkDefinition",
    "headrace.trt.api.onnx_parser": "get_nv_onnx_parser_version NodeIndices OnnxParser",
    "headrace.trt.api.profile": "IOptimizationProfile",
    "headrace.trt.api.refitter": "OnnxParserRefitter>=10 Refitter",
    "headrace.trt.types.reporting": "IErrorRecorder ILogger Logger ParserError",
    "headrace.trt.api.runtime": "Runtime",
    "headrace.trt.types.tensor": "ITensor",
    "headrace.trt.types.values": (
        "IHostMemory nptype Permutation shutdown_protobuf_library<10 volume Weights"
    ),
    "headrace.trt.layers.base": "ILayer",
    "headrace.trt.layers.attention": (
        "IAttention>=10.14 IAttentionBoundaryLayer>=10.14 IAttentionInputLayer>=10.14 "
        "IAttentionOutputLayer>=10.14 IKVCacheUpdateLayer>=10.15 IRotaryEmbeddingLayer>=10.15"
    ),
    "headrace.trt.layers.control": (
        "IConditionLayer IIfConditional IIfConditionalBoundaryLayer "
        "IIfConditionalInputLayer IIfConditionalOutputLayer IIteratorLayer ILoop "
        "ILoopBoundaryLayer ILoopOutputLayer IRecurrenceLayer ITripLimitLayer"
    ),
    "headrace.trt.layers.elementwise": (
        "IActivationLayer ICastLayer>=8.6 IElementWiseLayer IIdentityLayer ILRNLayer "
        "IParametricReLULayer IScaleLayer ISelectLayer IUnaryLayer"
    ),
    "headrace.trt.layers.plugins": "IPluginLayer IPluginV2Layer IPluginV3Layer>=10",
    "headrace.trt.layers.quantizing": "IDequantizeLayer IDynamicQuantizeLayer>=10.8 IQuantizeLayer",
    "headrace.trt.layers.sampling": "IGridSampleLayer IResizeLayer ISliceLayer",
    "headrace.trt.layers.selection": (
        "IGatherLayer INMSLayer INonZeroLayer IOneHotLayer IReverseSequenceLayer IScatterLayer"
    ),
    "headrace.trt.layers.shaping": (
        "IAssertionLayer IConcatenationLayer IConstantLayer IFillLayer IShapeLayer "
        "IShuffleLayer ISqueezeLayer>=10.4 IUnsqueezeLayer>=10.4"
    ),
    "headrace.trt.layers.sums": (
        "ICumulativeLayer>=10.5 IEinsumLayer IMatrixMultiplyLayer INormalizationLayer>=8.6 "
        "IRaggedSoftMaxLayer IReduceLayer ISoftMaxLayer ITopKLayer"
    ),
    "headrace.trt.layers.windows": (
        "IConvolutionLayer IDeconvolutionLayer IFullyConnectedLayer<10 IPaddingLayer IPoolingLayer"
    ),
    "headrace.trt.lowering.graph": "from_network",
}
"""Module -> rows of the names in it."""

_LANGUAGE = "runs vision pipelines and does not compute"
_REFUSED = {
    f"{_LANGUAGE} packed sequences of different lengths": (
        "padded tensors, and IAttention.mask for the positions that count",
        "AttentionIOForm>=11 query_form>=11 key_value_form>=11 query_lengths>=11 "
        "key_value_lengths>=11 update_form>=11 update_lengths>=11",
    ),
    f"{_LANGUAGE} mixtures of experts": (
        "a language-model runtime",
        "add_moe>=10.16 IMoELayer>=10.16 MoEActType>=10.16",
    ),
    f"{_LANGUAGE} collectives of several devices": (
        "a network for one device, without the layer",
        "add_dist_collective>=10.16 IDistCollectiveLayer>=10.16 CollectiveOperation>=10.16 "
        "set_communicator>=10.16 num_ranks>=10.16",
    ),
    "has no GPU for the kernels of plugins compiled ahead of time": (
        "tensorrt.plugin.impl, which computes a plugin in Python",
        "KernelLaunchParams>=10.9 ISymExpr>=10.9 ISymExprs>=10.9 IPluginV3QuickAOTBuild>=10.9 "
        "PluginArgType>=10.9 PluginArgDataType>=10.9",
    ),
    "has the classes behind decorated plugins under names of its own": (
        "tensorrt.plugin.register and tensorrt.plugin.impl, or IPluginV3 and IPluginCreatorV3One",
        "IPluginCreatorV3Quick>=10.6 IPluginV3QuickBuild>=10.6 IPluginV3QuickCore>=10.6 "
        "IPluginV3QuickRuntime>=10.6",
    ),
    "does not compute the recurrent layer that TensorRT 7 deprecated": (
        "add_loop with the cell's layers, or OnnxParser with LSTM, GRU or RNN nodes",
        "add_rnn_v2<10 IRNNv2Layer<10 RNNDirection<10 RNNGateType<10 RNNInputMode<10 "
        "RNNOperation<10",
    ),
    "makes the plugins of Caffe models by their creators": (
        "a plugin with an IPluginCreator in the registry",
        "FieldCollection<10 FieldMap<10 FieldType<10 ICaffePluginFactoryV2<10",
    ),
}
"""Names that are refused: the reason, about Headrace -> replacement, names."""

ENUM_MEMBERS: dict[str, dict[tuple[int, ...], str]] = {
    "LayerType": {
        (8,): (
            "CONVOLUTION FULLY_CONNECTED ACTIVATION POOLING LRN SCALE SOFTMAX DECONVOLUTION "
            "CONCATENATION ELEMENTWISE PLUGIN UNARY PADDING SHUFFLE REDUCE TOPK GATHER "
            "MATRIX_MULTIPLY RAGGED_SOFTMAX CONSTANT RNN_V2 IDENTITY PLUGIN_V2 SLICE SHAPE "
            "PARAMETRIC_RELU RESIZE TRIP_LIMIT RECURRENCE ITERATOR LOOP_OUTPUT SELECT FILL "
            "QUANTIZE DEQUANTIZE CONDITION CONDITIONAL_INPUT CONDITIONAL_OUTPUT SCATTER EINSUM "
            "ASSERTION ONE_HOT NON_ZERO GRID_SAMPLE NMS REVERSE_SEQUENCE NORMALIZATION CAST"
        ),
        (10, 11): (
            "CONVOLUTION CAST ACTIVATION POOLING LRN SCALE SOFTMAX DECONVOLUTION "
            "CONCATENATION ELEMENTWISE PLUGIN UNARY PADDING SHUFFLE REDUCE TOPK GATHER "
            "MATRIX_MULTIPLY RAGGED_SOFTMAX CONSTANT IDENTITY PLUGIN_V2 SLICE SHAPE "
            "PARAMETRIC_RELU RESIZE TRIP_LIMIT RECURRENCE ITERATOR LOOP_OUTPUT SELECT FILL "
            "QUANTIZE DEQUANTIZE CONDITION CONDITIONAL_INPUT CONDITIONAL_OUTPUT SCATTER "
            "EINSUM ASSERTION ONE_HOT NON_ZERO GRID_SAMPLE NMS REVERSE_SEQUENCE "
            "NORMALIZATION PLUGIN_V3 SQUEEZE>=10.4 UNSQUEEZE>=10.4 CUMULATIVE>=10.5 "
            "DYNAMIC_QUANTIZE>=10.8 ATTENTION_INPUT>=10.14 ATTENTION_OUTPUT>=10.14 "
            "ROTARY_EMBEDDING>=10.15 KV_CACHE_UPDATE>=10.15 MOE>=10.16 DIST_COLLECTIVE>=10.16"
        ),
    },
    "BuilderFlag": {
        (8,): (
            "FP16 INT8 DEBUG GPU_FALLBACK STRICT_TYPES REFIT DISABLE_TIMING_CACHE TF32 "
            "SPARSE_WEIGHTS SAFETY_SCOPE OBEY_PRECISION_CONSTRAINTS "
            "PREFER_PRECISION_CONSTRAINTS DIRECT_IO REJECT_EMPTY_ALGORITHMS "
            "ENABLE_TACTIC_HEURISTIC VERSION_COMPATIBLE EXCLUDE_LEAN_RUNTIME FP8"
        ),
        (10,): (
            "FP16 INT8 DEBUG GPU_FALLBACK REFIT DISABLE_TIMING_CACHE TF32 SPARSE_WEIGHTS "
            "SAFETY_SCOPE OBEY_PRECISION_CONSTRAINTS PREFER_PRECISION_CONSTRAINTS DIRECT_IO "
            "REJECT_EMPTY_ALGORITHMS VERSION_COMPATIBLE EXCLUDE_LEAN_RUNTIME FP8 "
            "ERROR_ON_TIMING_CACHE_MISS BF16 DISABLE_COMPILATION_CACHE STRIP_PLAN REFIT_IDENTICAL "
            "WEIGHT_STREAMING INT4 REFIT_INDIVIDUAL STRICT_NANS MONITOR_MEMORY FP4 "
            "EDITABLE_TIMING_CACHE DISTRIBUTIVE_INDEPENDENCE WEIGHTLESS=19"
        ),
        (11,): (
            "DEBUG=2 GPU_FALLBACK REFIT DISABLE_TIMING_CACHE TF32 SPARSE_WEIGHTS "
            "SAFETY_SCOPE DIRECT_IO=11 VERSION_COMPATIBLE EXCLUDE_LEAN_RUNTIME "
            "ERROR_ON_TIMING_CACHE_MISS=15 DISABLE_COMPILATION_CACHE=17 STRIP_PLAN "
            "REFIT_IDENTICAL WEIGHT_STREAMING REFIT_INDIVIDUAL=22 STRICT_NANS "
            "MONITOR_MEMORY EDITABLE_TIMING_CACHE=26 DISTRIBUTIVE_INDEPENDENCE"
        ),
    },
    "EngineCapability": {
        (8,): "DEFAULT SAFE_GPU SAFE_DLA STANDARD=0 SAFETY DLA_STANDALONE",
        (10, 11): "STANDARD SAFETY DLA_STANDALONE",
    },
    "MemoryPoolType": {
        (8,): "WORKSPACE DLA_MANAGED_SRAM DLA_LOCAL_DRAM DLA_GLOBAL_DRAM TACTIC_DRAM",
        (10, 11): (
            "WORKSPACE DLA_MANAGED_SRAM DLA_LOCAL_DRAM DLA_GLOBAL_DRAM TACTIC_DRAM "
            "TACTIC_SHARED_MEMORY"
        ),
    },
    "NetworkDefinitionCreationFlag": {
        (8,): "EXPLICIT_BATCH EXPLICIT_PRECISION",
        (10,): (
            "EXPLICIT_BATCH STRONGLY_TYPED PREFER_JIT_PYTHON_PLUGINS PREFER_AOT_PYTHON_PLUGINS"
        ),
        (11,): "STRONGLY_TYPED PREFER_JIT_PYTHON_PLUGINS PREFER_AOT_PYTHON_PLUGINS",
    },
    "PreviewFeature": {
        (8,): (
            "FASTER_DYNAMIC_SHAPES_0805 DISABLE_EXTERNAL_TACTIC_SOURCES_FOR_CORE_0805 "
            "PROFILE_SHARING_0806"
        ),
        (10,): (
            "PROFILE_SHARING_0806 ALIASED_PLUGIN_IO_10_03 RUNTIME_ACTIVATION_RESIZE_10_10 "
            "MULTIDEVICE_RUNTIME_10_16"
        ),
        (11,): "ALIASED_PLUGIN_IO_10_03 RUNTIME_ACTIVATION_RESIZE_10_10",
    },
    "PaddingMode": {
        (8,): (
            "EXPLICIT_ROUND_DOWN EXPLICIT_ROUND_UP SAME_UPPER SAME_LOWER CAFFE_ROUND_DOWN "
            "CAFFE_ROUND_UP"
        ),
        (10, 11): "EXPLICIT_ROUND_DOWN EXPLICIT_ROUND_UP SAME_UPPER SAME_LOWER",
    },
    "SampleMode": {
        (8,): "STRICT_BOUNDS DEFAULT=0 WRAP CLAMP FILL REFLECT",
        (10, 11): "STRICT_BOUNDS WRAP CLAMP FILL REFLECT",
    },
    "TacticSource": {
        (8, 10): "CUBLAS CUBLAS_LT CUDNN EDGE_MASK_CONVOLUTIONS JIT_CONVOLUTIONS",
        (11,): "EDGE_MASK_CONVOLUTIONS JIT_CONVOLUTIONS",
    },
}
"""Enums that releases number differently: generations -> members, each one above the one before."""

_ROW = re.compile(r"(\w+)(?:=([\w.]+))?(\S*)")


@dataclass(frozen=True, slots=True)
class Export:
    """A public name.

    Attributes:
        module: where it lives.
        path: its attribute there, with a dot for a member.
        span: releases that have it.
    """

    module: str
    path: str
    span: Span


class RefusedLayerError(EngineError, AttributeError):
    """A script asks for a name of TensorRT that Headrace refuses, with the reason."""


def _rows(text: str) -> list[tuple[str, str, Span]]:
    return [(name, path or name, Span.of(span)) for name, path, span in _ROW.findall(text)]


EXPORTS = {
    name: Export(module, path, span)
    for module, text in _NAMES.items()
    for name, path, span in _rows(text)
}
_REFUSALS = {
    name: (reason, instead, span)
    for reason, (instead, text) in _REFUSED.items()
    for name, _, span in _rows(text)
}


def reason_of(name: str) -> tuple[str, str] | None:
    """The reason why a name is refused, about Headrace, and its replacement."""
    row = _REFUSALS.get(name)
    return None if row is None else row[:2]


def refusal(owner: str, name: str) -> AttributeError | None:
    """The error for a name that is refused; None for every other name.

    Args:
        owner: the module or object that was asked, for the message.
        name: the name that it was asked for.
    """
    if name not in _REFUSALS:
        return None
    reason, instead, span = _REFUSALS[name]
    if not span.has(current().number):
        return missing(owner, name)
    return RefusedLayerError(
        f"{name} is refused: Headrace {reason}",
        where=owner,
        fix=f"use {instead}",
    )
