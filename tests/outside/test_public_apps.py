"""Public applications in Python by plain `python`, byte for byte, each in a root of its own."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from headrace.gstreamer.pyds.loading import provide_bindings
from tests.outside import deepstream_apps as base
from tests.outside.c_apps import MASKS_CONFIG, POSE, TRACK
from tests.outside.conftest import checkout
from tests.outside.public_apps import APPS, SAMPLES, App
from tests.outside.service_maker_apps import TRACKER, as_yaml

COUNTER = Path(__file__).with_name("counter")
CONFIGS = {
    "detector": base.DETECTOR, "reader": base.READER, "classes": base.CLASSES,
    "masks": base.MASKS_CONFIG, "pose": MASKS_CONFIG.replace("/masks.py", "/pose.py"),
    "tracker": TRACK, "preprocess": base.PREPROCESS,
    "tensors": base.DETECTOR.replace("y]\n", "y]\nnetwork-type=100\noutput-tensor-meta=1\n"),
}  # fmt: skip
KINDS = {"1": "reader", "2": "classes", "3": "masks", "100": "tensors"}
MODELS = ("onnx-file", "model-engine-file", "model-file", "tlt-encoded-model", "custom-network-",
          "num-detected-classes", "network-type", "net-scale-factor")  # fmt: skip
SUFFIXES = {".txt", ".yml", ".yaml", ".cfg", ".conf", ".ini", ".config"}
ROOT = """set -e
for d in /*; do
  if [ -L $d ]; then cp -P $d {root}/
  elif [ -d $d ]; then
    mkdir -p {root}$d
    case $d in /opt|/home|/app) ;; *) mount --rbind $d {root}$d;; esac
  fi
done
ip link set lo up multicast on
ip route add 224.0.0.0/4 dev lo
{camera}
set +e
chroot {root} bash -c {inner}
exit $?
"""


def _value(text: str, name: str) -> str:
    found = re.search(rf"^\s*{name}\S*\s*[=:]\s*(\S+)", text, re.M)
    return found.group(1) if found else ""


def config(kind: str, media: Path, gie: str = "1", on: str = "1", batch: str = "1") -> str:
    """A configuration of the demo scene of some kind."""
    numbers = {"number": gie, "batch": batch, "scene": base.SCENE, "scratch": media}
    text = CONFIGS[kind].format(**numbers)
    text = text.replace("gie-unique-id=1\n", f"gie-unique-id={gie}\n", 1)
    return text.replace("operate-on-gie-id=1", f"operate-on-gie-id={on}")


def replacement(text: str, media: Path) -> str | None:
    """What stands in for a configuration of the author's; None for other files."""
    yaml = re.search(r"^property:", text, re.M)
    if not yaml and "[property]" not in text:
        return None
    if _value(text, "network-input-shape"):
        kind = "preprocess"
    elif not any(_value(text, name) for name in MODELS):
        return None
    elif _value(text, "process-mode") == "2" or _value(text, "operate-on-gie") not in ("", "-1"):
        kind = "reader"
    else:
        kind = KINDS.get(_value(text, "network-type"), "detector")
    on, batch = _value(text, "operate-on-gie") or "1", _value(text, "batch-size") or "1"
    ours = config(kind, media, _value(text, "gie-unique-id") or "1", on, batch)
    classes = int(_value(text, "num-detected-classes") or 6)
    if kind == "detector" and classes < 4:
        ours = ours.replace("ids=4;5", "ids=" + ";".join(map(str, range(classes, 6))))
    return as_yaml(ours) if yaml else ours


def replace_configs(folder: Path, media: Path) -> None:
    """Let every configuration below a folder name the demo scene's models."""
    for path in folder.rglob("*"):
        if path.suffix in SUFFIXES and path.is_file() and path.stat().st_size < 100_000:
            ours = replacement(path.read_text(errors="replace"), media)
            if ours is not None:
                path.write_text(ours)


@pytest.fixture(scope="module")
def media(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo scene's videos, models and parsers."""
    if not provide_bindings() or not all(map(shutil.which, ("gst-launch-1.0", "unshare"))):
        pytest.skip("needs GStreamer, and unshare as root")
    folder = tmp_path_factory.mktemp("media")
    base.elementary(folder)
    base.save_color_classes(folder / "colors.onnx")
    head = f"import sys\nsys.path.append({str(base.SCENE)!r})\n"
    (folder / "masks.py").write_text(head + base.MASKS)
    (folder / "pose.py").write_text(POSE.format(scene=base.SCENE))
    return folder


def install(root: Path, outside: Path, media: Path) -> None:
    """Write what an installation has: the samples in Python, streams, configurations."""
    place = root / "opt/nvidia/deepstream/deepstream"
    streams, configs = place / "samples/streams", place / "samples/configs/deepstream-app"
    streams.mkdir(parents=True)
    configs.mkdir(parents=True)
    for name in ("sample_720p", "sample_1080p_h264", "sample_qHD"):
        (streams / f"{name}.h264").symlink_to(media / "conveyor.h264")
        (streams / f"{name}.mp4").symlink_to(base.SCENE / "conveyor.mp4")
    for name in ("NvDCF_perf", "NvDCF_accuracy", "IOU", "NvSORT"):
        (configs / f"config_tracker_{name}.yml").write_text(TRACKER)
    (configs / "config_infer_primary.txt").write_text(config("detector", media))
    left_out = shutil.ignore_patterns(".git", "3rdparty", "docs", "bindings")
    samples = checkout(outside, "deepstream_python_apps")
    shutil.copytree(samples, root / SAMPLES[1:], ignore=left_out)
    older = outside / "intflow+deepstream_python_apps/apps/common/is_aarch_64.py"
    if older.is_file():  # gone since 6.3, and imported still
        shutil.copy(older, root / SAMPLES[1:] / "apps/common")
    replace_configs(root / SAMPLES[1:], media)
    for release in ("5.0", "5.1", "6.0", "6.1", "6.2", "6.3", "6.4", "7.0", "7.1", "8.0", "9.0"):
        (place.parent / f"deepstream-{release}").symlink_to("deepstream")


def prepare(app: App, outside: Path, root: Path, media: Path) -> None:
    """Put an application where its author keeps it, with what its repository lacks."""
    install(root, outside, media)
    folder = root / app.at[1:]
    shutil.copytree(
        checkout(outside, app.repository.replace("/", "+")), folder,
        symlinks=True, ignore=shutil.ignore_patterns(".git"), dirs_exist_ok=True,
    )  # fmt: skip
    replace_configs(folder, media)
    for name, kind in app.files.items():
        path = root / name[1:] if name.startswith("/") else folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if kind == "dir":
            path.mkdir(exist_ok=True)
        elif kind == "h264":
            path.unlink(missing_ok=True)
            path.symlink_to(media / "conveyor.h264")
        elif kind.startswith("link:"):
            path.exists() or path.is_symlink() or path.symlink_to(kind[5:])
        else:
            path.write_text(config(kind, media))


@pytest.mark.slow
@pytest.mark.parametrize("name", APPS)
def test_it_runs(outside: Path, media: Path, tmp_path: Path, name: str) -> None:
    app, root = APPS[name], tmp_path / "root"
    if lacking := [one for one in app.needs.split() if find_spec(one) is None]:
        pytest.skip(f"needs {', '.join(lacking)}")
    prepare(app, outside, root, media)
    video = base.SCENE / "conveyor.mp4"
    values = {
        "h264": media / "conveyor.h264", "mp4": video, "uri": video.as_uri(),
        "rtsp": f"rtsp://127.0.0.1:{base.PORT}/video",
    }  # fmt: skip
    script = f"{app.at}/{app.script}"
    folder = f"{app.at}/{app.folder}" if app.folder else str(Path(script).parent)
    command = shlex.join([sys.executable, script, *app.arguments.format(**values).split()])
    limit = f"timeout -s INT -k 30 {app.end_s} " if app.end_s else ""
    answers = f"(: > /dev/tcp/127.0.0.1/{base.PORT}) 2> {os.devnull}"
    serve = shlex.join(map(str, [sys.executable, base.SERVER, video, base.PORT]))
    camera = f"{serve} & until {answers}; do sleep 0.2; done" if "{rtsp}" in app.arguments else ""
    inner = shlex.quote(f"cd {folder} && exec {limit}{command}")
    done = base.ended(
        ["unshare", "-m", "-n", "-p", "-f", "--kill-child", "--mount-proc", "bash", "-c",
         ROOT.format(root=root, camera=camera, inner=inner)],
        (app.end_s or 240) + 60, cwd=Path(__file__).parents[2],
        env=os.environ | {
            "HEADRACE_GST_DISPLAY": "none", "XDG_STATE_HOME": str(tmp_path),
            "PYTHONPATH": os.pathsep.join([str(COUNTER), os.environ.get("PYTHONPATH", "")]),
            "COUNTED": str(tmp_path / "counted.json"),
        },
    )  # fmt: skip
    path = tmp_path / "counted.json"
    rows = json.loads(path.read_text()) if path.is_file() else {}
    found = max(rows.values(), key=lambda row: int(row["results"]), default={"frames": 0})
    print(f"{name}: exit {done.returncode}, {found}")
    told = (done.stdout + done.stderr)[-2000:]
    assert done.returncode in ((0, 124, 137) if app.end_s else (0,)), told
    frames = found["frames"]
    assert frames >= app.frames if app.least else frames == app.frames, told
    assert found["objects"] > frames
