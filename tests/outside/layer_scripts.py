"""Scripts of single layers with logs recorded on TensorRT: `headrace exec` must print the same.

    python -m tests.outside.layer_scripts FOLDER [--layer NAME] [--report FILE]

FOLDER has the checkouts `TensorRT` (NVIDIA/TensorRT, for tools/Polygraphy) and
`trt-samples-for-hackathon-cn` (NVIDIA's, for its cookbook), at commit 9a88e268: the next one does
not compile. The environment variable HEADRACE_OUTSIDE_PYTHON names a Python that has headrace,
PyTorch for the CPU, nvtx, onnxruntime and onnx_graphsurgeon; by default it is this one.

Scripts that draw random numbers get those of the record as inputs, so that results can be compared.

A case is what a script prints for one function: names, types, shapes and values of inputs and
outputs, and the layer's public members. Numbers are equal within 1e-3 of the larger.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

PYTHON = os.environ.get("HEADRACE_OUTSIDE_PYTHON", sys.executable)
LAYERS = "trt-samples-for-hackathon-cn/cookbook/02-API/Layer"
POLYGRAPHY = "TensorRT/tools/Polygraphy"
RELEASE = "10.16"
TOLERANCE = 1e-3  # some scripts compute in FP16
TIMEOUT_S = 300

_DEPTH = "a kernel of two axes over three: TensorRT makes the third of the number of weights"
_LANGUAGE = "refused by name: a layer of language models"
CAUSES: Mapping[str, str] = {
    r"^Fill/case_random": "the results are random numbers",
    r"^TopK/case_shape_input": "the other axes of a top-k with K from an input are -1, too",
    r"^TopK/(case_dds|members)": (
        "a K computed from an input of any length needs a profile of its values; the script ends"
    ),
    r"^Assertion/case_runtime": "an assertion on values known only in a run is not checked",
    r"^Cast/case_int8": "implicit INT8: the cast scales by the dynamic range of its tensors",
    r"^RaggedSoftMax": "TensorRT counts elements behind the row where a length is larger than it",
    r"^(Shuffle|Slice)/case_shape_input": (
        "an axis that the profile's shape values fix is -1 in the engine's shape"
    ),
    r"^(Attention|KVCache|MoE|Rotary)": _LANGUAGE,
    r"^DistCollective": "refused by name: several devices; the script needs nccl",
    r"^DynamicQuantize": "FP8 and FP4 in blocks are not computed",
    r"^Constant/case_datatype_int4": "INT4 constants from an address are not read",
    r"^(C|Dec)onvolution/case_3d": _DEPTH,
    r"^(C|Dec)onvolution/": f"the script ends before, at case_3d: {_DEPTH}",
}
"""Pattern of `Layer/case` -> why it differs or does not finish, in order."""

_INPUT = re.compile(r"^Input ->[^,]*, .*, \((.*)\), (.*)$")
_RUNNER = """
import json, sys
import numpy as np
import tensorrt_cookbook as cookbook

recorded = iter(json.load(open(sys.argv[1])))
kinds = [k for k in vars(cookbook).values() if isinstance(k, type) and "setup" in vars(k)]


def replaced(real):
    def setup(self, data=None, **more):
        for name, values in next(recorded, {}).items():
            given = (data or {}).get(name)
            if given is not None and np.size(given) == len(values):
                data[name] = np.array(values).astype(given.dtype).reshape(np.shape(given))
        return real(self, data, **more)

    return setup


for kind in kinds:
    kind.setup = replaced(vars(kind)["setup"])
sys.argv = sys.argv[2:]
path = sys.argv[0]
exec(compile(open(path).read(), path, "exec"), {"__name__": "__main__", "__file__": path})
"""
"""Runs a script whose inputs are those of a record."""

_START, _END = re.compile(r"^=+ Start \[(\w+),(.*)\]$"), re.compile(r"^=+ End +\[(\w+)\]$")
_NOISE = re.compile(r"^\[\d\d/\d\d/\d{4}-|^\[TensorRT-Cookbook\]|^=+ Public members of ")
_MEMBERS, _MEMBER = re.compile(r"^Members of [\w.]*?(\w+):$"), re.compile(r"^ *-?\d+ -> ")
_WORDS = re.compile(r"[^\s\[\](),]+")
_NUMBER = re.compile(r"-?(\d[\d.]*(e[+-]?\d+)?|inf|nan)$")


@dataclass(frozen=True)
class Scripts:
    """The cases of all scripts.

    Attributes:
        equal: names of cases.
        different: name -> the first words that differ.
        unfinished: name -> the last line of the script's error.
    """

    equal: list[str] = field(default_factory=list)
    different: dict[str, str] = field(default_factory=dict)
    unfinished: dict[str, str] = field(default_factory=dict)

    def unexplained(self) -> list[str]:
        """Cases that are not equal, and no cause of it is known."""
        return [name for name in (*self.different, *self.unfinished) if not cause(name)]


def cause(name: str) -> str:
    """Return why a case is not equal, empty if that is not known."""
    return next((why for pattern, why in CAUSES.items() if re.search(pattern, name)), "")


def cases(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield name and words of each case that ended, and of the members of each enum."""
    name, lines, members = "", list[str](), dict[str, list[str]]()
    enum: list[str] | None = None
    for line in text.splitlines():
        if found := _MEMBERS.match(line):
            enum = members.setdefault(found[1], [])
        elif enum is not None and _MEMBER.match(line):
            enum += _WORDS.findall(line)
        elif found := _START.match(line):
            name, lines = found[1] + (found[2] if found[2] != "(),{}" else ""), []
        elif _END.match(line):
            yield name, _WORDS.findall("\n".join(lines))
        elif not _NOISE.search(line):
            lines.append(line)
    yield from ((f"members of {name}", words) for name, words in members.items())


def inputs(text: str) -> list[dict[str, list[float]]]:
    """Read the values of the inputs of each set-up that a log shows, by name."""
    found: list[dict[str, list[float]]] = []
    wanted: dict[str, list[float]] = {}
    fresh, values = True, list[float]()
    for line in text.splitlines():
        if line.startswith(("Input ->", "Output->")):
            if fresh:
                found.append(wanted := {})
            fresh, values = False, []
            if shown := _INPUT.match(line):
                wanted[shown[2]] = []
            continue
        fresh = True
        if line in wanted:
            values = wanted[line]
        elif line.startswith(("[", " ")) and not _NOISE.search(line):
            values += [float(w) for w in _WORDS.findall(line) if _NUMBER.match(w)]
        elif line:
            values = []
    return found


def difference(ours: Sequence[str], recorded: Sequence[str]) -> str:
    """Return the first words that differ, empty if none does."""
    for place, (mine, theirs) in enumerate(zip_longest(ours, recorded, fillvalue="(nothing)")):
        if not _same(mine, theirs):
            return f"{' '.join(recorded[max(0, place - 3) : place])}: {mine} for {theirs}"
    return ""


def _same(mine: str, theirs: str) -> bool:
    if mine == theirs or (mine.startswith("0x") and theirs.startswith("0x")):
        return True
    try:
        a, b = float(mine), float(theirs)
    except ValueError:
        return False
    return abs(a - b) <= TOLERANCE * max(1.0, abs(a), abs(b))


def run_scripts(folder: Path, only: Sequence[str] = ()) -> Scripts:
    """Run the script of each layer in a scratch folder, and compare with its log."""
    found = Scripts()
    for script in sorted((folder / LAYERS).glob("*/main.py")):
        log = script.with_name("log-main.py.log")
        if not log.is_file() or (only and script.parent.name not in only):
            continue
        recorded = dict(cases(log.read_text(errors="replace")))
        printed, error = _run(script, folder, inputs(log.read_text(errors="replace")))
        ours = dict(cases(printed))
        for case, words in recorded.items():
            name = f"{script.parent.name}/{case}"
            if case not in ours:
                found.unfinished[name] = error
            elif differs := difference(ours[case], words):
                found.different[name] = differs
            else:
                found.equal.append(name)
    return found


def _run(script: Path, folder: Path, given: Any) -> tuple[str, str]:
    paths = [folder / LAYERS.removesuffix("/02-API/Layer"), folder / POLYGRAPHY]
    with tempfile.TemporaryDirectory(prefix="headrace-outside-") as scratch:
        runner, record = Path(scratch, "runner.py"), Path(scratch, "inputs.json")
        runner.write_text(_RUNNER)
        record.write_text(json.dumps(given))
        environment = {
            **os.environ,
            "HOME": scratch,
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "TRT_COOKBOOK_PATH": str(paths[0]),
        }
        done = subprocess.run(
            [PYTHON, "-m", "headrace", "exec", "--trt-version", RELEASE,
             str(runner), str(record), str(script)],
            cwd=scratch, env=environment, check=False, timeout=TIMEOUT_S,
            capture_output=True, text=True, errors="replace",
        )  # fmt: skip
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    return done.stdout, (lines[-1] if lines else f"exit code {done.returncode}")[:300]


def table(found: Scripts) -> str:
    """Write the results as Markdown: numbers, and a line for each case that is not equal."""
    lines = ["| equal | different | not finished |", "|---:|---:|---:|"]
    lines.append(f"| {len(found.equal)} | {len(found.different)} | {len(found.unfinished)} |")
    lines += ["", "| case | cause | seen |", "|---|---|---|"]
    for name, seen in (*found.different.items(), *found.unfinished.items()):
        lines.append(f"| {name} | {cause(name) or 'unexplained'} | {seen.replace('|', '/')} |")
    return "\n".join(lines) + "\n"


def main(words: Sequence[str] | None = None) -> None:
    """Run the scripts and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--layer", action="append", default=[])
    parser.add_argument("--report", type=Path)
    options = parser.parse_args(words)
    text = table(run_scripts(options.folder.resolve(), options.layer))
    if options.report:
        options.report.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
