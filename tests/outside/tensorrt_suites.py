"""Published test suites for TensorRT in Python, run on `headrace.trt` in their own environment.

    python -m tests.outside.tensorrt_suites FOLDER [--suite NAME] [--report FILE]

FOLDER has the checkouts `TensorRT` (NVIDIA/TensorRT, for tools/Polygraphy) and `torch2trt`. The
environment variable HEADRACE_OUTSIDE_PYTHON names a Python that has headrace, PyTorch for the CPU
and what the suites import (pytest 8, pytest-timeout, pytest-console-scripts, pytest-virtualenv,
pytest-rerunfailures, onnx_graphsurgeon, onnxconverter_common, onnxmltools, onnxscript, colored, and
a torchvision, which one file imports and does not use); by default it is this one.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

BOOT = Path(__file__).parent
PYTHON = os.environ.get("HEADRACE_OUTSIDE_PYTHON", sys.executable)
TIMEOUT_S = 3600


@dataclass(frozen=True)
class Suite:
    """A suite and the causes of what cannot pass.

    Attributes:
        folder: in the folder of checkouts.
        release: the one that is looked like.
        paths: of its tests.
        causes: pattern of a test's name -> why it fails, in order.
        share: of the tests that need no GPU and are no faults of the suite, those that must pass.
    """

    folder: str
    release: str
    paths: tuple[str, ...]
    causes: Mapping[str, str] = field(default_factory=dict)
    share: float = 0.95


_GPU = "needs a GPU"
_OWN = "its own fault, on TensorRT too: "
_PACKAGES = "needs a package of its own, or an older one"
_POLYGRAPHY = {
    r"lean_runtime|custom_runtime": "loads TensorRT's own lean runtime",
    r"onnx.*(external_data|size_threshold|ConvertToFp16)|fp_to_fp16": _PACKAGES,
    r"warn_if_impl|check_called_by": "reads output that pytest has taken, with any runtime",
    r"chw_format": "formats other than linear are not computed",
    r"torch_tensors\[c|test_array": _GPU,
    r"LayerType\.(ATTENTION|ROTARY|KV|MOE|DIST|RNN)": "the layer is refused by name",
    r"E8M0": "Polygraphy does not know the type",
    r"types_supported\[DataType": "DataType has the members of every release",
    r"tensor_attr\]$": "a string constant, which the tool cannot show",
    r"TestDecoder::test_names": "depends on the modules that tests before it imported",
    r"test_capability\[": "expects the words of TensorRT's ONNX parser",
    r"show_tactics|unfused_debug": "counts TensorRT's own layers: a broadcast is one",
    r"weight_reconstruct.*bf16": "NumPy has no buffers of the BF16 that onnx gives it",
    r"test_dynamic_input_shape": "the tool's data leave the profile that it made of a -1",
}
_TORCH2TRT = {
    r"test_iadd|Tensor.__i\w+__": _OWN + "the model changes its own input between both runs",
    r"conv_transpose\[.-3-1-1-2-": _OWN + "the converter leaves the dilation out",
    r"floordiv_scalar": _OWN + "the converter rounds to 0; PyTorch rounds down since 1.13",
    r"log_softmax": _OWN + "the converter names no axis: axis 0 has one element",
    r"narrow\[-1": _OWN + "a slice from -1 leaves the tensor",
    r"test_pad\[pad0": _OWN + "the converter wants two axes",
    r"test_pad\[pad": _OWN + "add_padding left with 10.0",
    r"test_contiguous|folder_dataset": _GPU,  # its allocator keeps what PyTorch has freed
    r"dataset_calibrator": "compares INT8 with FP32 to 0.001, which no INT8 engine meets",
    r"conv2d_onnx": _OWN + "PyTorch's exporter refuses its dynamic axes since 2.9",
}
SUITES = {
    f"polygraphy {release}": Suite(
        "TensorRT/tools/Polygraphy", release,
        ("tests/backend", "tests/comparator", "tests/util", "tests/common", "tests/func"),
        _POLYGRAPHY,
    )
    for release in ("8.6", "10.13")
} | {
    "polygraphy tools 10.13": Suite(
        "TensorRT/tools/Polygraphy", "10.13", ("tests/tools",), _POLYGRAPHY
    ),
    "torch2trt 10.13": Suite(
        "torch2trt", "10.13", ("tests/converter_tests", "tests/feature_tests"), _TORCH2TRT, 0.98
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """The result of a suite.

    Attributes:
        passed: how many tests.
        failed: name of a test -> its last line of error.
        skipped: how many tests.
    """

    passed: int
    failed: dict[str, str]
    skipped: int

    def causes(self, suite: Suite) -> Counter[str]:
        """Count the failures by cause; a failure without one has its own message."""
        found: Counter[str] = Counter()
        for name, message in self.failed.items():
            known = (cause for pattern, cause in suite.causes.items() if re.search(pattern, name))
            found[next(known, f"unexplained: {name}: {message}")] += 1
        return found

    def share(self, suite: Suite) -> float:
        """Share of tests that pass, without those that need a GPU and the suite's own faults."""
        apart = sum(n for why, n in self.causes(suite).items() if why.startswith((_GPU, _OWN)))
        return self.passed / max(1, self.passed + len(self.failed) - apart)


def run_suite(suite: Suite, checkout: Path) -> Outcome:
    """Copy a suite and run it, with `tensorrt` and a PyTorch whose GPU is the host.

    Programs that it starts find the same by `sitecustomize`.
    """
    with tempfile.TemporaryDirectory(prefix="headrace-outside-") as scratch:
        copy = Path(scratch, "suite")
        shutil.copytree(checkout, copy, symlinks=True)
        # In the suite's own folder: a test of Polygraphy sets PYTHONPATH to it, for all behind it.
        (copy / "sitecustomize.py").write_text("import host_torch\n")
        shutil.copy(BOOT / "host_torch.py", copy)
        report = Path(scratch, "report.xml")
        environment = {
            **os.environ,
            "HEADRACE_TRT_VERSION": suite.release,
            "HOME": scratch,
            "POLYGRAPHY_INTERNAL_CORRECTNESS_CHECKS": "1",
            "PYTHONPATH": str(copy),
            "PATH": os.pathsep.join(
                [str(Path(PYTHON).parent), str(copy / "bin"), os.environ["PATH"]]
            ),
        }
        subprocess.run(
            [PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout", "120",
             "--script-launch-mode=subprocess",
             "--continue-on-collection-errors", f"--junitxml={report}", *suite.paths],
            cwd=copy, env=environment, check=False, timeout=TIMEOUT_S,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        return _read(report)


def _read(report: Path) -> Outcome:
    failed: dict[str, str] = {}
    passed = skipped = 0
    for case in ElementTree.parse(report).iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        bad = next((e for e in case if e.tag in ("failure", "error")), None)
        if bad is not None:
            failed[name] = (bad.get("message") or "").partition("\n")[0][:200]
        elif any(e.tag == "skipped" for e in case):
            skipped += 1
        else:
            passed += 1
    return Outcome(passed, failed, skipped)


def table(outcomes: Mapping[str, Outcome]) -> str:
    """Write the results as a Markdown table, with the causes below."""
    lines = ["| suite | passed | failed | skipped | share |", "|---|---:|---:|---:|---:|"]
    for name, outcome in outcomes.items():
        share = outcome.share(SUITES[name])
        row = (name, outcome.passed, len(outcome.failed), outcome.skipped, f"{share:.1%}")
        lines.append("| " + " | ".join(map(str, row)) + " |")
    for name, outcome in outcomes.items():
        lines += ["", f"{name}:", ""]
        causes = outcome.causes(SUITES[name]).most_common()
        lines += [f"- {count} × {cause}" for cause, count in causes]
    return "\n".join(lines) + "\n"


def main(words: Sequence[str] | None = None) -> None:
    """Run suites and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--suite", action="append", choices=SUITES)
    parser.add_argument("--report", type=Path)
    options = parser.parse_args(words)
    chosen = options.suite or list(SUITES)
    outcomes = {n: run_suite(SUITES[n], options.folder / SUITES[n].folder) for n in chosen}
    text = table(outcomes)
    if options.report:
        options.report.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
