"""Fuzz the readers of what others send: any bytes are read, or give an error of Headrace.

    pip install atheris
    HEADRACE_FUZZ=spool python tests/fuzz/fuzz_readers.py -max_total_time=900 corpus_folder

`HEADRACE_FUZZ` names one of `READERS`; without it the first byte of an input chooses. Arguments are
libFuzzer's. Inputs to begin with are made here. `tests/fuzz/test_readers.py` runs these, and what
hypothesis makes of them.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

FOLDER = Path(
    tempfile.mkdtemp(prefix="headrace-fuzz-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
)


def look_at_onnx(data: bytes) -> None:
    """Read a model and the shapes in it, as `headrace show` does before it runs anything."""
    from headrace.errors import HeadraceError
    from headrace.network.onnx_file import network_from_onnx_bytes
    from headrace.network.shapes.graph_shapes import ShapeView
    from headrace.network.shapes.model_shapes import ModelShapes

    with suppress(HeadraceError):
        network = network_from_onnx_bytes(data, FOLDER / "a.onnx")
        proto = network.to_proto()
        assert network.inputs is not None
        assert network.outputs is not None
        network.unknown_operators()
        ShapeView(proto).infos()
        shapes = ModelShapes(proto.SerializeToString())
        shapes.outputs({v.name: (-1,) * 4 for v in network.inputs})


def read_spool(data: bytes) -> None:
    """Send what a damaged segment holds, then a message of this run."""
    from headrace.errors import MediaError
    from headrace.media.messages.spool import Spool

    folder = FOLDER / "spool"
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(MediaError):
        first = Spool(folder)
        first.append(b"first")
        first.close()
        names = sorted(p for p in folder.iterdir() if p.is_file())
        target = names[data[0] % len(names)] if data and names else folder / "0"
        target.write_bytes(data[1:])
    with suppress(MediaError):
        spool = Spool(folder)
        spool.append(b"last")
        seen: list[bytes] = []
        for _ in range(1000):
            batch = spool.peek()
            if not batch:
                break
            seen += [message for message, _ in batch]
            spool.ack()
        assert seen[-1:] == [b"last"]
        assert spool.waiting == 0
        spool.close()


def read_worker(data: bytes) -> None:
    """Believe nothing of what a worker answers."""
    from headrace.custom.guard import answers, ipc
    from headrace.errors import HeadraceError

    with suppress(ValueError, RecursionError):
        payload = json.loads(data)
        kinds = [k for k in vars(answers).values() if isinstance(k, type)]
        for kind in (k for k in kinds if issubclass(k, answers.Answer)):
            with suppress(ipc.ProtocolError):
                answers.read_answer(payload, kind)
        with suppress(ipc.ProtocolError):
            ipc.notices_from(payload)
        with suppress(ipc.ProtocolError):
            assert isinstance(ipc.error_from(payload), HeadraceError)
        fd = ipc.new_memory("fuzz", 1 << 16)
        try:
            region = ipc.SharedRegion(fd)
            with suppress(ipc.ProtocolError):
                for array in ipc.arrays_in(payload, region):
                    assert array.nbytes <= 1 << 16
        finally:
            os.close(fd)


def read_playlist(data: bytes) -> None:
    """Open a playlist in a file, which names what it likes."""
    from headrace.errors import MediaError
    from headrace.media.sources.playlists import checked_playlist, moved_playlist
    from headrace.media.sources.video import VideoSource

    with suppress(MediaError):
        moved_playlist(
            checked_playlist(data, "http://a.example/b.m3u8", inner=False), "http://b.example/c/d"
        )
    path = FOLDER / "list.m3u8"
    path.write_bytes(b"#EXTM3U\n" + data)
    with suppress(MediaError), VideoSource(path, "list") as source:
        for _ in zip(range(3), source, strict=False):
            pass


def read_analytics(data: bytes) -> None:
    """Read regions and lines."""
    from headrace.errors import HeadraceError
    from headrace.pipeline.analytics.rules_file import load_rules

    path = FOLDER / "analytics.txt"
    path.write_bytes(data)
    with suppress(HeadraceError):
        assert repr(load_rules(path))


def read_tracker(data: bytes) -> None:
    """Read the settings of trackers."""
    from headrace.errors import HeadraceError
    from headrace.pipeline.track.settings_file import read_entries

    path = FOLDER / "tracker.yml"
    path.write_bytes(data)
    with suppress(HeadraceError):
        assert read_entries(path) is not None


def read_server(data: bytes) -> None:
    """Read a config of nvinferserver, which is text of Protobuf."""
    from headrace.config import ModelConfig
    from headrace.errors import HeadraceError

    path = FOLDER / "server.txt"
    path.write_bytes(data)
    with suppress(HeadraceError):
        assert repr(ModelConfig.load(path))


def read_csv(data: bytes) -> None:
    """Read the sources of a deepstream-app config from a CSV file."""
    from headrace.config import load_pipeline
    from headrace.errors import HeadraceError

    (FOLDER / "sources.csv").write_bytes(data)
    path = FOLDER / "app.yml"
    path.write_text("source:\n  csv-file-path: sources.csv\nsink0:\n  enable: 1\n  type: 1\n")
    with suppress(HeadraceError):
        assert load_pipeline(path).opened_sources


def read_dewarper(data: bytes) -> None:
    """Read the views of a dewarper, and make them of a small image."""
    import numpy as np

    from headrace.config.dewarper_file import load_dewarper
    from headrace.errors import HeadraceError
    from headrace.media.dewarping import Dewarper
    from headrace.media.frame import Frame

    path = FOLDER / "dewarper.txt"
    path.write_bytes(data)
    with suppress(HeadraceError):
        config = load_dewarper(path)
        pixels = sum(one.width * one.height for one in config.surfaces) + np.prod(config.size)
        if pixels < 100_000:
            frame = Frame.from_array(np.zeros((48, 64, 3), np.uint8))
            views = Dewarper(config).views(frame)
            assert {(view.width, view.height) for view in views} == {config.size}


def read_message(data: bytes) -> None:
    """Read a message that starts or stops a recording, and the file of sensors."""
    from headrace.errors import HeadraceError
    from headrace.media.messages.commands import record_command, sensor_numbers

    with suppress(HeadraceError, ValueError):
        assert record_command(data) is not None
    path = FOLDER / "sensors.txt"
    path.write_bytes(data)
    with suppress(HeadraceError):
        assert all(isinstance(n, int) for n in sensor_numbers(path).values())


READERS: dict[str, Callable[[bytes], None]] = {
    "onnx": look_at_onnx,
    "spool": read_spool,
    "worker": read_worker,
    "playlist": read_playlist,
    "analytics": read_analytics,
    "tracker": read_tracker,
    "server": read_server,
    "csv": read_csv,
    "dewarper": read_dewarper,
    "message": read_message,
}


def seeds(reader: str) -> list[bytes]:
    """Inputs that the reader takes."""
    match reader:
        case "onnx":
            return _models()
        case "spool":
            return [bytes([i]) + b for i in range(3) for b in (b"", bytes(64), b"HRSP" * 9)]
        case "worker":
            finding = {"code": "a", "level": "info", "wording": "w", "where": None, "data": {}}
            values = ([], {}, [["<f4", [2, 3], 0]], [finding], {"notices": [finding]})
            return [json.dumps(value).encode() for value in values]
        case "playlist":
            head = b"#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:2\n"
            lines = (
                b"#EXTINF:1,\na.ts\n#EXT-X-ENDLIST\n",
                b"#EXT-X-STREAM-INF:BANDWIDTH=9\nb.m3u8\n",
                b'#EXT-X-MAP:URI="i.mp4",BYTERANGE="1@0"\n#EXTINF:1,\n/etc/hosts\n',
                b'#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="a",URI="c.m3u8"\n#EXT-X-DISCONTINUITY\n',
            )
            return [head + line for line in lines]
        case "analytics":
            return [
                b"[property]\nenable=1\nconfig-width=64\nconfig-height=48\n"
                b"[roi-filtering-stream-0]\nenable=1\nroi-RF=0;0;9;0;9;9\nclass-id=-1\n"
                b"[line-crossing-stream-0]\nenable=1\nline-crossing-A=1;2;3;4;5;6;7;8\nmode=loose\n"
                b"[overcrowding-stream-1]\nenable=1\nroi-O=0;0;9;0;9;9\nobject-threshold=2\n"
                b"[direction-detection-stream-0]\ndirection-S=1;2;3;4\n"
            ]
        case "server":
            return [
                b"infer_config { unique_id: 1 gpu_ids: [0] max_batch_size: 4 backend { triton {\n"
                b'model_name: "m" version: -1 model_repo { root: "." } } }\n'
                b"preprocess { network_format: IMAGE_FORMAT_RGB normalize { scale_factor: 0.5 } }\n"
                b'postprocess { labelfile_path: "l.txt" detection { num_detected_classes: 2\n'
                b"nms { confidence_threshold: 0.2 topk: 20 iou_threshold: 0.5 } } } }\n"
                b"input_control { process_mode: PROCESS_MODE_FULL_FRAME interval: 0 }\n"
            ]
        case "csv":
            return [
                b"enable,type,uri,num-sources,gpu-id\n1,3,file:///a%d.mp4,2,0\n1,4,rtsp://h/1,1,0\n",
                b"enable,type,camera-v4l2-dev-node,uri\n1,1,0,\n# no\n0,2,,a.mp4\n",
            ]
        case "dewarper":
            surface = (
                b"[surface%d]\nprojection-type=%d\nwidth=32\nheight=24\nsrc-fov=120\ntop-angle=30\n"
                b"bottom-angle=-30\nyaw=10\nroll=5\ncontrol=0.5\ndistortion=0.1;0.2;0;0\n"
            )
            size = b"[property]\noutput-width=32\noutput-height=24\n"
            return [size + surface % (0, kind) + surface % (1, 19 - kind) for kind in range(1, 10)]
        case "message":
            return [
                b'{"command": "start-recording", "start": "2020-05-18T20:02:00.051Z",\n'
                b'"end": "2020-05-18T20:02:09.051Z", "sensor": {"id": "c1"}}',
                b"[sensor0]\nenable=1\nid=c1\n[sensor1]\nenable=1\nid=c2\n",
            ]
        case _:
            return [
                b"%YAML:1.0\nBaseConfig:\n  minDetectorConfidence: 0.1\nTargetManagement:\n"
                b"  maxTargetsPerStream: 9\n  probationAge: 2\n  maxShadowTrackingAge: 30\n"
            ]


def _models() -> list[bytes]:
    from onnx import TensorProto, helper

    def model(*nodes: object, functions: object = ()) -> bytes:
        values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", 3, 8, 8]) for n in "xy"]
        graph = helper.make_graph(list(nodes), "g", values[:1], values[1:])
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("f", 1)]
        made = helper.make_model(graph, opset_imports=opsets, functions=functions, ir_version=9)
        return bytes(made.SerializeToString())

    imports = [helper.make_opsetid("", 17)]
    relu = helper.make_node("Relu", ["a"], ["b"])
    function = helper.make_function("f", "F", ["a"], ["b"], [relu], imports)
    values = helper.make_tensor("v", TensorProto.INT64, [4], [0, -1, 8, 8])
    return [
        model(helper.make_node("Relu", ["x"], ["y"])),
        model(helper.make_node("F", ["x"], ["y"], domain="f"), functions=[function]),
        model(
            helper.make_node("Constant", [], ["c"], value=values),
            helper.make_node("Reshape", ["x", "c"], ["y"]),
        ),
        model(
            helper.make_node("Shape", ["x"], ["s"]),
            helper.make_node("Concat", ["s", "s"], ["t"], axis=0),
            helper.make_node("Gather", ["x", "t"], ["y"]),
        ),
    ]


def check(data: bytes) -> None:
    """Give one input to the reader of the environment, else to that of its first byte."""
    names = list(READERS)
    name = os.environ.get("HEADRACE_FUZZ") or names[data[0] % len(names) if data else 0]
    READERS[name](data if "HEADRACE_FUZZ" in os.environ else data[1:])


def main() -> None:
    """Fuzz, for ever or as long as libFuzzer's arguments say."""
    from instrument import instrumented

    with instrumented("headrace"):
        import headrace.custom.guard.answers
        import headrace.media.messages.spool
        import headrace.media.sources.video
        import headrace.network.onnx_file
        import headrace.pipeline.analytics.rules_file
        import headrace.pipeline.track.settings_file  # noqa: F401
    import atheris

    begin = FOLDER / "seeds"
    begin.mkdir()
    for name in [os.environ["HEADRACE_FUZZ"]] if "HEADRACE_FUZZ" in os.environ else READERS:
        head = b"" if "HEADRACE_FUZZ" in os.environ else bytes([list(READERS).index(name)])
        for number, seed in enumerate(seeds(name)):
            (begin / f"{name}{number}").write_bytes(head + seed)
    more = [str(begin)] if any(not a.startswith("-") for a in sys.argv[1:]) else []
    atheris.Setup([*sys.argv, *more], check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
