"""Importing Headrace and calling it leaves the process of its host as it was."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from PIL import Image

import headrace
from headrace.config import ModelConfig
from headrace.live import Address, LiveServer, LiveView
from headrace.pipeline import Pipeline
from tests.guest import differences, process_state
from tests.media.conftest import write_clip

SCENE = Path(__file__).parents[1] / "examples" / "conveyor"
CONFIG = SCENE / "config_infer_primary.txt"


class Host:
    """A folder with inputs, and a config whose engine is built there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = ModelConfig.load(CONFIG)
        self.video = write_clip(folder / "video.mp4", 6, size=(640, 384))
        for number in range(3):
            image = Image.fromarray(np.full((48, 64, 3), 40 * number, np.uint8))
            image.save(folder / f"{number}.jpg")
        (folder / "broken.jpg").write_bytes((folder / "0.jpg").read_bytes()[:300])

    def out(self, name: str) -> str:
        return str(self.folder / name)


def _run(host: Host) -> None:
    outputs = [host.out(name) for name in ("a.jsonl", "b.mp4", "c.parquet", "d.json")]
    with headrace.open_pipeline(CONFIG, sources=host.video, outputs=outputs) as pipeline:
        pipeline.run()


def _images(host: Host) -> None:
    with warnings.catch_warnings(record=True):
        before = list(warnings.filters)
        sources = [host.out("[0-9].jpg"), str(host.folder / "1.jpg"), str(host.folder / "2.jpg")]
        with headrace.open_pipeline(CONFIG, sources=sources) as pipeline:
            assert len(list(pipeline)) == 5
        assert warnings.filters == before


def _given_up(host: Host) -> None:
    pipeline = headrace.open_pipeline(CONFIG, sources=[host.video, host.video])
    next(iter(pipeline))
    pipeline.close()


def _failed(host: Host) -> None:
    with pytest.raises(headrace.HeadraceError):
        headrace.open_pipeline(CONFIG, sources=host.out("none.mp4"))
    with pytest.raises(headrace.HeadraceError):
        headrace.ModelConfig.load(host.out("none.txt"))
    with (
        pytest.raises(headrace.HeadraceError),
        headrace.open_pipeline(CONFIG, sources=host.out("broken.jpg")) as pipeline,
    ):
        pipeline.run()


def _inferencer(host: Host) -> None:
    with headrace.Inferencer.from_config(CONFIG) as model:
        model(np.zeros((384, 640, 3), np.uint8))


def _sources_and_sinks(host: Host) -> None:
    with (
        headrace.open_source(str(host.video)) as source,
        headrace.open_sink(host.out("e.mp4")) as sink,
    ):
        for frame in source:
            sink.write(frame, headrace.FrameMeta(source.name, 0, frame.frame, 0, 640, 384))


def _tables(host: Host) -> None:
    with headrace.open_pipeline(CONFIG, sources=host.video) as pipeline:
        headrace.table.to_pandas(pipeline)


def _examined(host: Host) -> None:
    headrace.explain(CONFIG, host.video).summary()


def _compared(host: Host) -> None:
    headrace.compare(CONFIG, CONFIG, host.video, frames=2)


def _recorded(host: Host) -> None:
    headrace.record(CONFIG, host.video, host.out("r.safetensors"), limit=2)


def _served(host: Host) -> None:
    view = LiveView()
    pipeline = Pipeline([], (), [view], keep_open=True)
    server = LiveServer(pipeline, view, Address(port=0))
    running = Thread(target=pipeline.run)
    running.start()
    pipeline.add_source(host.video)
    pipeline.stop()
    running.join(20)
    server.close()


def _batch(host: Host) -> None:
    headrace.batch(CONFIG, inputs=host.out("1.jpg"), out=host.out("batch"), workers=1)


def _guarded(host: Host) -> None:
    with headrace.Inferencer.from_config(CONFIG, guard="always") as model:
        model(np.zeros((384, 640, 3), np.uint8))


CALLS: list[Callable[[Host], None]] = [
    _run, _images, _given_up, _failed, _inferencer, _sources_and_sinks, _tables, _examined,
    _compared, _recorded, _served, _batch, _guarded,
]  # fmt: skip


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Host:
    """An engine is built, and packages are imported before: what they set then is their own."""
    import uvicorn  # noqa: F401

    host = Host(tmp_path_factory.mktemp("host"))
    _inferencer(host)
    return host


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__.strip("_"))
def test_a_call_leaves_the_process_as_it_was(
    host: Host, call: Callable[[Host], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(host.folder)
    before = process_state()
    call(host)
    assert differences(before, process_state(before)) == {}


_IMPORTS = """
import sys
sys.path.insert(0, {root!r})
import av, numpy, onnx, onnxruntime, PIL.Image, pyarrow.parquet, starlette, uvicorn  # their own
from tests.guest import differences, process_state
before = process_state()
import headrace
for name in headrace.__all__:
    try:
        getattr(headrace, name)
    except headrace.HeadraceError as error:
        print("not here:", name, error, file=sys.stderr)
with headrace.Inferencer.from_config({config!r}) as model:
    pass
after = process_state(before)
print(differences(before, after))
"""


def test_importing_everything_changes_nothing() -> None:
    code = _IMPORTS.format(root=str(Path(__file__).parents[1]), config=str(CONFIG))
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "{}\n"


_LEFT_OPEN = """
import sys
import numpy as np
import headrace
from headrace.live import Address, LiveServer, LiveView
config, video, out = sys.argv[1:]
model = headrace.Inferencer.from_config(config)
model(np.zeros((384, 640, 3), np.uint8))
guarded = headrace.Inferencer.from_config(config, guard="always")
guarded(np.zeros((384, 640, 3), np.uint8))
source = headrace.open_source(video)
frames = iter(source)
next(frames)
view = LiveView()
pipeline = headrace.open_pipeline(config, sources=[video, video], outputs=[out, view])
results = iter(pipeline)
next(results)
server = LiveServer(pipeline, view, Address(port=0))
"""


def test_what_is_left_open_says_nothing_at_the_end(host: Host) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _LEFT_OPEN, str(CONFIG), str(host.video), host.out("left.jsonl")],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_nothing_depends_on_the_order_of_a_set(tmp_path: Path) -> None:
    """Texts of errors and choices, with five seeds of the hashes of strings."""
    (tmp_path / "a.txt").write_text(
        "[property]\nonnx-file=none.onnx\nnetwork-tipe=0\nclustermode=2\nlabelfile=x\n"
        "output-blob-names=a;b;c\n[class-attrs-x]\ntopk=1\n[class-attrs-al]\ntopk=2\n"
    )
    commands = (
        ["lint", str(tmp_path / "a.txt"), "--notes"], ["show", str(CONFIG), "--json"],
        ["show", str(SCENE / "detector.onnx")], ["run", str(tmp_path / "a.txt"), "none.mp4"],
    )  # fmt: skip
    for command in commands:
        outputs = {
            subprocess.run(
                [sys.executable, "-m", "headrace", *command], capture_output=True, check=False,
                cwd=SCENE, env={**_environment(), "PYTHONHASHSEED": str(seed)}, timeout=120,
            ).stdout
            for seed in range(4)
        }  # fmt: skip
        assert len(outputs) == 1, command


def _environment() -> dict[str, str]:
    import os

    return dict(os.environ)
