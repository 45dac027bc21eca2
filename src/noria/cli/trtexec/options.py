"""The command line of trtexec, read as trtexec reads it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from noria.cli.trtexec.table import OPTIONS

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


def _numbers(options: Options) -> None:
    options.iterations = int(_number(options, "iterations", options.iterations, whole=True))
    options.warm_up_ms = _number(options, "warmUp", options.warm_up_ms)
    options.duration_s = _number(options, "duration", options.duration_s)
    options.sleep_ms = _number(options, "sleepTime", options.sleep_ms)
    options.idle_ms = _number(options, "idleTime", options.idle_ms)
    options.avg_runs = int(_number(options, "avgRuns", options.avg_runs, least=1, whole=True))
    for name in ("streams", "infStreams"):
        options.streams = int(_number(options, name, options.streams, least=1, most=64, whole=True))
    if options.has("cpuThreads"):
        options.threads = int(_number(options, "cpuThreads", 1, least=1, most=1024, whole=True))
    if options.has("batch"):
        options.batch = int(_number(options, "batch", 1, least=1, most=1024, whole=True))
    if options.has("maxBatch"):
        options.max_batch = int(_number(options, "maxBatch", 1, least=1, most=1024, whole=True))
    if options.has("builderOptimizationLevel"):
        options.level = int(_number(options, "builderOptimizationLevel", 3, most=5, whole=True))
    if options.has("percentile"):
        options.percentiles = tuple(p for p in options.text("percentile").split(",") if p)
        for text in options.percentiles:
            if not _is_number(text) or not 0 <= float(text) <= 100:
                raise CommandLineError(f"--percentile={text}: expected 0 to 100")


def _number(
    options: Options,
    name: str,
    default: float,
    *,
    least: float = 0,
    most: float = 1e9,
    whole: bool = False,
) -> float:
    if not options.has(name):
        return default
    text = options.text(name)
    if not _is_number(text) or not least <= float(text) <= most or (whole and "." in text):
        kind = "a whole number" if whole else "a number"
        raise CommandLineError(f"--{name}={text}: expected {kind} from {least:g} to {most:g}")
    return float(text)


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
