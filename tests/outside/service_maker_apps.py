"""Runs published applications of the service maker, byte for byte, on the demo scene.

    python -m tests.outside.service_maker_apps FOLDER [NAME…]

FOLDER holds a checkout of `NVIDIA/DeepStream`. The applications name files of an installation by
absolute paths: they run in a namespace in which that folder is a scratch one, with configurations
of the same names for the demo scene's models. Needs root.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.outside.deepstream_apps import (
    DETECTOR,
    FRAMES,
    READER,
    SCENE,
    Outcome,
    elementary,
    ended,
)

_MAKER = "src/service-maker/sources/apps/python"
_REFERENCE = "src/apps/reference_apps/pyservicemaker_sample_apps"
_SAMPLES = "sources/apps/sample_apps"
COUNTS = r"Frame Number=\d+,Vehicle Count=(\d+), Person Count=\d+"
TRACKER = (
    "BaseConfig:\n  minDetectorConfidence: 0.3\nTargetManagement:\n  maxTargetsPerStream: 50\n"
)
SOURCES = """source-list:
- uri: "{uri}"
  sensor-id: UniqueSensorId1
  sensor-name: UniqueSensorName1
- uri: "{uri}"
  sensor-id: UniqueSensorId2
  sensor-name: UniqueSensorName2
source-config:
  source-bin: "{kind}"
  properties:
    {properties}
"""


KAFKA_PORT = 9092


@contextmanager
def kafka_cluster(topic: str) -> Iterator[list[bytes]]:
    """Run librdkafka's mock cluster behind the port that the applications name.

    The list gets the messages of the topic at the end.
    """
    import confluent_kafka as kafka

    made = kafka.Producer({"test.mock.num.brokers": 1})
    brokers = made.list_topics(timeout=5).brokers.values()
    where = next((one.host, one.port) for one in brokers)
    door = socket.create_server(("127.0.0.1", KAFKA_PORT))

    def pump(one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(65536):
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)

    def serve() -> None:
        with suppress(OSError):
            while True:
                one, other = door.accept()[0], socket.create_connection(where)
                for pair in ((one, other), (other, one)):
                    threading.Thread(target=pump, args=pair, daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    messages: list[bytes] = []
    try:
        yield messages
        reader = kafka.Consumer({"bootstrap.servers": f"{where[0]}:{where[1]}", "group.id": "t"})
        partitions = made.list_topics(timeout=5).topics[topic].partitions
        reader.assign([kafka.TopicPartition(topic, number, 0) for number in partitions])
        while found := reader.consume(1000, 1.0):
            messages += [one.value() for one in found if not one.error()]
        reader.close()
    finally:
        door.shutdown(socket.SHUT_RDWR)  # ends the accept, too
        door.close()


@dataclass(frozen=True)
class MakerApp:
    """One application.

    Attributes:
        script: of the checkout.
        arguments: with `{h264}`, `{uri}`, `{static}` and `{dynamic}` for the video, its address,
            and lists of sources.
        frames: how many the application reports.
        counts: what is counted in its output, a frame each.
        needs: packages that it imports beside the service maker.
        topic: of Kafka that gets its messages.
    """

    script: str
    arguments: tuple[str, ...]
    frames: int = FRAMES
    counts: str = COUNTS
    needs: tuple[str, ...] = ()
    topic: str = ""

    def missing(self) -> list[str]:
        """Packages that are not installed."""
        return [name for name in self.needs if importlib.util.find_spec(name) is None]


def _apps() -> dict[str, MakerApp]:
    found = {}
    for api in ("pipeline", "flow"):
        torch = ("torch", "torchvision") if api == "pipeline" else ()
        base = f"{_MAKER}/{api}_api/deepstream"
        video, uris = ("{h264}",), ("{uri}", "{uri}")
        found |= {
            f"{api}-test1": MakerApp(f"{base}_test1_app/deepstream_test1.py", video, needs=torch),
            f"{api}-test2": MakerApp(f"{base}_test2_app/deepstream_test2.py", video),
            f"{api}-test3": MakerApp(f"{base}_test3_app/deepstream_test3.py", uris, 2 * FRAMES),
            f"{api}-test4": MakerApp(
                f"{base}_test4_app/deepstream_test4.py", video, topic="test4app"
            ),
            f"{api}-appsrc": MakerApp(
                f"{base}_appsrc_test_app/deepstream_appsrc_test.py", ("{uri}",), FRAMES,
                r"generated: (\d+)", ("torch",),
            ),
            f"{api}-analytics": MakerApp(
                f"{_REFERENCE}/{api}_api/deepstream_nvdsanalytics_test_app/"
                "deepstream_nvdsanalytics.py", uris,
                FRAMES if api == "pipeline" else 2 * FRAMES,  # counted behind, before the tiler
            ),
        }  # fmt: skip
        for name in ("test1", "test2", "test3", "test4") if api == "pipeline" else ():
            folder = f"{base}_{name}_app"
            needs = torch if name == "test1" else ()
            config = f"{{checkout}}/{folder}/ds{name}_config_x86.yaml"
            frames = 4 * FRAMES if name == "test3" else FRAMES
            script = f"{folder}/deepstream_{name}.py"
            topic = "test4app" if name == "test4" else ""
            found[f"{name}-yaml"] = MakerApp(script, (config,), frames, COUNTS, needs, topic)
    five = f"{_MAKER}/pipeline_api/deepstream_test5_app"
    found["test5-yaml"] = MakerApp(
        f"{five}/deepstream_test5.py",
        ("-c", f"{{checkout}}/{five}/test5_b2_x86.yaml", "-s", "{static}"),
        2 * FRAMES, r"Source id = \d+ Frame_num = (\d+)", topic="test5app",
    )  # fmt: skip
    found["test5-dynamic"] = MakerApp(
        f"{five}/deepstream_test5.py",
        ("-c", f"{{checkout}}/{five}/test5_b16_dynamic_source_x86.yaml", "-s", "{dynamic}"),
        2 * FRAMES, r"Source id = \d+ Frame_num = (\d+)", topic="test5app",
    )  # fmt: skip
    return found


APPS = _apps()


def as_yaml(text: str) -> str:
    """Turn an INI config into nvinfer's YAML."""
    lines = []
    for line in text.splitlines():
        if line.startswith("["):
            lines.append(f"{line.strip('[]')}:")
        elif line:
            key, _, value = line.partition("=")
            lines.append(f"  {key}: {value}")
    return "\n".join(lines) + "\n"


def install(checkout: Path, scratch: Path) -> tuple[Path, dict[str, object]]:
    """Write a folder like that of an installation; returns it, and values for arguments."""
    root = scratch / "deepstream"
    video = elementary(scratch)
    uri = (SCENE / "conveyor.mp4").as_uri()
    values = {"scene": SCENE, "scratch": scratch}
    apps, samples = root / _SAMPLES, root / "samples"
    files: dict[Path, str] = {}
    for number, batch in ((1, 1), (2, 1), (3, 2), (4, 1)):
        folder = apps / f"deepstream-test{number}"
        files[folder / f"dstest{number}_pgie_config.yml"] = as_yaml(
            DETECTOR.format(batch=batch, **values)
        )
    for number in (1, 2):
        name = f"dstest2_sgie{number}_config.yml"
        files[apps / "deepstream-test2" / name] = as_yaml(
            READER.format(number=number + 1, **values)
        )
    files[apps / "deepstream-test4" / "dstest4_msgconv_config.yml"] = "sensor0:\n  enable: 1\n"
    five = apps / "deepstream-test5" / "configs" / "dstest5_msgconv_sample_config.txt"
    files[five] = "[sensor0]\nenable=1\n"
    files[root / "sources/libs/kafka_protocol_adaptor/cfg_kafka.txt"] = "[message-broker]\n"
    configs = samples / "configs" / "deepstream-app"
    files[configs / "config_tracker_NvDCF_perf.yml"] = TRACKER
    files[configs / "config_infer_primary.yml"] = as_yaml(DETECTOR.format(batch=2, **values))
    for number, name in ((4, "types"), (6, "make")):
        path = configs / f"config_infer_secondary_vehicle{name}.yml"
        files[path] = as_yaml(READER.format(number=number, **values))
    analytics = apps / "deepstream-nvdsanalytics-test"
    files[analytics / "nvdsanalytics_pgie_config.txt"] = DETECTOR.format(batch=2, **values)
    published = checkout / "src/apps/sample_apps/deepstream-nvdsanalytics-test"
    files[analytics / "config_nvdsanalytics.txt"] = (
        published / "config_nvdsanalytics.txt"
    ).read_text()
    for kind, properties in (
        ("nvurisrcbin", "file-loop: false"),
        (
            "nvmultiurisrcbin",
            "port: 7000\n    max-batch-size: 16\n    width: 1920\n    height: 1080",
        ),
    ):
        name = "static" if kind == "nvurisrcbin" else "dynamic"
        text = SOURCES.format(uri=uri, kind=kind, properties=properties)
        files[scratch / f"{name}.yaml"] = text
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    streams = samples / "streams"
    streams.mkdir()
    (streams / "sample_720p.h264").symlink_to(video)
    (streams / "sample_1080p_h264.mp4").symlink_to(SCENE / "conveyor.mp4")
    return root, {
        "h264": video, "uri": uri, "checkout": checkout, "static": scratch / "static.yaml",
        "dynamic": scratch / "dynamic.yaml",
    }  # fmt: skip


def run(
    app: MakerApp, checkout: Path, root: Path, values: dict[str, object], timeout_s: float = 240
) -> Outcome:
    """Run one application as its README says."""
    arguments = [argument.format(**values) for argument in app.arguments]
    inner = shlex.join([sys.executable, str(checkout / app.script), *arguments])
    place = "mount -t tmpfs none /opt && mkdir -p /opt/nvidia/deepstream"
    script = (
        f"{place} && ln -s {shlex.quote(str(root))} /opt/nvidia/deepstream/deepstream && {inner}"
    )
    start = time.monotonic()
    with kafka_cluster(app.topic) if app.topic else nullcontext([]) as messages:
        done = ended(
            ["unshare", "-m", "bash", "-c", script], timeout_s, cwd=root.parent,
            env=os.environ | {"HEADRACE_GST_DISPLAY": "none", "XDG_STATE_HOME": str(root.parent)},
        )  # fmt: skip
    found = re.findall(app.counts, done.stdout)
    seconds = time.monotonic() - start
    shown = " ".join([app.script, *app.arguments])
    counted = {"frames": len(found), "objects": sum(map(int, found))}
    output = done.stdout + done.stderr
    return Outcome(
        shown, done.returncode, len(found), seconds, output, counted, messages=len(messages)
    )


def main() -> None:
    """Run the applications that the command line names, or all."""
    checkout, names = Path(sys.argv[1]), sys.argv[2:] or list(APPS)
    with tempfile.TemporaryDirectory() as folder:
        root, values = install(checkout, Path(folder))
        print(f"{'application':20} {'frames':>7} {'counted':>8} {'seconds':>8} {'exit':>5}")
        for name in names:
            if lacking := APPS[name].missing():
                print(f"{name:20} needs {', '.join(lacking)}")
                continue
            done = run(APPS[name], checkout, root, values)
            counted = done.metadata["objects"]
            print(
                f"{name:20} {done.frames:7} {counted:8} {done.seconds:8.1f} {done.code:5}",
                flush=True,
            )
            if done.messages:
                print(f"{'':20} {done.messages:7} messages")
            if done.code or done.frames != APPS[name].frames or "Traceback" in done.output:
                print(done.output[-2500:])


if __name__ == "__main__":
    main()
