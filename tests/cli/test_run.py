"""`headrace run` with several models, trackers, sources, and with pipeline files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image

from headrace.media import open_source
from tests.cli.processes import started
from tests.inside import headrace
from tests.media.conftest import write_clip

Config = Callable[..., Path]


def images(folder: Path, count: int, value: int) -> Path:
    folder.mkdir()
    for i in range(count):
        Image.new("RGB", (64, 48), (value, 0, 0)).save(folder / f"{i}.png")
    return folder


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def scene(mean_config: Config, tmp_path: Path) -> Path:
    """pgie.txt, sgie.txt (also on its objects) and the sources left/ (4 frames), right/ (3)."""
    config = mean_config()
    config.rename(tmp_path / "pgie.txt")
    text = (tmp_path / "pgie.txt").read_text()
    (tmp_path / "sgie.txt").write_text(
        text.replace("gie-unique-id=1", "gie-unique-id=2\nprocess-mode=2\noperate-on-gie-id=1")
    )
    images(tmp_path / "left", 4, 255)
    images(tmp_path / "right", 3, 128)
    return tmp_path


def test_a_scale_of_nothing_is_said_once_and_outputs_that_arrive_are_said_to(
    scene: Path,
) -> None:
    done = headrace(
        "run", scene / "pgie.txt", scene / "left", "-o", "o.jsonl", "-o", "udp://127.0.0.1:9",
        "--set", "net-scale-factor=0", cwd=scene,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("1 is used") + done.stderr.count("1.0 is used") == 1
    assert "wrote o.jsonl" in done.stdout or f"wrote {scene / 'o.jsonl'}" in done.stdout
    assert "sent images to udp://127.0.0.1:9" in done.stdout
    assert "wrote udp" not in done.stdout


def test_two_models_two_sources_a_tracker_and_all_kinds_of_outputs(scene: Path) -> None:
    done = headrace(
        "run", "pgie.txt", "sgie.txt", "left", "right", "--tracker", "iou:min_hits=1",
        "-o", "all.jsonl", "-o", "{source}.jsonl", "-o", "n{id}.json", "-o", "tiles.mp4", cwd=scene,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = records(scene / "all.jsonl")
    assert len(found) == 7
    for name, count in (("left", 4), ("right", 3)):
        own = [r for r in found if r["source"].startswith(name)]
        assert [r["frame"] for r in own] == list(range(count))
        assert own == records(scene / f"{name}.jsonl")
        assert len({r["objects"][0]["object_id"] for r in own}) == 1
        first, second = own[0]["objects"]
        assert (first["component_id"], second["component_id"]) == (1, 2)
        assert second["parent"] == 0
    ids = {r["objects"][0]["object_id"] for r in found}
    assert len(ids) == 2  # never the same in two sources
    assert [len(json.loads((scene / f"n{i}.json").read_text())["images"]) for i in (0, 1)] == [4, 3]
    with av.open(str(scene / "tiles.mp4")) as video:
        frames = list(video.decode(video=0))
    assert len(frames) == 4  # one for each buffer
    assert (frames[0].width, frames[0].height) == (1280, 720)
    assert "7 frames" in done.stdout
    assert "0: left: 4 frames, ended" in done.stdout
    assert "1: right: 3 frames, ended" in done.stdout


def test_sources_of_one_name_get_outputs_of_their_own(scene: Path) -> None:
    done = headrace("run", "pgie.txt", "left", "left", "-o", "{source}.jsonl", cwd=scene)
    assert done.returncode == 0, done.stderr
    written = sorted(p.name for p in scene.glob("*.jsonl"))
    assert len(written) == 2
    assert [len(records(scene / name)) for name in written] == [4, 4]


def test_a_pipeline_file_and_what_replaces_it(scene: Path) -> None:
    (scene / "pipeline.yml").write_text(
        "sources: [left, {uri: right, name: 'the right one'}]\nmodels: [pgie.txt]\n"
        "tracker: iou:min_hits=1\nsinks: [all.jsonl]\n"
    )
    done = headrace("run", "pipeline.yml", cwd=scene)
    assert done.returncode == 0, done.stderr
    assert len(records(scene / "all.jsonl")) == 7
    assert "1: the right one: 3 frames, ended" in done.stdout
    done = headrace("run", "pipeline.yml", "left", "-o", "only.jsonl", "--limit", 2, cwd=scene)
    assert done.returncode == 0, done.stderr
    assert len(records(scene / "only.jsonl")) == 2
    assert len(records(scene / "all.jsonl")) == 7
    refused = headrace("run", "pipeline.yml", "sgie.txt", "left", cwd=scene)
    assert refused.returncode == 2
    assert "names its configs itself" in refused.stderr


def test_what_is_wrong_in_a_pipeline_file_is_named_with_its_line(scene: Path) -> None:
    (scene / "pipeline.yml").write_text("sources: [left]\nmodels: [pgie.txt]\ntraker: iou\n")
    done = headrace("run", "pipeline.yml", cwd=scene)
    assert done.returncode == 3
    assert "pipeline.yml:3" in done.stderr
    assert "tracker" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.fixture
def app(scene: Path) -> Path:
    """A deepstream-app config of the scene; one source is a video."""
    command = ["-o", scene / "clip.mp4", "--limit", 5]
    assert headrace("run", "pgie.txt", "left", *command, cwd=scene).returncode == 0
    path = scene / "app.txt"
    path.write_text(
        "[application]\nenable-perf-measurement=1\nperf-measurement-interval-sec=1\n"
        "[source0]\nenable=1\ntype=3\nuri=file://clip.mp4\nnum-sources=2\n"
        "[sink0]\nenable=1\ntype=3\noutput-file=out.mp4\ncodec=1\n"
        "[sink1]\nenable=1\ntype=2\n"
        "[tiled-display]\nenable=1\nrows=1\ncolumns=2\nwidth=320\nheight=120\n"
        "[osd]\nenable=1\nborder-width=2\n"
        "[streammux]\nbatch-size=2\nwidth=64\nheight=48\n"
        "[primary-gie]\nenable=1\nconfig-file=pgie.txt\n"
        "[secondary-gie0]\nenable=1\nconfig-file=sgie.txt\ngie-unique-id=5\noperate-on-gie-id=1\n"
    )
    return path


def test_a_deepstream_app_config_runs_and_names_what_does_not_apply(app: Path) -> None:
    done = headrace("run", app, "--json", cwd=app.parent)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert [s["frames"] for s in report["sources"]] == [4, 4]
    assert [m["component_id"] for m in report["models"]] == [1, 5]
    told = " ".join(n["message"] for n in report["notices"])
    assert "sink1" in told or "type=2" in told
    with av.open(report["outputs"][0]) as video:
        assert [(f.width, f.height) for f in video.decode(video=0)] == [(320, 120)] * 4


def test_a_bad_source_beside_a_good_one_is_told_and_left(scene: Path) -> None:
    made = headrace("run", "pgie.txt", "right", "-o", "whole.mp4", "-q", cwd=scene)
    assert made.returncode == 0, made.stderr
    whole = (scene / "whole.mp4").read_bytes()
    (scene / "cut.mp4").write_bytes(whole[: len(whole) // 2])
    (scene / "garbage.mp4").write_bytes(b"\0\0\0\x18ftypmp42" + bytes(3000))
    sources = ["left", "cut.mp4", "garbage.mp4", "rtsp://u:secret@127.0.0.1:9/x", "whole.mp4"]
    (scene / "pipeline.yml").write_text(
        f"sources: [left, cut.mp4, garbage.mp4, {{uri: '{sources[3]}', reconnect-attempts: 1,"
        " reconnect-interval-s: 0.1}, whole.mp4]\n"
        "models: [pgie.txt]\nsinks: [all.jsonl, '{id}.jsonl', tiles.mp4, 'images:drawn']\n"
    )
    done = headrace("run", "pipeline.yml", "--json", cwd=scene)
    assert done.returncode == 6, done.stderr
    assert "Traceback" not in done.stderr
    assert "secret" not in done.stderr + done.stdout
    for name in ("cut.mp4", "garbage.mp4", "127.0.0.1:9/x"):
        assert sum(f"{name}: failed after" in n for n in done.stderr.splitlines()) == 1
    report = json.loads(done.stdout)
    states = [(s["frames"], s["state"]) for s in report["sources"]]
    assert states == [(4, "ended"), (0, "failed"), (0, "failed"), (0, "failed"), (3, "ended")]
    assert len(records(scene / "all.jsonl")) == 7
    assert [len(records(scene / f"{i}.jsonl")) for i in (0, 4)] == [4, 3]
    strict = headrace("run", "pipeline.yml", "--strict", cwd=scene)
    assert strict.returncode == 7


def test_sources_that_are_not_there_are_refused_at_once(scene: Path) -> None:
    for name in ("gone.mp4", "gone*.png"):
        done = headrace("run", "pgie.txt", "left", name, "-o", "all.jsonl", cwd=scene)
        assert done.returncode == 6
        assert name in done.stderr
        assert not (scene / "all.jsonl").exists()


def test_only_bad_sources_are_an_error(scene: Path) -> None:
    (scene / "bad.mp4").write_bytes(bytes(3000))
    done = headrace("run", "pgie.txt", "bad.mp4", "bad.mp4", "-o", "all.jsonl", cwd=scene)
    assert done.returncode == 6
    assert done.stderr.startswith("error: ")
    assert not (scene / "all.jsonl").exists()


def test_a_source_that_breaks_off_does_not_disturb_the_others(scene: Path) -> None:
    fifo = scene / "pipe.mkv"
    os.mkfifo(fifo)
    made = headrace("run", "pgie.txt", "right", "-o", "right.mkv", cwd=scene)
    assert made.returncode == 0, made.stderr
    whole = (scene / "right.mkv").read_bytes()
    out = scene / "all.jsonl"
    process = subprocess.Popen(
        [sys.executable, "-m", "headrace", "run", "pgie.txt", "left", "pipe.mkv", "-o", str(out)],
        cwd=scene,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with open(fifo, "wb") as pipe:
        pipe.write(b"\x00garbage" * 2000 + whole[:50])
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 6, stderr
    assert "Traceback" not in stderr
    assert "pipe.mkv" in stderr
    assert "0: left: 4 frames, ended" in stdout
    assert "1: pipe.mkv: 0 frames, failed" in stdout
    assert [r["source"] for r in records(out)] == [f"left/{i}.png" for i in range(4)]


def test_an_unquoted_pattern_is_explained(scene: Path) -> None:
    names = sorted(p.relative_to(scene) for p in (scene / "left").iterdir())
    done = headrace("run", "pgie.txt", *names, cwd=scene)
    assert done.returncode == 2
    assert "4 images" in done.stderr
    assert "quoted" in done.stderr
    assert headrace("run", "pgie.txt", names[0], "-q", cwd=scene).returncode == 0


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["pgie.txt", "sgie.txt"], "SOURCE"),
        (["pgi.txt"], "pgi.txt: there is no such config file"),
        (["pgie.txt", "nowhere.yml"], "nowhere.yml: there is no such config file"),
        (["pgie.txt", "left", "sgie.txt"], "sgie.txt stands behind a source"),
        (["left", "pgie.txt"], "left stands where a config should"),
    ],
)
def test_arguments_in_the_wrong_order(scene: Path, args: list[str], words: str) -> None:
    done = headrace("run", *args, cwd=scene)
    assert done.returncode in (2, 3)
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unknown_tracker_or_setting_names_those_there_are(scene: Path) -> None:
    for tracker, words in (("ious", "did you mean iou"), ("iou:max_agee=3", "max_age")):
        done = headrace("run", "pgie.txt", "left", "--tracker", tracker, "-o", "a.jsonl", cwd=scene)
        assert done.returncode == 3, done.stderr
        assert words in done.stderr
        assert not (scene / "a.jsonl").exists()


def test_strict_refuses_what_cannot_be_told_apart(scene: Path) -> None:
    (scene / "sgie.txt").write_text((scene / "sgie.txt").read_text().replace("id=2", "id=1"))
    args = ["run", "pgie.txt", "sgie.txt", "left", "-o", "a.jsonl"]
    done = headrace(*args, "--strict", cwd=scene)
    assert done.returncode == 7
    assert "cannot be told apart" in done.stderr
    assert not (scene / "a.jsonl").exists()
    done = headrace(*args, cwd=scene)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("cannot be told apart") == 1


def test_json_names_sources_models_and_every_notice_once(scene: Path) -> None:
    done = headrace(
        "run", "pgie.txt", "sgie.txt", "left", "right", "--tracker", "iou", "--json", cwd=scene
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert [(s["name"], s["frames"], s["state"]) for s in report["sources"]] == [
        ("left", 4, "ended"),
        ("right", 3, "ended"),
    ]
    assert [m["inferred"] for m in report["models"]] == [7, 7]
    notices = [(n["level"], n["message"], n["where"]) for n in report["notices"]]
    assert len(notices) == len(set(notices)) > 0


@pytest.mark.slow
def test_interrupt_finishes_the_files_of_all_sources(scene: Path) -> None:
    for name in ("a", "b"):
        (scene / name).mkdir()
        for i in range(3000):
            (scene / name / f"{i}.png").symlink_to(scene / "left" / "0.png")
    outs = ["-o", "{source}.jsonl", "-o", "all.jsonl", "-o", "tiles.mp4", "-o", "{source}.mp4"]
    process = started("run", "pgie.txt", "a", "b", *outs, cwd=scene)
    watched = scene / "a.jsonl"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (watched.exists() and watched.stat().st_size > 2000):
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert "stopped after" in stdout
    counts = {name: len(records(scene / f"{name}.jsonl")) for name in ("a", "b")}
    assert all(0 < count < 3000 for count in counts.values())
    assert len(records(scene / "all.jsonl")) == sum(counts.values())
    for name, count in counts.items():
        with open_source(str(scene / f"{name}.mp4")) as video:
            assert sum(1 for _ in video) == count
    with open_source(str(scene / "tiles.mp4")) as video:
        assert sum(1 for _ in video) == max(counts.values())


def test_outputs_are_the_same_as_in_runs_of_their_own(scene: Path) -> None:
    rng = np.random.default_rng(1)
    for name in ("left", "right"):
        for path in (scene / name).iterdir():
            Image.fromarray(rng.integers(100, 255, (48, 64, 3), np.uint8)).save(path)
    both = headrace("run", "pgie.txt", "left", "right", "-o", "{source}.jsonl", cwd=scene)
    assert both.returncode == 0
    for name in ("left", "right"):
        assert headrace("run", "pgie.txt", name, "-o", "alone.jsonl", cwd=scene).returncode == 0
        found = (scene / f"{name}.jsonl").read_text().replace('"source_id":1', '"source_id":0')
        assert (scene / "alone.jsonl").read_text() == found


@pytest.mark.slow
@pytest.mark.parametrize("kept", ["", "keep-open: true\n"])
def test_a_stream_that_is_away_is_told_while_the_run_waits_for_it(scene: Path, kept: str) -> None:
    (scene / "pipeline.yml").write_text(
        f"{kept}sources:\n  - left\n  - {{uri: 'rtsp://127.0.0.1:1/x', reconnect-interval-s: 60}}\n"
        "models: pgie.txt\n"
    )
    process = started("run", "pipeline.yml", cwd=scene)
    assert process.stderr is not None
    told = next(line for line in process.stderr if "is not there yet" in line)
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate(timeout=60)
    assert told.startswith("warning: rtsp://127.0.0.1:1/x: there was no connection")
    assert process.returncode == 130, rest
    assert rest.count("was not there after") == 1
    assert rest.count("not there yet") == 0


def test_keys_and_thresholds_set_on_the_command_line(scene: Path) -> None:
    args = ("run", "pgie.txt", "right", "-q", "-o", "o.jsonl")
    assert headrace(*args, "--conf", "0.4", cwd=scene).returncode == 0
    assert [len(r["objects"]) for r in records(scene / "o.jsonl")] == [1] * 3  # confidence 0.5
    assert headrace(*args, "--conf", "0.6", cwd=scene).returncode == 0
    assert [len(r["objects"]) for r in records(scene / "o.jsonl")] == [0] * 3
    (scene / "other.txt").write_text("parcel\n")
    done = headrace(*args, "--labels", "other.txt", "--set", "interval=1", cwd=scene)
    assert done.returncode == 0, done.stderr
    found = [[o["label"] for o in r["objects"]] for r in records(scene / "o.jsonl")]
    assert found == [["parcel"], [], ["parcel"]]


def test_an_engine_is_that_of_the_keys_that_were_set(scene: Path) -> None:
    for value in (2, 4):
        done = headrace("run", "pgie.txt", "right", "--set", f"batch-size={value}", cwd=scene)
        assert done.returncode == 0, done.stderr
        assert list(scene.glob(f"mean.onnx_b{value}_*.engine"))
    shown = headrace("build", "pgie.txt", "--set", "batch-size=2", cwd=scene)
    assert "_b2_" in shown.stdout
    assert "loaded" in shown.stderr


def test_of_several_models_a_number_names_one(scene: Path) -> None:
    args = ("run", "pgie.txt", "sgie.txt", "right", "-q", "-o", "o.jsonl")
    done = headrace(*args, "--conf", "0.6", cwd=scene)
    assert done.returncode == 3
    assert "--conf 0.6: there are 2 models: 1 is pgie.txt, 2 is sgie.txt" in done.stderr
    assert "--conf 1:0.6" in done.stderr
    done = headrace(*args, "--conf", "2:0.6", cwd=scene)
    assert done.returncode == 0, done.stderr
    ids = {o["component_id"] for r in records(scene / "o.jsonl") for o in r["objects"]}
    assert ids == {1}


def test_the_command_line_wins_over_a_pipeline_file(scene: Path) -> None:
    (scene / "p.yml").write_text(
        "sources: [right]\nmodels:\n  - config: pgie.txt\n    interval: 1\n    batch-size: 2\n"
        "sinks: [o.jsonl]\n"
    )
    done = headrace("run", "p.yml", "--set", "interval=0", "-q", cwd=scene)
    assert done.returncode == 0, done.stderr
    assert [len(r["objects"]) for r in records(scene / "o.jsonl")] == [1] * 3
    assert list(scene.glob("mean.onnx_b2_*.engine"))


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (("--set", "batch-siez=2"), "--set: batch-siez is not a key.\n  did you mean batch-size?"),
        (("--set", "batch-size"), "--set: 'batch-size' is not key=value"),
        (("--set", "batch-size=two"), "--set: batch-size=two is not an integer"),
        (("--conf", "2"), "--conf: 2 is not in range"),
        (("--labels", "gone.txt"), "--labels: labelfile-path=gone.txt: there is no such file"),
    ],
)
@pytest.mark.parametrize("command", ["run", "show"])
def test_what_cannot_be_set_is_refused(
    scene: Path, command: str, option: tuple[str, str], words: str
) -> None:
    sources = ("right",) if command == "run" else ()
    done = headrace(command, "pgie.txt", *sources, *option, cwd=scene)
    assert done.returncode == 3, done.stdout
    assert words in done.stderr


@pytest.mark.parametrize("command", ["build", "trace-plugins"])
def test_commands_without_results_set_keys_alone(scene: Path, command: str) -> None:
    assert "No such option" in headrace(command, "pgie.txt", "--conf", "1", cwd=scene).stderr
    done = headrace(command, "pgie.txt", "--set", "batch-siez=2", cwd=scene)
    assert done.returncode == 3
    assert "did you mean batch-size?" in done.stderr


def test_files_that_are_no_configs_have_no_keys(scene: Path) -> None:
    for command in ("show", "bench", "trace-plugins"):
        done = headrace(command, "mean.onnx", "--set", "batch-size=2", cwd=scene)
        assert done.returncode == 3
        assert "no config" in done.stderr


def test_the_reason_for_no_objects_stands_behind_them(scene: Path) -> None:
    keys = "[class-attrs-all]\ndetected-max-w=3\n"
    (scene / "small.txt").write_text((scene / "pgie.txt").read_text() + keys)
    done = headrace("run", "small.txt", "sgie.txt", "left", cwd=scene)
    assert done.returncode == 0, done.stderr
    found, why, first, second, end, *_ = done.stdout.splitlines()
    assert end.startswith("done: ")
    assert found.startswith("found no objects: detected-max-w=3 dropped all 4 boxes (thing 4)")
    assert why.startswith("  sgie.txt: no objects came from the models before it in 4 frames")
    assert first.startswith("  small.txt: 4 inferred, 4 boxes parsed")
    assert second == "  sgie.txt: 0 inferred"


def test_a_secondary_model_that_inferred_nothing_says_why(scene: Path) -> None:
    text = (
        (scene / "sgie.txt")
        .read_text()
        .replace("[property]", "[property]\ninput-object-min-width=99")
    )
    (scene / "sgie.txt").write_text(text)
    done = headrace("run", "pgie.txt", "sgie.txt", "left", cwd=scene)
    assert done.returncode == 0, done.stderr
    why = done.stdout.splitlines()[1]
    assert why == "  sgie.txt: input-object-min-width=99: the widest of 4 objects is 32x24 pixels"


USUAL_APP = """\
[application]
enable-perf-measurement=1
perf-measurement-interval-sec=5
[tiled-display]
enable=1
rows=0
columns=0
gpu-id=0
[source0]
enable=1
type=3
uri=file://v.mp4
num-sources=2
cudadec-memtype=0
[sink0]
enable=1
type=2
sync=1
gpu-id=0
[sink1]
enable=0
type=4
rtsp-port=8554
[osd]
enable=1
text-color=1;1;1;1;
show-clock=0
clock-x-offset=800
[streammux]
live-source=0
batch-size=2
batched-push-timeout=40000
width=1920
height=1080
enable-padding=0
nvbuf-memory-type=0
nvbuf-memory-type=0
[primary-gie]
enable=1
config-file=config.txt
batch-size=2
bbox-border-color0=1;0;0;1
gie-unique-id=1
nvbuf-memory-type=0
[tracker]
enable=1
tracker-width=640
tracker-height=384
ll-lib-file=/opt/nvidia/deepstream/deepstream/lib/libnvds_nvmultiobjecttracker.so
ll-config-file=tracker.yml
gpu-id=0
[tests]
file-loop=0
"""
USUAL_TRACKER = """\
# settings of the tracker
%YAML:1.0
---
BaseConfig:
  minDetectorConfidence: 0
TargetManagement:
  maxShadowTrackingAge: 30
"""


def test_a_usual_application_file_passes_strict(mean_config: Config, tmp_path: Path) -> None:
    config = mean_config(network_mode=2, workspace_size=100)
    config.write_text(config.read_text() + "gpu-id=0\ngpu-id=0\n")
    (tmp_path / "app.txt").write_text(USUAL_APP)
    (tmp_path / "tracker.yml").write_text(USUAL_TRACKER)
    write_clip(tmp_path / "v.mp4", 5)
    done = headrace("run", "app.txt", "--strict", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "done: 10 frames" in done.stdout
    assert "warning" not in done.stderr


def test_the_page_is_an_output_too(scene: Path) -> None:
    words = ("run", "pgie.txt", "right", "-o", "view:127.0.0.1:0", "-o", "x.jsonl")
    done = headrace(*words, cwd=scene)
    assert done.returncode == 0, done.stderr
    assert "watch it at http://127.0.0.1:" in done.stderr
    assert (scene / "x.jsonl").read_text().count("\n") > 0
    done = headrace(*words, "--view", cwd=scene)
    assert done.returncode == 2
    assert "a run has one page: give --view or -o view: once" in done.stderr


@pytest.mark.slow
def test_messages_that_wait_are_counted_and_give_an_exit_code(scene: Path) -> None:
    from tests.media.messages.rogue import rogue

    with rogue("webhook+http", "endless") as port:
        out = f"webhook+http://127.0.0.1:{port}/t?every=frame&spool=spool"
        done = headrace("run", "pgie.txt", "left", "-o", out, "--json", cwd=scene)
    assert done.returncode == 9, done.stderr
    report = json.loads(done.stdout)
    (delivery,) = report["messages"]
    assert (delivery["sent"], delivery["waiting"], delivery["lost"]) == (0, 4, 0)
    assert delivery["failures"] > 0
    assert "more than 64 kB" in delivery["last_error"]
    codes = [notice["code"] for notice in report["notices"]]
    assert codes.count("messages-waiting") == codes.count("connection-lost") == 1
    assert "Traceback" not in done.stderr
