"""Large models: build and saved engine against ONNX Runtime's own, each in a process of its own.

A transformer of random weights, 400 MB inside and 1.2 GB beside the graph. ONNX Runtime builds its
optimised file, and opens it. One table: CPU seconds and the peak of memory, that of the process
with its imports taken off. It takes 4 GB of disk and 3 GB of memory.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper
from rich.console import Console
from rich.table import Table

WIDTH, SIDE, BLOCKS = 768, 224, {"400 MB inside": 12, "1.2 GB beside": 36}
_STEPS = ("build", "load")

_MEASURED = """
import sys
from pathlib import Path
from time import process_time
import numpy as np
import onnxruntime
import headrace.engine.builder, headrace.engine.backends.onnxruntime, headrace.network.ir
from headrace.engine import BuildOptions, Plan, build
from headrace.network import network_from_onnx
who, step, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
image = {"images": np.zeros((1, 3, 224, 224), np.float32)}
def peak():
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
before, start = peak(), process_time()
if who == "headrace":
    if step == "build":
        plan = build(network_from_onnx(folder / "model.onnx"), BuildOptions(runtime="onnxruntime"))
        session = plan.open_session()
        plan.save(folder / "model.engine")
    else:
        session = Plan.load(folder / "model.engine").open_session()
    session.run(image)
else:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    if step == "build":
        options.optimized_model_filepath = str(folder / "optimised.onnx")
    file = folder / ("model.onnx" if step == "build" else "optimised.onnx")
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    session.run(None, image)
print(process_time() - start, (peak() - before) / 1024)
"""


def report() -> None:
    """Print the table."""
    table = Table(title="large models", title_justify="left")
    for heading in ("what", "headrace", "onnxruntime", "onnxruntime / headrace"):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    for name, blocks in BLOCKS.items():
        with tempfile.TemporaryDirectory(prefix="headrace-large-") as folder:
            _write(Path(folder) / "model.onnx", blocks, apart=name.endswith("beside"))
            for step in _STEPS:
                (ours, own), (theirs, peak) = (
                    _measured(who, step, folder) for who in ("headrace", "onnxruntime")
                )
                table.add_row(
                    f"{name}, {step}: CPU",
                    f"{ours:.2f} s",
                    f"{theirs:.2f} s",
                    f"{theirs / ours:.2f}",
                )
                table.add_row(
                    f"{name}, {step}: memory",
                    f"{own:.0f} MB",
                    f"{peak:.0f} MB",
                    f"{peak / own:.2f}",
                )
    Console().print(table)


def _measured(who: str, step: str, folder: str) -> tuple[float, float]:
    command = [sys.executable, "-c", _MEASURED, who, step, folder]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds, megabytes = map(float, done.stdout.split())
    return seconds, megabytes


def _write(path: Path, blocks: int, *, apart: bool) -> None:
    """Patches of an image, then the matrices of a transformer, one after the other."""
    rng = np.random.default_rng(0)
    weights = []

    def weight(name: str, *shape: int) -> str:
        values = rng.standard_normal(shape, np.float32) * np.float32(0.02)
        weights.append(numpy_helper.from_array(values, name))
        return name

    cells = (SIDE // 16) ** 2
    weights.append(numpy_helper.from_array(np.array([0, WIDTH, cells], np.int64), "shape"))
    nodes = [
        helper.make_node("Conv", ["images", weight("patch", WIDTH, 3, 16, 16)], ["c"],
                         strides=[16, 16]),
        helper.make_node("Reshape", ["c", "shape"], ["r"]),
        helper.make_node("Transpose", ["r"], ["v0"], perm=[0, 2, 1]),
    ]  # fmt: skip
    sizes = [
        (WIDTH, 3 * WIDTH),
        (3 * WIDTH, WIDTH),
        (WIDTH, 4 * WIDTH),
        (4 * WIDTH, WIDTH),
    ] * blocks
    for i, size in enumerate(sizes):
        nodes.append(helper.make_node("MatMul", [f"v{i}", weight(f"w{i}", *size)], [f"m{i}"]))
        nodes.append(helper.make_node("Relu", [f"m{i}"], [f"v{i + 1}"]))
    nodes.append(helper.make_node("ReduceMean", [f"v{len(sizes)}"], ["y"], axes=[1], keepdims=0))
    images = helper.make_tensor_value_info("images", 1, [1, 3, SIDE, SIDE])
    result = helper.make_tensor_value_info("y", 1, [1, WIDTH])
    graph = helper.make_graph(nodes, "large", [images], [result], weights)
    opset = [helper.make_opsetid("", 13)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=8)
    onnx.save(model, path, save_as_external_data=apart, location="weights.bin")
