"""Every public name of `noria.trt`: where it lives and which releases have it."""

from __future__ import annotations

from noria.trt.release import Span

_10 = Span(since=(10, 0))
_OLD = Span(removed=(10, 0))
_UNTIL_11 = Span(removed=(11, 0))

MODULES: dict[str, str] = {
    "noria.plugins": (
        "DataType DimensionOperation Dims DimsExprs DynamicPluginTensorDesc IDimensionExpr "
        "IExprBuilder IPluginCreator IPluginCreatorInterface IPluginCreatorV3One IPluginResource "
        "IPluginResourceContext IPluginV2 IPluginV2DynamicExt IPluginV2Ext IPluginV2IOExt "
        "IPluginV3 IPluginV3OneBuild IPluginV3OneBuildV2 IPluginV3OneCore IPluginV3OneRuntime "
        "PluginCapabilityType PluginField PluginFieldCollection PluginFieldType PluginTensorDesc "
        "TensorFormat TensorRTPhase get_plugin_registry"
    ),
    "noria.plugins.dims": "Dims2 Dims3 Dims4 DimsHW",
    "noria.plugins.types": "APILanguage",
    "noria.trt.api.dims": "Permutation",
    "noria.trt.api.enums": (
        "ActivationType AllocatorFlag AttentionIOForm AttentionNormalizationOp BoundingBoxFormat "
        "CalibrationAlgoType CausalMaskKind CollectiveOperation CumulativeOperation DeviceType "
        "ElementWiseOperation EngineCapability "
        "ErrorCode ErrorCodeTRT ExecutionContextAllocationStrategy FillOperation GatherMode "
        "HardwareCompatibilityLevel InterpolationMode KVCacheMode LayerInformationFormat "
        "LoopOutput MatrixOperation MemoryPoolType MoEActType OnnxParserFlag PaddingMode "
        "PoolingType ProfilingVerbosity "
        "QuantizationFlag ReduceOperation ResizeCoordinateTransformation ResizeRoundMode "
        "ResizeSelector RuntimePlatform SampleMode ScaleMode ScatterMode SerializationFlag "
        "TempfileControlFlag TensorIOMode TensorLocation TilingOptimizationLevel TopKOperation "
        "TripLimit UffInputOrder UnaryOperation WeightsRole"
    ),
    "noria.trt.layers": (
        "IActivationLayer IAssertionLayer IAttention IAttentionBoundaryLayer "
        "IAttentionInputLayer IAttentionOutputLayer ICastLayer IConcatenationLayer IConstantLayer "
        "IConvolutionLayer ICumulativeLayer IDeconvolutionLayer IDequantizeLayer "
        "IDistCollectiveLayer IDynamicQuantizeLayer IEinsumLayer "
        "IElementWiseLayer IFillLayer IFullyConnectedLayer IGatherLayer IGridSampleLayer "
        "IIdentityLayer IKVCacheUpdateLayer ILRNLayer ILayer IMoELayer IMatrixMultiplyLayer "
        "INMSLayer INonZeroLayer "
        "INormalizationLayer IOneHotLayer IPaddingLayer IParametricReLULayer IPoolingLayer "
        "IQuantizeLayer IRaggedSoftMaxLayer IReduceLayer IResizeLayer IReverseSequenceLayer "
        "IRotaryEmbeddingLayer IScaleLayer IScatterLayer ISelectLayer IShapeLayer IShuffleLayer "
        "ISliceLayer "
        "ISoftMaxLayer ISqueezeLayer ITopKLayer IUnaryLayer IUnsqueezeLayer"
    ),
    "noria.trt.api.legacy_parsers": "CaffeParser IBlobNameToTensor UffParser",
    "noria.trt.layers.loops": (
        "IConditionLayer IIfConditional IIfConditionalBoundaryLayer IIfConditionalInputLayer "
        "IIfConditionalOutputLayer IIteratorLayer ILoop ILoopBoundaryLayer ILoopOutputLayer "
        "IRecurrenceLayer ITripLimitLayer"
    ),
    "noria.trt.api.misc": (
        "IDebugListener IGpuAllocator IGpuAsyncAllocator IOutputAllocator IRuntimeConfig "
        "ISerializationConfig IStreamReader IStreamReaderV2 IStreamWriter"
    ),
    "noria.trt.api.progress": "IProfiler IProgressMonitor Profiler",
    "noria.trt.api.reporting": "IErrorRecorder ILogger Logger",
    "noria.trt.api.builder": "Builder",
    "noria.trt.api.calibrators": (
        "IInt8Calibrator IInt8EntropyCalibrator IInt8EntropyCalibrator2 IInt8LegacyCalibrator "
        "IInt8MinMaxCalibrator"
    ),
    "noria.trt.api.inspector": "EngineInspector",
    "noria.trt.api.refitter": "OnnxParserRefitter Refitter",
    "noria.trt.api.config": "IBuilderConfig",
    "noria.trt.api.context": "IExecutionContext",
    "noria.trt.api.engine": "ICudaEngine",
    "noria.trt.api.host_memory": "IHostMemory",
    "noria.trt.api.network": "INetworkDefinition",
    "noria.trt.api.onnx_parser": "OnnxParser get_nv_onnx_parser_version",
    "noria.trt.api.parser_errors": "ParserError",
    "noria.trt.api.plugin_layers": "IPluginLayer IPluginV2Layer IPluginV3Layer",
    "noria.trt.api.profile": "IOptimizationProfile",
    "noria.trt.api.runtime": "Runtime",
    "noria.trt.api.tensor": "ITensor",
    "noria.trt.api.timing": "ITimingCache",
    "noria.trt.api.types": "nptype volume",
    "noria.trt.api.weights": "Weights",
    "noria.trt.lowering.graph": "from_network",
}
"""Module -> names in it."""

SPANS: dict[str, Span] = {
    "IInt8Calibrator": _UNTIL_11,
    "IInt8EntropyCalibrator": _UNTIL_11,
    "IInt8EntropyCalibrator2": _UNTIL_11,
    "IInt8LegacyCalibrator": _UNTIL_11,
    "IInt8MinMaxCalibrator": _UNTIL_11,
    "OnnxParserRefitter": _10,
    "IFullyConnectedLayer": _OLD,
    "CaffeParser": _OLD,
    "IBlobNameToTensor": _OLD,
    "UffParser": _OLD,
    "UffInputOrder": _OLD,
    "AllocatorFlag": Span(since=(8, 0)),
    "AttentionIOForm": Span(since=(11, 0)),
    "AttentionNormalizationOp": Span(since=(10, 14)),
    "CausalMaskKind": Span(since=(11, 0)),
    "CollectiveOperation": Span(since=(10, 16)),
    "IAttention": Span(since=(10, 14)),
    "IAttentionBoundaryLayer": Span(since=(10, 14)),
    "IAttentionInputLayer": Span(since=(10, 14)),
    "IAttentionOutputLayer": Span(since=(10, 14)),
    "IDistCollectiveLayer": Span(since=(10, 16)),
    "IDynamicQuantizeLayer": Span(since=(10, 8)),
    "IKVCacheUpdateLayer": Span(since=(10, 15)),
    "IMoELayer": Span(since=(10, 16)),
    "IRotaryEmbeddingLayer": Span(since=(10, 15)),
    "KVCacheMode": Span(since=(10, 15)),
    "MoEActType": Span(since=(10, 16)),
    "CalibrationAlgoType": _UNTIL_11,
    "CumulativeOperation": Span(since=(10, 5)),
    "ExecutionContextAllocationStrategy": _10,
    "ICastLayer": Span(since=(8, 6)),
    "ICumulativeLayer": Span(since=(10, 5)),
    "IDebugListener": _10,
    "IGpuAsyncAllocator": _10,
    "INormalizationLayer": Span(since=(8, 6)),
    "IPluginCreatorV3One": _10,
    "IPluginCreatorInterface": _10,
    "IPluginResource": _10,
    "IPluginResourceContext": _10,
    "IPluginV3": _10,
    "IPluginV3Layer": _10,
    "IPluginV3OneBuild": _10,
    "IPluginV3OneBuildV2": Span(since=(10, 3)),
    "IPluginV3OneCore": _10,
    "IPluginV3OneRuntime": _10,
    "IProgressMonitor": _10,
    "IRuntimeConfig": Span(since=(10, 8)),
    "ISerializationConfig": _10,
    "ISqueezeLayer": Span(since=(10, 4)),
    "IUnsqueezeLayer": Span(since=(10, 4)),
    "IStreamReader": _10,
    "IStreamReaderV2": Span(since=(10, 7)),
    "IStreamWriter": Span(since=(10, 13)),
    "MemoryPoolType": Span(since=(8, 4)),
    "PluginCapabilityType": _10,
    "QuantizationFlag": _UNTIL_11,
    "RuntimePlatform": Span(since=(10, 3)),
    "SerializationFlag": _10,
    "ResizeMode": _OLD,
    "SliceMode": Span(removed=(10, 0)),
    "TensorRTPhase": _10,
    "TilingOptimizationLevel": Span(since=(10, 8)),
    "bfloat16": Span(since=(9, 0)),
    "fp4": Span(since=(10, 8)),
    "int4": _10,
    "int64": Span(since=(9, 0)),
}
"""Names that not every release has."""
