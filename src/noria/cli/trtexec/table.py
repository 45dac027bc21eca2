"""The options of trtexec: their values, and why some change nothing here.

Source: TensorRT facts 6.1.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Option:
    """One option.

    Attributes:
        takes: what stands behind `=`; empty for a switch.
        help: what it does here; empty: not listed in the help.
        without_effect: why it changes nothing; empty: it is acted on.
    """

    takes: str = ""
    help: str = ""
    without_effect: str = ""


_MEMORY = "runtimes on the CPU take memory as they need it"
_GPU = "it is about the GPU, here the CPU computes"
_DLA = "there is no DLA here, the CPU computes"
_TENSORRT = "it is about code that TensorRT generates; an engine of noria holds the model itself"
_TUNING = "tuning is set by --builderOptimizationLevel and --timingCacheFile"
_PROFILE = "an engine of noria has one profile"
_REFIT = "an engine of noria is not refitted: build it anew"
_FILES = "nothing is loaded from temporary files"
_NO_TYPE = "no CPU runtime computes in it: what stays in the graph decides"
_DEBUG = "tensors inside the graph are not kept"
_LAYERS = "--layerPrecisions says what a layer computes in, and its outputs follow"
_ROUTES = "there are no build routes to choose from"

OPTIONS: dict[str, Option] = {
    # model
    "onnx": Option("FILE", "ONNX model"),
    "deploy": Option("FILE", "Caffe network text (prototxt)"),
    "model": Option("FILE", "Caffe weights (caffemodel)"),
    "uff": Option("FILE", "UFF model"),
    "uffInput": Option("NAME,C,H,W", "input of a UFF model"),
    "uffNHWC": Option("", "the UFF model's input is height, width, channels"),
    "output": Option("NAME[,NAME]", "outputs of a Caffe or UFF model"),
    # build
    "saveEngine": Option("FILE", "keep the engine in FILE"),
    "loadEngine": Option("FILE", "run this engine; nothing is built"),
    "getPlanVersionOnly": Option("", "say what built the engine, and stop"),
    "skipInference": Option("", "build only"),
    "buildOnly": Option("", "the same"),
    "shapes": Option("NAME:1x3xHxW[,…]", "shapes to run with"),
    "minShapes": Option("SHAPES", "least shapes; first axis: least batch"),
    "optShapes": Option("SHAPES", "shapes to build for"),
    "maxShapes": Option("SHAPES", "greatest shapes; first axis: greatest batch"),
    "maxBatch": Option("N", "greatest batch of a Caffe or UFF model (1)"),
    "batch": Option("N", "batch to run a Caffe or UFF model with (1)"),
    "explicitBatch": Option(),
    "fp16": Option("", "allow FP16"),
    "bf16": Option("", "allow BF16"),
    "int8": Option("", "allow INT8"),
    "best": Option("", "allow every precision"),
    "noTF32": Option("", "", "FP32 is always FP32 here"),
    "stronglyTyped": Option("", "types are those of the graph (they always are here)"),
    "calib": Option("FILE", "INT8 calibration table"),
    "layerPrecisions": Option("NAME:fp32|fp16|int8[,…]", "what single layers compute in"),
    "precisionConstraints": Option("none|prefer|obey", "none: --layerPrecisions is left out"),
    "outputIOFormats": Option("fp32|fp16|int32|int8:chw[,…]", "types of the outputs, in order"),
    "plugins": Option("FILE", "library with plugins; may be repeated"),
    "staticPlugins": Option("FILE", "the same"),
    "dynamicPlugins": Option("FILE", "the same"),
    "timingCacheFile": Option("FILE", "tune, and keep the times in FILE"),
    "builderOptimizationLevel": Option("0-5", "tune for 0, 5, 10, 20, 60 or 180 s (default: 0 s)"),
    "noBuilderCache": Option("", "tune without the times known already"),
    "backend": Option("NAME", "runtime to build for (noria's own option)"),
    # inference
    "iterations": Option("N", "run at least N times (10)"),
    "warmUp": Option("MS", "run before measuring, in ms (200)"),
    "duration": Option("S", "measure at least so many seconds (3)"),
    "sleepTime": Option("MS", "wait between handing over and computing (0)"),
    "idleTime": Option("MS", "wait between two runs (0)"),
    "infStreams": Option("N", "runs at the same time (1)"),
    "streams": Option("N", "the same"),
    "loadInputs": Option("NAME:FILE[,…]", "raw values of inputs; others are random"),
    "noDataTransfers": Option("", "leave out the copies of inputs and outputs"),
    "useSpinWait": Option("", "idle threads of the runtime wait busily"),
    "separateProfileRun": Option("", "accepted: layers are always timed in a run of their own"),
    "cpuThreads": Option("N", "threads of one run (noria's own option; default: all cores)"),
    # reports
    "avgRuns": Option("N", "runs per line of averages (10)"),
    "percentile": Option("P[,P]", "percentiles to report (90,95,99)"),
    "dumpProfile": Option("", "print the time of each layer"),
    "exportProfile": Option("FILE", "the same as JSON"),
    "exportTimes": Option("FILE", "times of each run as JSON"),
    "dumpOutput": Option("", "print the outputs"),
    "exportOutput": Option("FILE", "the same as JSON"),
    "dumpLayerInfo": Option("", "print the layers"),
    "exportLayerInfo": Option("FILE", "the same as JSON"),
    "profilingVerbosity": Option("layer_names_only|detailed|none", "detail of the layers"),
    "verbose": Option("", "say more"),
    "help": Option("", "print this"),
    "h": Option(),
}


def _without_effect(reason: str, **names: str) -> None:
    OPTIONS.update({n: Option(takes, without_effect=reason) for n, takes in names.items()})


_without_effect(_MEMORY, workspace="MiB", memPoolSize="SPEC", allocationStrategy="KIND")
_without_effect(
    _GPU,
    device="N", useCudaGraph="", noCudaGraph="", exposeDMA="", useManagedMemory="",
    sparsity="KIND", maxAuxStreams="N", persistentCacheRatio="R", nvtxVerbosity="KIND",
    hardwareCompatibilityLevel="KIND", tilingOptimizationLevel="N", l2LimitForTiling="N",
    computeCapabilities="LIST", cudaGraphStrategy="KIND",
)  # fmt: skip
_without_effect(_DLA, useDLACore="N", allowGPUFallback="", buildDLAStandalone="")
_without_effect(
    _TENSORRT,
    versionCompatible="", vc="", excludeLeanRuntime="", leanDLLPath="FILE", useRuntime="KIND",
    tacticSources="LIST", preview="LIST", restricted="", directIO="", safe="", consistency="",
    std="", runtimePlatform="KIND", setPluginsToSerialize="FILE", ignoreParsedPluginLibs="",
    enablePluginOverride="", pi="", pluginInstanceNorm="", uint8AsymmetricQuantizationDLA="",
    profile="", warmStart="", remoteAutoTuningConfig="SPEC", safetyPlugins="FILE",
    nativeInstanceNorm="", markUnfusedTensorsAsDebugTensors="",
)  # fmt: skip
_without_effect(
    _TUNING,
    minTiming="N", avgTiming="N", heuristic="", noCompilationCache="", errorOnTimingCacheMiss="",
    timingCacheMode="KIND", disableTimingCache="", useTimingCache="", tuningCacheFile="FILE",
)  # fmt: skip
_without_effect(_PROFILE, useProfile="N", calibProfile="N", optProfile="N")
_without_effect(
    _REFIT,
    refit="", stripWeights="", stripAllWeights="", refitFromOnnx="FILE", timeRefit="",
    dumpRefit="", allowWeightStreaming="", weightStreamingBudget="N", getWeights="",
)  # fmt: skip
_without_effect(_FILES, tempdir="DIR", tempfileControls="SPEC", asyncFileReader="")
_without_effect(_NO_TYPE, fp8="", int4="")
_without_effect(_DEBUG, markDebug="LIST", saveDebugTensors="SPEC", saveAllDebugTensors="SPEC",
                dumpAlternativeFormats="")  # fmt: skip
_without_effect(_LAYERS, layerOutputTypes="SPEC", decomposableAttentions="SPEC")
_without_effect(_DLA, layerDeviceTypes="SPEC")
_without_effect(_ROUTES, tuneBuildRoutes="", setBuildRoute="SPEC", tuneBuildRouteFile="FILE")
_without_effect("the copies are always made", includeDataTransfers="")
_without_effect("threads wait without spinning anyway", noSpinWait="")
_without_effect("each stream has a thread of its own", threads="")
_without_effect("it is said in the report", timeDeserialize="", monitorMemory="")
_without_effect("outputs are not compared", atol="X", rtol="X", loadRefOutputs="SPEC",
                accuracyAlgorithm="KIND")  # fmt: skip
_without_effect("inputs have the types and the layout of the graph", inputIOFormats="SPEC")
_without_effect("tables come from noria calibrate", calibShapes="SPEC", minShapesCalib="SPEC",
                optShapesCalib="SPEC", maxShapesCalib="SPEC")  # fmt: skip
_without_effect("it dumps binding values to files of TensorRT's own naming: use --exportOutput",
                dumpRawBindingsToFile="")  # fmt: skip
