"""Runs published DeepStream applications, byte for byte, on the demo scene, and prints a table.

    python -m tests.outside.deepstream_apps FOLDER [NAME…]

FOLDER holds a checkout of `deepstream_python_apps`. The applications run in a scratch copy, in
which configurations of the same names name the demo scene's models.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SCENE = ROOT / "examples" / "conveyor"
FRAMES = 250

DETECTOR = """[property]
gie-unique-id=1
batch-size={batch}
onnx-file={scene}/detector.onnx
model-engine-file={scratch}/detector_b{batch}.engine
labelfile-path={scene}/labels.txt
num-detected-classes=6
infer-dims=3;192;320
net-scale-factor=0.00392156862745098
maintain-aspect-ratio=1
scaling-filter=1
custom-lib-path={scene}/conveyor_parser.py
parse-bbox-func-name=parse_conveyor
cluster-mode=2
filter-out-class-ids=4;5
[class-attrs-all]
pre-cluster-threshold=0.3
nms-iou-threshold=0.5
topk=50
"""
READER = """[property]
gie-unique-id={number}
operate-on-gie-id=1
process-mode=2
network-type=1
batch-size=16
onnx-file={scene}/classifier.onnx
model-engine-file={scratch}/classifier.engine
labelfile-path={scene}/labels_characters.txt
custom-lib-path={scene}/conveyor_parser.py
parse-classifier-func-name=parse_code
infer-dims=1;96;128
model-color-format=2
net-scale-factor=0.00392156862745098
scaling-filter=1
classifier-threshold=0.5
classifier-type=code
input-object-min-width=60
input-object-min-height=40
"""


@dataclass(frozen=True)
class App:
    """One application.

    Attributes:
        folder, script: of the checkout.
        arguments: with `{h264}`, `{uri}`, `{out}` for the film, its address and a folder.
        detectors: configurations of the detector -> its batch size.
        readers: configurations of the reader of codes.
        frames: how many the application reports.
        counts: what is counted in its output, a frame each.
        isolated: it sends to a multicast address: it runs in a network of its own.
    """

    folder: str
    script: str
    arguments: tuple[str, ...]
    detectors: dict[str, int]
    readers: tuple[str, ...] = ()
    frames: int = FRAMES
    counts: str = r"Frame Number=\s*\d+ Number of Objects=\s*(\d+)"
    isolated: bool = False


_SGIES = ("dstest2_sgie1_config.txt", "dstest2_sgie2_config.txt")
APPS = {
    "test1": App(
        "deepstream-test1", "deepstream_test_1.py", ("{h264}",), {"dstest1_pgie_config.txt": 1}
    ),
    "test2": App(
        "deepstream-test2",
        "deepstream_test_2.py",
        ("{h264}",),
        {"dstest2_pgie_config.txt": 1},
        _SGIES,
    ),
    "test3": App(
        "deepstream-test3",
        "deepstream_test_3.py",
        ("-i", "{uri}", "{uri}"),
        {"dstest3_pgie_config.txt": 2},
        frames=2 * FRAMES,
    ),
    "imagedata": App(
        "deepstream-imagedata-multistream",
        "deepstream_imagedata-multistream.py",
        ("{uri}", "{uri}", "{out}"),
        {"dstest_imagedata_config.txt": 2},
        frames=2 * FRAMES,
    ),
    "demux": App(
        "deepstream-demux-multi-in-multi-out",
        "deepstream_demux_multi_in_multi_out.py",
        ("-i", "{uri}", "{uri}"),
        {"ds_demux_pgie_config.txt": 2},
        frames=2 * FRAMES,
    ),
    "analytics": App(
        "deepstream-nvdsanalytics",
        "deepstream_nvdsanalytics.py",
        ("{uri}", "{uri}"),
        {"dsnvanalytics_pgie_config.txt": 2},
        frames=2 * FRAMES,
        counts=r"Frame Number=.*Number of Objects=\s*(\d+)",
    ),
    "custom-binding": App(
        "deepstream-custom-binding-test",
        "deepstream_custom_binding_test.py",
        ("{h264}",),
        {},
        counts="structId",
    ),
    "add-delete": App(
        "runtime_source_add_delete",
        "deepstream_rt_src_add_del.py",
        ("{long}",),
        {"dstest_pgie_config.txt": 1},
        ("dstest_sgie1_config.txt", "dstest_sgie2_config.txt"),
        frames=7,
        counts="Calling (?:Start|Stop) \\d",
    ),
    "rtsp-out": App(
        "deepstream-test1-rtsp-out",
        "deepstream_test1_rtsp_out.py",
        ("-i", "{h264}"),
        {"dstest1_pgie_config.txt": 1},
        isolated=True,
    ),
}


def prepare(checkout: Path, scratch: Path) -> Path:
    """Copy the applications and write the configurations; returns the copy."""
    copy = scratch / "sources" / "deepstream_python_apps"
    shutil.copytree(checkout, copy, ignore=shutil.ignore_patterns(".git", "3rdparty", "docs"))
    values = {"scene": SCENE, "scratch": scratch}
    for app in APPS.values():
        folder = copy / "apps" / app.folder
        for name, batch in app.detectors.items():
            (folder / name).write_text(DETECTOR.format(batch=batch, **values))
        for number, name in enumerate(app.readers, 2):
            (folder / name).write_text(READER.format(number=number, **values))
    return copy


def elementary(scratch: Path) -> Path:
    """Write the demo scene's film as a bare H.264 stream."""
    path = scratch / "conveyor.h264"
    subprocess.run(
        ["gst-launch-1.0", "-q", "filesrc", f"location={SCENE}/conveyor.mp4", "!", "qtdemux", "!",
         "h264parse", "!", "video/x-h264,stream-format=byte-stream,alignment=au", "!",
         "filesink", f"location={path}"],
        check=True,
    )  # fmt: skip
    return path


def long_film(scratch: Path, times: int = 40) -> None:
    """Write the demo scene's film many times over, as `long.mp4`."""
    import av

    with av.open(str(scratch / "long.mp4"), "w") as out:
        stream: Any = None
        start = 0
        for _ in range(times):
            with av.open(str(SCENE / "conveyor.mp4")) as film:
                stream = stream or out.add_stream_from_template(film.streams.video[0])
                end = start
                for packet in film.demux(film.streams.video[0]):
                    if packet.pts is None or packet.dts is None:
                        continue
                    packet.pts, packet.dts = packet.pts + start, packet.dts + start
                    end = max(end, packet.pts + (packet.duration or 0))
                    packet.stream = stream
                    out.mux(packet)
                start = end


@dataclass(frozen=True)
class Outcome:
    """What a run gave."""

    command: str
    code: int
    frames: int
    objects: int
    seconds: float
    output: str


def run(app: App, copy: Path, scratch: Path, film: Path, timeout_s: float = 240) -> Outcome:
    """Run one application as its README says."""
    out = scratch / "frames"
    shutil.rmtree(out, ignore_errors=True)
    values = {
        "h264": film,
        "uri": (SCENE / "conveyor.mp4").as_uri(),
        "long": (scratch / "long.mp4").as_uri(),
        "out": out,
    }
    arguments = [argument.format(**values) for argument in app.arguments]
    command = [sys.executable, app.script, *arguments]
    if app.isolated:
        network = "ip link set lo up multicast on && ip route add 224.0.0.0/4 dev lo && exec "
        command = ["unshare", "-n", "bash", "-c", network + shlex.join(command)]
    start = time.monotonic()
    done = subprocess.run(
        command, cwd=copy / "apps" / app.folder,
        env=os.environ | {"NORIA_GST_DISPLAY": "none"}, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=timeout_s, check=False,
    )  # fmt: skip
    found = re.findall(app.counts, done.stdout) if app.counts else []
    objects = sum(int(n) for n in found if n.isdigit())
    shown = " ".join([app.script, *app.arguments])
    seconds = time.monotonic() - start
    return Outcome(shown, done.returncode, len(found), objects, seconds, done.stdout)


def main() -> None:
    """Run the applications that the command line names, or all."""
    checkout, names = Path(sys.argv[1]), sys.argv[2:] or list(APPS)
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        copy, film = prepare(checkout, scratch), elementary(scratch)
        long_film(scratch)
        print(f"{'application':16} {'frames':>7} {'objects':>8} {'seconds':>8} {'exit':>5}")
        for name in names:
            done = run(APPS[name], copy, scratch, film)
            print(
                f"{name:16} {done.frames:7} {done.objects:8} {done.seconds:8.1f} {done.code:5}",
                flush=True,
            )
            if done.code or done.frames != APPS[name].frames:
                print(done.output[-1500:])


if __name__ == "__main__":
    main()
