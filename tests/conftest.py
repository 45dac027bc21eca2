"""Shared fixtures: real data if there is any, and a tiny model with its parser and config.

Real models and videos come from HEADRACE_TEST_DATA; tests skip without them.
"""

from __future__ import annotations

import gc
import os
import sys
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import onnx
import pytest
from onnx import TensorProto, helper

from headrace._core import fork_server
from tests.profiles import load_profile
from tests.session import session_folder

load_profile()

OF_TREES = (
    "tests/_core/test_text.py",
    "tests/diagnose/lint/test_catalogue.py",
    "tests/test_package.py",
)

PARSER = '''
import numpy as np
from headrace import Detections

def parse(layers, network, params):
    """One box in the middle half of the input, scored by the mean red value in 0..1."""
    (layer,) = layers.values()
    w, h = network.width, network.height
    return Detections([[w / 4, h / 4, w / 2, h / 2]], [layer.data[0]], [0])

def fails_on_black(layers, network, params):
    (layer,) = layers.values()
    if layer.data[0] == 0:
        raise ValueError("nothing to see")
    return parse(layers, network, params)
'''

CONFIG = """\
[property]
gie-unique-id=1
onnx-file=mean.onnx
labelfile-path=labels.txt
num-detected-classes=1
net-scale-factor=0.00392156862745098
cluster-mode=4
custom-lib-path=mean_parser.py
parse-bbox-func-name=parse
"""


def write_mean_model(
    path: Path, *, batch: int | str = "n", width: int = 32, height: int = 32
) -> None:
    """Write an ONNX model (batch, 3, height, width) float32 -> (batch, 3) channel means."""
    graph = helper.make_graph(
        [
            helper.make_node("GlobalAveragePool", ["image"], ["pooled"]),
            helper.make_node("Flatten", ["pooled"], ["mean"]),
        ],
        "mean",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [batch, 3, height, width])],
        [helper.make_tensor_value_info("mean", TensorProto.FLOAT, [batch, 3])],
    )
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)


def pytest_configure(config: pytest.Config) -> None:
    """Processes of one session begin to collect in different folders.

    In a fresh checkout pytest rewrites the assertions of each file and keeps the result: one
    process does it for all then, where three in step would do it three times.
    """
    worker = getattr(config, "workerinput", None)
    if worker is not None and config.args == ["tests"]:
        names = {path.parent for path in Path("tests").rglob("test_*.py")}
        folders = sorted({f"tests/{name.parts[1]}" for name in names if len(name.parts) > 1})
        first = len(folders) * int(worker["workerid"][2:]) // worker["workercount"]
        config.args[:] = [
            *folders[first:],
            *map(str, Path("tests").glob("test_*.py")),
            *folders[:first],
        ]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of the cases of a `sampled` test the first one runs at every push; the others are slow.

    Tests of the package's trees come first, side by side: one process reads the trees.
    """
    items.sort(key=lambda item: ((path := item.nodeid.partition("::")[0]) not in OF_TREES, path))
    seen: set[str] = set()
    for item in items:
        name = item.nodeid.partition("[")[0]
        if item.get_closest_marker("sampled") is not None and name in seen:
            item.add_marker("slow")
        seen.add(name)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect ten thousand tests, which stay, and take them out of every garbage collection."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_warning_recorded(warning_message: warnings.WarningMessage) -> None:
    """Let xdist pass GLib's warnings on: PyGObject's class for them is in no module."""
    if warning_message.category.__module__ not in sys.modules:
        text = str(warning_message.message)
        warning_message.message, warning_message.category = RuntimeWarning(text), RuntimeWarning


@pytest.fixture(scope="session", autouse=True)
def _state_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Libraries of tests are neither trusted nor kept by the user who runs them."""
    before = os.environ.get("XDG_STATE_HOME")
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))
    yield
    if before is None:
        del os.environ["XDG_STATE_HOME"]
    else:
        os.environ["XDG_STATE_HOME"] = before


@pytest.fixture(scope="session", autouse=True)
def _bytecode(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Processes that tests start compile Headrace's Python once, not each for itself.

    Also where Python is told to write no bytecode, as many containers do: it goes into the tests'
    own folder, nothing into the checkout.
    """
    with pytest.MonkeyPatch.context() as patch:
        if os.environ.get("PYTHONDONTWRITEBYTECODE"):
            patch.delenv("PYTHONDONTWRITEBYTECODE")
            folder = session_folder(tmp_path_factory) / "bytecode"
            patch.setenv("PYTHONPYCACHEPREFIX", str(folder))
        yield


class _Kept(WeakValueDictionary[Any, Any]):
    """Of the warm interpreters the last few stay when their last process is forgotten."""

    def __init__(self) -> None:
        super().__init__()
        self._last: deque[object] = deque(maxlen=2)

    def __setitem__(self, key: object, value: object) -> None:
        self._last.append(value)
        super().__setitem__(key, value)


@pytest.fixture(scope="session", autouse=True)
def _warm_interpreter() -> Iterator[None]:
    """Tests share the interpreter that processes are forked from: its start takes a second."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fork_server, "_servers", _Kept())
        patch.setattr(fork_server, "_LATE", (*fork_server._LATE, "PYTEST_"))
        yield


@pytest.fixture
def mean_config(tmp_path: Path) -> Callable[..., Path]:
    """Write model, parser, labels and config; extra keyword `a_b=1` becomes the key `a-b=1`.

    `parser` is a further function of the parser's file.
    """

    def write(
        *, batch: int | str = "n", width: int = 32, height: int = 32, parser: str = "",
        **keys: object,
    ) -> Path:  # fmt: skip
        write_mean_model(tmp_path / "mean.onnx", batch=batch, width=width, height=height)
        (tmp_path / "mean_parser.py").write_text(PARSER + parser)
        (tmp_path / "labels.txt").write_text("thing\n")
        lines = dict(line.split("=", 1) for line in CONFIG.splitlines()[1:])
        lines |= {k.replace("_", "-"): str(v) for k, v in keys.items()}
        text = "[property]\n" + "".join(f"{k}={v}\n" for k, v in lines.items() if v != "None")
        path = tmp_path / "config.txt"
        path.write_text(text)
        return path

    return write


@pytest.fixture(scope="module")
def frozen_heap() -> None:
    """Let collections within a module look at its own objects only."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def watched_anew(frozen_heap: None) -> Iterator[None]:
    """Plugins that are watched are counted from 0, and do what they should."""
    from tests.plugins.samples import Watched

    gc.collect()  # plugins of earlier tests end now, not while they are counted
    Watched.reset()
    yield
    Watched.reset()


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Folder with `models/`, `videos/`, `images/`; skips when there is none."""
    path = Path(os.environ.get("HEADRACE_TEST_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not (path / "models").is_dir():
        pytest.skip("no test data: set HEADRACE_TEST_DATA")
    return path


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """A folder of three images of rising redness, 64x48."""
    import numpy as np
    from PIL import Image

    folder = tmp_path / "photos"
    folder.mkdir()
    for i in range(3):
        image = np.zeros((48, 64, 3), np.uint8)
        image[..., 0] = 85 * (i + 1)
        Image.fromarray(image).save(folder / f"p{i}.png")
    return folder
