"""Runs published DeepStream applications, byte for byte, on the demo scene, and prints a table.

    python -m tests.outside.deepstream_apps FOLDER [--plain] [--keep REPORTS] [NAME…]

FOLDER holds a checkout of `deepstream_python_apps`. The applications run in a scratch copy, in
which configurations of the same names name the demo scene's models. `headrace exec --report` counts
frames, objects, classes, masks, class maps and raw outputs at the elements, whatever an application
prints; --plain runs them by `python` without these counts. --keep leaves the reports, images and
what the applications wrote in a folder.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headrace.gstreamer.elements.register import ELEMENTS
from tests.outside.app_models import MASKS, save_color_classes, save_ssd_detector
from tests.ports import free_port

ROOT = Path(__file__).parents[2]
SCENE = ROOT / "examples" / "conveyor"
FRAMES = 250
SERVER, PORT = Path(__file__).with_name("rtsp_server.py"), 8555

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
CLASSES = """[property]
gie-unique-id=1
network-type=2
batch-size=1
onnx-file={scratch}/colors.onnx
num-detected-classes=4
infer-dims=3;512;512
net-scale-factor=0.00392156862745098
segmentation-threshold=0.4
"""
SERVER_CONFIG = """infer_config {{
  unique_id: 5
  max_batch_size: 1
  backend {{ triton {{ model_name: "ssd" version: -1 model_repo {{ root: "{scratch}/models" }} }} }}
  preprocess {{
    network_format: IMAGE_FORMAT_RGB
    normalize {{ scale_factor: 1.0 channel_offsets: [0, 0, 0] }}
  }}
  postprocess {{ other {{}} }}
}}
input_control {{ process_mode: PROCESS_MODE_FULL_FRAME interval: 0 }}
output_control {{ output_tensor_meta: true }}
"""
PREPROCESS = """[property]
enable=1
target-unique-ids=1
network-input-order=0
process-on-frame=1
maintain-aspect-ratio=1
processing-width=320
processing-height=192
scaling-buf-pool-size=6
tensor-buf-pool-size=6
network-input-shape=8;3;192;320
network-color-format=0
tensor-data-type=0
tensor-name=image
scaling-pool-memory-type=0
scaling-pool-compute-hw=0
scaling-filter=1
custom-lib-path=/opt/nvidia/deepstream/deepstream/lib/gst-plugins/libcustom2d_preprocess.so
custom-tensor-preparation-function=CustomTensorPreparation
[user-configs]
pixel-normalization-factor=0.003921568
[group-0]
src-ids=0;1
custom-input-transformation-function=CustomAsyncTransformation
process-on-roi=1
roi-params-src-0=0;0;1920;1080
roi-params-src-1=0;0;960;1080;960;0;960;1080
"""
THREE_CLASSES = DETECTOR.replace("ids=4;5", "ids=3;4;5").replace("{batch}", "2")
MASKS_CONFIG = (
    DETECTOR.replace("cluster-mode=2", "network-type=3\ncluster-mode=4\noutput-instance-mask=1")
    .replace("nms-iou-threshold=0.5\ntopk=50\n", "")
    .replace("[class-attrs", "segmentation-threshold=0.3\n[class-attrs")
    .replace("{scene}/conveyor_parser.py", "{scratch}/masks.py")
    .replace("bbox-func-name=parse_conveyor", "bbox-instance-mask-func-name=parse_masks")
)


@dataclass(frozen=True)
class App:
    """One application.

    Attributes:
        folder, script: of the checkout.
        arguments: with `{h264}`, `{uri}`, `{out}` for the video, its address and a folder.
        detectors: configurations of the detector -> its batch size.
        readers: configurations of the reader of codes.
        frames: how many the application reports.
        counts: what is counted in its output, a frame each. Applications print lines in pieces,
            and those of a second thread come between: few words are safer than a whole line.
        finds: kinds of metadata of which the elements must count some.
        isolated: it sends to a multicast address: it runs in a network of its own, where a camera
            answers at `{rtsp}` before it starts.
        configs: other configurations -> their text.
        files: pattern of the files that it writes into `{out}`, counted as frames if given.
        messages: how many reach an MQTT server at the port `{mqtt}`, a free one.
    """

    folder: str
    script: str
    arguments: tuple[str, ...]
    detectors: dict[str, int]
    readers: tuple[str, ...] = ()
    frames: int = FRAMES
    counts: str = r"Number of Objects=\s*(\d+)"
    finds: tuple[str, ...] = ("objects",)
    isolated: bool = False
    configs: dict[str, str] = field(default_factory=dict)
    files: str = ""
    messages: int = 0


_CASCADE = ("objects", "tracked objects", "classifier results")
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
        finds=_CASCADE,
    ),
    "test3": App(
        "deepstream-test3",
        "deepstream_test_3.py",
        ("-i", "{uri}", "{uri}"),
        {"dstest3_pgie_config.txt": 2},
        frames=2 * FRAMES,
    ),
    "test4": App(
        "deepstream-test4",
        "deepstream_test_4.py",
        (
            "-i",
            "{h264}",
            "-p",
            "/opt/nvidia/deepstream/deepstream/lib/libnvds_mqtt_proto.so",
            "--conn-str=127.0.0.1;{mqtt}",
            "-t",
            "events",
            "--no-display",
        ),
        {},
        counts=r"Frame Number = \d+ Vehicle Count = (\d+)",
        finds=("objects", "event messages"),
        configs={"dstest4_pgie_config.txt": DETECTOR.replace("{batch}", "1")},
        messages=9,  # the first object of every 30th frame that has one
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
        finds=("objects", "tracked objects"),
    ),
    "custom-binding": App(
        "deepstream-custom-binding-test",
        "deepstream_custom_binding_test.py",
        ("{h264}",),
        {},
        counts="structId",
        finds=(),  # it has no model
    ),
    "add-delete": App(
        "runtime_source_add_delete",
        "deepstream_rt_src_add_del.py",
        ("{long}",),
        {"dstest_pgie_config.txt": 1},
        ("dstest_sgie1_config.txt", "dstest_sgie2_config.txt"),
        frames=7,
        counts="Calling (?:Start|Stop) \\d",
        finds=_CASCADE,
    ),
    "segmentation": App(
        "deepstream-segmentation",
        "deepstream_segmentation.py",
        ("dstest_segmentation_config_semantic.txt", "{mjpeg}", "{out}"),
        {},
        configs={"dstest_segmentation_config_semantic.txt": CLASSES},
        files="*.jpg",
        finds=("class maps",),
    ),
    "segmask": App(
        "deepstream-segmask",
        "deepstream_segmask.py",
        ("-i", "{uri}", "-o", "{out}"),
        {},
        configs={"dstest_segmask_config.txt": MASKS_CONFIG.replace("{batch}", "1")},
        finds=("objects", "masks"),
    ),
    "redaction": App(
        "deepstream-imagedata-multistream-redaction",
        "deepstream_imagedata-multistream_redaction.py",
        ("-i", "{uri}", "{uri}"),
        {},
        frames=2 * FRAMES,
        counts=r"Number of Objects=\s*(\d+) Face_count",
        isolated=True,
        configs={"config_infer_primary_peoplenet.txt": THREE_CLASSES},
    ),
    "preprocess": App(
        "deepstream-preprocess-test",
        "deepstream_preprocess_test.py",
        ("-i", "{uri}", "{uri}"),
        {"dstest1_pgie_config.txt": 4},
        frames=2 * FRAMES,
        configs={"config_preprocess.txt": PREPROCESS},
        isolated=True,
    ),
    "ssd-parser": App(
        "deepstream-ssd-parser",
        "deepstream_ssd_parser.py",
        ("{h264}",),
        {},
        counts=r"Frame Number=\d+ Number of Objects=(\d+)",
        finds=("raw outputs", "objects"),
        configs={"dstest_ssd_nopostprocess.txt": SERVER_CONFIG},
    ),
    "rtsp-in": App(
        "deepstream-rtsp-in-rtsp-out",
        "deepstream_test1_rtsp_in_rtsp_out.py",
        ("-i", "{rtsp}", "--rtsp-ts"),
        {"dstest1_pgie_config.txt": 1},
        counts=r"RTSP Timestamp: (?:1970|20\d\d)-",
        isolated=True,
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
        for name, text in app.configs.items():
            (folder / name).write_text(text.format(**values))
    save_color_classes(scratch / "colors.onnx")
    model = scratch / "models" / "ssd" / "1" / "model.onnx"
    model.parent.mkdir(parents=True, exist_ok=True)
    save_ssd_detector(model)
    (scratch / "masks.py").write_text(f"import sys\nsys.path.append({str(SCENE)!r})\n{MASKS}")
    return copy


def elementary(scratch: Path) -> Path:
    """Write the demo scene's video as a bare H.264 stream, and as JPEG images in a row."""
    path = scratch / "conveyor.h264"
    line = f"filesrc location={SCENE}/conveyor.mp4 ! qtdemux ! h264parse ! "
    for tail in (
        f"video/x-h264,stream-format=byte-stream,alignment=au ! filesink location={path}",
        f"avdec_h264 ! jpegenc ! filesink location={path.with_suffix('.mjpeg')}",
    ):
        subprocess.run(["gst-launch-1.0", "-q", *(line + tail).split()], check=True)
    return path


def long_video(scratch: Path, times: int = 40) -> None:
    """Write the demo scene's video many times over, as `long.mp4`."""
    import av

    with av.open(str(scratch / "long.mp4"), "w") as out:
        stream: Any = None
        start = 0
        for _ in range(times):
            with av.open(str(SCENE / "conveyor.mp4")) as video:
                stream = stream or out.add_stream_from_template(video.streams.video[0])
                end = start
                for packet in video.demux(video.streams.video[0]):
                    if packet.pts is None or packet.dts is None:
                        continue
                    packet.pts, packet.dts = packet.pts + start, packet.dts + start
                    end = max(end, packet.pts + (packet.duration or 0))
                    packet.stream = stream
                    out.mux(packet)
                start = end


@dataclass(frozen=True)
class Outcome:
    """What a run gave.

    Attributes:
        frames: that the application reports.
        metadata: kind -> how many passed the element that most of them passed.
        messages: that reached the broker.
    """

    command: str
    code: int
    frames: int
    seconds: float
    output: str
    metadata: dict[str, int]
    messages: int = 0

    def complete(self, app: App) -> bool:
        """True if every frame came, by its prints, or by the elements: its threads break lines."""
        return app.frames in (self.frames, self.metadata.get("frames"))


def ended(command: list[Any], timeout_s: float, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; one that takes too long ends with 124, as by `timeout`.

    Its two outputs come apart: in one pipe they would break each other's lines. What it started
    ends with it, and would else keep the outputs open and the processors busy.
    """
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, start_new_session=True, **pipes, **options) as process:
        try:
            told = process.communicate(timeout=timeout_s)
            code = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            told, code = process.communicate(), 124
    return subprocess.CompletedProcess(command, code, *told)


def run(
    app: App,
    copy: Path,
    scratch: Path,
    video: Path,
    *,
    plain: bool = False,
    timeout_s: float = 240,
) -> Outcome:
    """Run one application as its README says, by `headrace exec --report` unless `plain`."""
    out, report, mqtt_port = scratch / "frames", scratch / "report.json", free_port()
    shutil.rmtree(out, ignore_errors=True)
    report.unlink(missing_ok=True)
    values = {
        "h264": video,
        "uri": (SCENE / "conveyor.mp4").as_uri(),
        "long": (scratch / "long.mp4").as_uri(),
        "out": out,
        "rtsp": f"rtsp://127.0.0.1:{PORT}/video",
        "mjpeg": scratch / "conveyor.mjpeg",
        "mqtt": mqtt_port,
    }
    arguments = [argument.format(**values) for argument in app.arguments]
    counted = [] if plain else ["-m", "headrace", "exec", "--report", str(report)]
    command = [sys.executable, *counted, app.script, *arguments]
    if app.isolated:
        network = "ip link set lo up multicast on && ip route add 224.0.0.0/4 dev lo"
        camera = [sys.executable, SERVER, SCENE / "conveyor.mp4", PORT]
        script = f"{network} && {{ {shlex.join(map(str, camera))} & }}"
        answers = f"(: > /dev/tcp/127.0.0.1/{PORT}) 2> /dev/null"  # of Bash
        script += f" && until {answers}; do sleep 0.1; done && {shlex.join(command)}"
        # The camera ends with the namespace of processes that it was started in.
        command = ["unshare", "-n", "-p", "-f", "--kill-child", "bash", "-c", f"{script}; exit $?"]
    start = time.monotonic()
    with mqtt_messages(mqtt_port) if app.messages else nullcontext([]) as messages:
        done = ended(
            command, timeout_s, cwd=copy / "apps" / app.folder,
            env=os.environ | {"HEADRACE_GST_DISPLAY": "none", "XDG_STATE_HOME": str(scratch)},
        )  # fmt: skip
    found = re.findall(app.counts, done.stdout)
    if app.files:
        found = [path.name for path in out.rglob(app.files)]
    shown = " ".join([app.script, *app.arguments])
    seconds = time.monotonic() - start
    told = done.stdout + done.stderr
    counts = counted_metadata(report)
    return Outcome(shown, done.returncode, len(found), seconds, told, counts, len(messages))


def counted_metadata(report: Path) -> dict[str, int]:
    """Read how many of each kind of metadata a report counts; nothing without one."""
    counts: dict[str, int] = {}
    elements = json.loads(report.read_text())["elements"] if report.is_file() else {}
    for element in elements.values():
        if element["kind"] not in ELEMENTS:  # a tee or a payloader gives a frame several times
            continue
        for kind, number in element["metadata"].items():
            counts[kind] = max(number, counts.get(kind, 0))
    return counts


@contextmanager
def mqtt_messages(port: int) -> Iterator[list[dict[str, Any]]]:
    """Run an MQTT server at a port; the list holds what it gets."""
    import paho.mqtt.client as mqtt

    got: list[dict[str, Any]] = []
    ready = threading.Event()
    server = subprocess.Popen(["mosquitto", "-p", str(port)], stderr=subprocess.DEVNULL)
    reader = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
    reader.on_connect = lambda *_: reader.subscribe("#", 1)
    reader.on_subscribe = lambda *_: ready.set()
    reader.on_message = lambda _c, _d, m: got.append(json.loads(m.payload))
    try:
        for _ in range(100):
            try:
                reader.connect("127.0.0.1", port)
                break
            except OSError:
                time.sleep(0.05)
        reader.loop_start()
        ready.wait(5)
        yield got
        time.sleep(0.5)
    finally:
        reader.disconnect()
        reader.loop_stop()
        server.kill()
        server.wait()


COLUMNS = {
    "frames": "frames", "objects": "objects", "tracked objects": "tracked",
    "classifier results": "classes", "masks": "masks", "class maps": "maps",
    "raw outputs": "tensors",
}  # fmt: skip


def main() -> None:
    """Run the applications that the command line names, or all."""
    options = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    options.add_argument("checkout", type=Path)
    options.add_argument("--plain", action="store_true")
    options.add_argument("--keep", type=Path)
    options.add_argument("names", nargs="*", default=list(APPS))
    asked = options.parse_intermixed_args()
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        copy, video = prepare(asked.checkout, scratch), elementary(scratch)
        long_video(scratch)
        heads = "".join(f"{head:>9}" for head in COLUMNS.values())
        print(f"{'application':16}{'reported':>9}{heads}{'messages':>9}{'seconds':>9}{'exit':>5}")
        for name in asked.names:
            done = run(APPS[name], copy, scratch, video, plain=asked.plain)
            numbers = "".join(f"{done.metadata.get(kind, ''):>9}" for kind in COLUMNS)
            print(
                f"{name:16}{done.frames:9}{numbers}{done.messages or '':>9}"
                f"{done.seconds:9.1f}{done.code:5}\n{'':16} {done.command}",
                flush=True,
            )
            if done.code or not done.complete(APPS[name]):
                print(done.output[-1500:])
            if asked.keep is not None:
                kept = asked.keep / name
                kept.mkdir(parents=True, exist_ok=True)
                (kept / "output.txt").write_text(done.output)
                for found in (scratch / "report.json", scratch / "frames"):
                    if found.is_dir():
                        shutil.copytree(found, kept / found.name, dirs_exist_ok=True)
                    elif found.exists():
                        shutil.copy(found, kept)


if __name__ == "__main__":
    main()
