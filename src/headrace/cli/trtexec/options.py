"""The command line of trtexec, read as trtexec reads it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

Shapes = dict[str, tuple[int, ...]]

_CHOICES = {
    "precisionConstraints": ("none", "prefer", "obey"),
    "profilingVerbosity": ("layer_names_only", "detailed", "none", "default", "verbose"),
}
_MODELS = ("onnx", "uff", "deploy", "loadEngine")


class CommandLineError(Exception):
    """A mistake in the command line; the help text belongs to it."""


@dataclass(slots=True)
class Options:
    """Options of a command line, named alike; times in the options' own units.

    Attributes:
        given: option -> values, as they stood on the command line.
        without_effect: option -> why it changes nothing here.
    """

    given: dict[str, list[str]] = field(default_factory=dict)
    without_effect: dict[str, str] = field(default_factory=dict)
    shapes: Shapes = field(default_factory=dict)
    min_shapes: Shapes = field(default_factory=dict)
    opt_shapes: Shapes = field(default_factory=dict)
    max_shapes: Shapes = field(default_factory=dict)
    iterations: int = 10
    warm_up_ms: float = 200.0
    duration_s: float = 3.0
    sleep_ms: float = 0.0
    idle_ms: float = 0.0
    avg_runs: int = 10
    percentiles: tuple[str, ...] = ("90", "95", "99")
    streams: int = 1
    threads: int | None = None
    batch: int | None = None
    max_batch: int | None = None
    level: int | None = None
    inputs: dict[str, Path] = field(default_factory=dict)

    def has(self, name: str) -> bool:
        """Whether the switch `name` was given."""
        return name in self.given

    def text(self, name: str) -> str:
        """The last value of `name`; empty if it was not given."""
        return self.given.get(name, [""])[-1]

    def path(self, name: str) -> Path | None:
        """The last value of `name` as a path."""
        text = self.text(name)
        return Path(text) if text else None

    @property
    def libraries(self) -> list[Path]:
        """Plugin libraries, in the order given."""
        names = ("plugins", "staticPlugins", "dynamicPlugins")
        return [Path(v) for name in names for v in self.given.get(name, [])]

    @property
    def skip_inference(self) -> bool:
        """True if nothing is run."""
        return self.has("skipInference") or self.has("buildOnly")

    @property
    def refittable(self) -> bool:
        """True if the engine's weights can be replaced later."""
        return self.has("refit") or self.has("stripAllWeights")


def parse(words: Sequence[str]) -> Options:
    """Read a command line: `--option=value` and `--option` alone.

    Raises:
        CommandLineError: an option that trtexec does not know (a value behind a space counts as
            one), one without its value, or a value that is none.
    """
    options = Options()
    for word in words:
        name, equals, value = word.partition("=")
        key = name[2:] if name.startswith("--") else name[1:] if name == "-h" else ""
        known = OPTIONS.get(key)
        if known is None:
            raise CommandLineError(f"Unknown option: {name} {value}")
        if known.takes and (not equals or not value):
            raise CommandLineError(f"{name} needs a value: {name}={known.takes}")
        options.given.setdefault(key, []).append(value)
        if known.without_effect:
            options.without_effect[word] = known.without_effect
    if len(models := [f"--{key}" for key in _MODELS if key in options.given]) > 1:
        raise CommandLineError(f"{' and '.join(models)} are given: expected one model or engine")
    _numbers(options)
    for key, choices in _CHOICES.items():
        if options.has(key) and options.text(key) not in choices:
            raise CommandLineError(f"--{key}={options.text(key)}: expected {', '.join(choices)}")
    options.shapes = _shapes(options, "shapes")
    options.min_shapes = _shapes(options, "minShapes")
    options.opt_shapes = _shapes(options, "optShapes")
    options.max_shapes = _shapes(options, "maxShapes")
    for part in options.text("loadInputs").split(","):
        if part:
            name, colon, file = part.partition(":")
            if not colon or not name or not file:
                raise CommandLineError(f"--loadInputs={part}: expected NAME:FILE")
            options.inputs[name.strip("'")] = Path(file)
    return options


_NUMBERS = {
    "iterations": ("iterations", int, 0, 1e9),
    "warmUp": ("warm_up_ms", float, 0, 1e9),
    "duration": ("duration_s", float, 0, 1e9),
    "sleepTime": ("sleep_ms", float, 0, 1e9),
    "idleTime": ("idle_ms", float, 0, 1e9),
    "avgRuns": ("avg_runs", int, 1, 1e9),
    "streams": ("streams", int, 1, 64),
    "infStreams": ("streams", int, 1, 64),
    "cpuThreads": ("threads", int, 1, 1024),
    "batch": ("batch", int, 1, 1024),
    "maxBatch": ("max_batch", int, 1, 1024),
    "builderOptimizationLevel": ("level", int, 0, 5),
}
"""Option -> attribute of `Options`, type, least and greatest value."""


def _numbers(options: Options) -> None:
    for name, (attribute, kind, least, most) in _NUMBERS.items():
        if not options.has(name):
            continue
        text, whole = options.text(name), kind is int
        if not _is_number(text) or not least <= float(text) <= most or (whole and "." in text):
            form = "a whole number" if whole else "a number"
            raise CommandLineError(f"--{name}={text}: expected {form} from {least:g} to {most:g}")
        setattr(options, attribute, kind(float(text)))
    if options.has("percentile"):
        options.percentiles = tuple(p for p in options.text("percentile").split(",") if p)
        for text in options.percentiles:
            if not _is_number(text) or not 0 <= float(text) <= 100:
                raise CommandLineError(f"--percentile={text}: expected 0 to 100")


def _is_number(text: str) -> bool:
    if not text.isascii() or "_" in text:  # Python would read them as numbers
        return False
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _shapes(options: Options, name: str) -> Shapes:
    if not options.has(name):
        return {}
    try:
        return parse_shapes(options.text(name))
    except ValueError as error:
        raise CommandLineError(f"--{name}: {error}") from None


def parse_shapes(text: str) -> Shapes:
    """`name:1x3x640x640,other:1x2` as a mapping. Names may have colons, and stand in quotes.

    A shape without a name is that of every input, under the name ''.

    Raises:
        ValueError: a part that is not of this form.
    """
    shapes: Shapes = {}
    for part in text.split(","):
        name, _, dims = part.rpartition(":")
        numbers = dims.split("x") if dims != "scalar" else []
        if not all(n.isascii() and n.isdigit() and len(n) < 10 for n in numbers):
            raise ValueError(f"{part!r}: expected NAME:1x3x640x640")
        shapes[name.strip("'\"")] = tuple(map(int, numbers))
    return shapes


def help_text() -> str:
    """All options that do something."""
    rows = [
        (f"--{name}" + (f"={o.takes}" if o.takes else ""), o.help)
        for name, o in OPTIONS.items()
        if o.help
    ]
    width = max(len(left) for left, _ in rows)
    lines = ["=== Options ===", *(f"  {left:<{width}}  {right}" for left, right in rows)]
    lines += ["", "trtexec's other options are accepted; those without effect are named."]
    return "\n".join(lines)


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
_TENSORRT = "it is about code that TensorRT generates; an engine of headrace holds the model itself"
_TUNING = "tuning is set by --builderOptimizationLevel and --timingCacheFile"
_PROFILE = "an engine of headrace has one profile"
_STRIP = "an engine of headrace holds the model with its weights"
_REFIT = "trtexec refits no engine here: headrace.trt.Refitter does, with --refit"
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
    "refit": Option("", "let the engine's weights be replaced later"),
    "stripAllWeights": Option("", "the same; the weights stay in the engine"),
    "fp16": Option("", "allow FP16"),
    "bf16": Option("", "allow BF16"),
    "int8": Option("", "allow INT8"),
    "best": Option("", "allow every precision"),
    "noTF32": Option("", "", "FP32 is always FP32 here"),
    "stronglyTyped": Option("", "types are those of the graph (they always are here)"),
    "calib": Option("FILE", "INT8 calibration table"),
    "layerPrecisions": Option(
        "NAME:fp32|fp16|int8[,…]", "what layers compute in; NAME may have *, * alone is the rest"
    ),
    "precisionConstraints": Option("none|prefer|obey", "none: --layerPrecisions is left out"),
    "outputIOFormats": Option("fp32|fp16|int32|int8:chw[,…]", "types of the outputs, in order"),
    "plugins": Option("FILE", "library with plugins; may be repeated"),
    "staticPlugins": Option("FILE", "the same"),
    "dynamicPlugins": Option("FILE", "the same"),
    "timingCacheFile": Option("FILE", "tune, and keep the times in FILE"),
    "builderOptimizationLevel": Option("0-5", "tune for 0, 5, 10, 20, 60 or 180 s (default: 0 s)"),
    "noBuilderCache": Option("", "tune without the times known already"),
    "backend": Option("NAME", "runtime to build for (headrace's own option)"),
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
    "cpuThreads": Option("N", "threads of one run (headrace's own option; default: all cores)"),
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
_without_effect(
    _DLA,
    useDLACore="N", allowGPUFallback="", buildDLAStandalone="", adjustForDLA="",
    reportCapabilityDLA="",
)  # fmt: skip
_without_effect(
    _TENSORRT,
    versionCompatible="", vc="", excludeLeanRuntime="", leanDLLPath="FILE", useRuntime="KIND",
    tacticSources="LIST", preview="LIST", restricted="", directIO="", safe="", consistency="",
    cpuOnly="", dumpKernelText="", distributiveIndependence="", std="", runtimePlatform="KIND",
    ignoreParsedPluginLibs="",
    enablePluginOverride="", pi="", pluginInstanceNorm="", uint8AsymmetricQuantizationDLA="",
    profile="", warmStart="", remoteAutoTuningConfig="SPEC", safetyPlugins="FILE",
    nativeInstanceNorm="", markUnfusedTensorsAsDebugTensors="",
)  # fmt: skip
_without_effect(
    "an engine of headrace holds no code: give the library with --plugins= wherever the engine is "
    "loaded",
    setPluginsToSerialize="FILE",
)
_without_effect(
    _TUNING,
    minTiming="N", avgTiming="N", heuristic="", noCompilationCache="", errorOnTimingCacheMiss="",
    timingCacheMode="KIND", disableTimingCache="", useTimingCache="", tuningCacheFile="FILE",
    maxTactics="N",
)  # fmt: skip
_without_effect(_PROFILE, useProfile="N", calibProfile="N", optProfile="N")
_without_effect(
    _REFIT,
    refitFromOnnx="FILE", timeRefit="", dumpRefit="", getWeights="",
)  # fmt: skip
_without_effect(
    _STRIP,
    stripWeights="", weightless="", allowWeightStreaming="", weightStreamingBudget="N",
)  # fmt: skip
_without_effect(_FILES, tempdir="DIR", tempfileControls="SPEC", asyncFileReader="")
_without_effect(_NO_TYPE, fp8="", int4="")
_without_effect(_DEBUG, markDebug="LIST", saveDebugTensors="SPEC", saveAllDebugTensors="SPEC",
                dumpAlternativeFormats="")  # fmt: skip
_without_effect(_LAYERS, layerOutputTypes="SPEC", decomposableAttentions="SPEC")
_without_effect(_DLA, layerDeviceTypes="SPEC")
_without_effect(
    _ROUTES,
    tuneBuildRoutes="", setBuildRoute="SPEC", tuneBuildRouteFile="FILE", helpBuildRoute="",
    tuningSearch="KIND", tuningTimeOut="S", tuningResultFile="FILE", dryRun="", saveAllEngines="",
    **{"continue": ""},
)  # fmt: skip
_without_effect("the copies are always made", includeDataTransfers="")
_without_effect("threads wait without spinning anyway", noSpinWait="")
_without_effect("each stream has a thread of its own", threads="")
_without_effect("it is said in the report", timeDeserialize="", monitorMemory="")
_without_effect("outputs are not compared", atol="X", rtol="X", loadRefOutputs="SPEC",
                accuracyAlgorithm="KIND", accuracyThreshold="X", refPair="N")  # fmt: skip
_without_effect("inputs have the types and the layout of the graph", inputIOFormats="SPEC")
_without_effect("tables come from headrace calibrate", calibShapes="SPEC", minShapesCalib="SPEC",
                optShapesCalib="SPEC", maxShapesCalib="SPEC")  # fmt: skip
_without_effect("it dumps binding values to files of TensorRT's own naming: use --exportOutput",
                dumpRawBindingsToFile="")  # fmt: skip
