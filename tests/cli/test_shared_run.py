"""`headrace run --processes`: the lines and the report are those of one process."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.cli.processes import started
from tests.inside import headrace
from tests.media.conftest import write_clip

Config = Callable[..., Path]
NAMES = ("a", "b", "c", "d", "e")


@pytest.fixture
def scene(mean_config: Config, tmp_path: Path) -> Path:
    """pgie.txt, and five folders of 2 to 6 images of several levels."""
    mean_config().rename(tmp_path / "pgie.txt")
    for place, name in enumerate(NAMES):
        (tmp_path / name).mkdir()
        for i in range(place + 2):
            level = 255 - 20 * i - 7 * place
            Image.new("RGB", (64, 48), (level, 0, 0)).save(tmp_path / name / f"{i}.png")
    return tmp_path


def by_source(path: Path) -> dict[str, list[dict[str, Any]]]:
    found = defaultdict(list)
    for line in path.read_text().splitlines():
        record = json.loads(line)
        found[record["source"].split("/")[0]].append(record)
    return dict(found)


@pytest.mark.slow
def test_lines_and_report_are_those_of_one_process(scene: Path) -> None:
    def run(out: str, *more: str) -> dict[str, Any]:
        done = headrace("run", "pgie.txt", *NAMES, "-o", out, "--json", *more, cwd=scene)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    one, two = run("one.jsonl"), run("two.jsonl", "--processes", "2")
    assert by_source(scene / "two.jsonl") == by_source(scene / "one.jsonl")
    assert two["sources"] == one["sources"]
    for key in (
        "source",
        "profile",
        "frames",
        "inferred",
        "objects",
        "failed_frames",
        "dropped_frames",
    ):
        assert two[key] == one[key], key
    (model,), (wanted,) = two["models"], one["models"]
    for key in ("name", "component_id", "inferred", "failed", "results", "dropped", "skipped"):
        assert model[key] == wanted[key], key
    assert two["outputs"] == [str(scene / "two.jsonl")]
    assert two["fps"] > 0


def files_in(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.slow
def test_files_of_each_source_are_those_of_one_process(scene: Path) -> None:
    for place, name in enumerate(("gate", "Gate")):  # one name in file names
        (scene / str(place)).mkdir()
        write_clip(scene / str(place) / f"{name}.mp4", 4)
    kinds = ("images:{}/drawn", "kitti:{}/kitti", "{}/{{source}}.jsonl", "{}/{{id}}/%03d.png",
             "{}/all.jsonl", "{}/{{source}}.mp4")  # fmt: skip
    reports = []
    for folder, more in (("one", ()), ("two", ("--processes", "2"))):
        outs = [word for kind in kinds for word in ("-o", kind.format(folder))]
        done = headrace(
            "run", "pgie.txt", "a", "b", "0/gate.mp4", "1/Gate.mp4", "c", *outs, *more,
            "--limit", "3", "--json", cwd=scene,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        reports.append(json.loads(done.stdout)["outputs"])
    one, two = files_in(scene / "one"), files_in(scene / "two")
    assert {"drawn/gate_2_frame_000000.jpg", "drawn/a_0.jpg", "a.jsonl", "3/000.png"} <= set(two)
    assert len(one) == len({name for name in one if "all" not in name}) + 1
    sorted_lines = [sorted(files.pop("all.jsonl").splitlines()) for files in (one, two)]
    assert sorted_lines[0] == sorted_lines[1]
    assert one == two
    assert sorted(reports[0]) == [out.replace("/two/", "/one/") for out in sorted(reports[1])]


@pytest.mark.slow
def test_lines_to_standard_output_stay_whole(scene: Path) -> None:
    parser = scene / "loud.py"
    parser.write_text(
        "from headrace.meta import Detections\n"
        "def parse(layers, network, params):\n"
        "    print('talk')\n"
        "    return Detections.empty()\n"
    )
    text = (scene / "pgie.txt").read_text()
    lines = [x for x in text.splitlines() if not x.startswith(("custom-lib", "parse-bbox"))]
    lines.insert(1, "custom-lib-path=loud.py\nparse-bbox-func-name=parse")
    (scene / "pgie.txt").write_text("\n".join(lines))
    done = headrace("run", "pgie.txt", *NAMES, "-o", "jsonl:-", "--processes", "2", cwd=scene)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["objects"] for line in done.stdout.splitlines()] == [[]] * 20
    assert "talk" in done.stderr


@pytest.mark.parametrize(
    ("more", "wanted"),
    [
        (("-o", "out.mp4"), "expected one output of JSON Lines: -o out.jsonl"),
        (("-o", "out.jsonl", "-o", "out.json"), "several processes cannot write "),
        (("-o", "{source}.jpg", "-o", "out.jpg"), "out.jpg"),
        (("-o", "masks:out"), "several processes cannot write masks:"),
        (("--view",), "--view shows one process"),
        (("-o", "view:"), "--view shows one process"),
        (("--set", "cluster-mode=9"), "cluster-mode=9"),
        (("--device", "cpu,gpu"), "no device is called 'gpu'"),
        (("-o", "x.jsonl", "-o", "y.jsonl"), "several processes cannot write"),
    ],
)
@pytest.mark.sampled
def test_what_cannot_be_is_refused(scene: Path, more: tuple[str, ...], wanted: str) -> None:
    done = headrace("run", "pgie.txt", *NAMES, "--processes", "2", *more, cwd=scene)
    assert done.returncode != 0
    assert wanted in done.stderr
    assert not list(scene.glob("out*"))


@pytest.mark.slow
def test_warnings_are_errors_where_asked(scene: Path) -> None:
    done = headrace(
        "run", "pgie.txt", *NAMES, "--processes", "2", "--strict", "-o", "out.jsonl",
        "--set", "net-scale-factor=0", cwd=scene,
    )  # fmt: skip
    alone = headrace("run", "pgie.txt", "a", "--strict", "--set", "net-scale-factor=0", cwd=scene)
    assert done.returncode == alone.returncode != 0
    assert done.stderr.splitlines()[-1] == alone.stderr.splitlines()[-1]
    assert not (scene / "out.jsonl").exists()


@pytest.mark.slow
def test_a_source_that_fails_does_not_disturb_the_others(scene: Path) -> None:
    (scene / "bad.mp4").write_bytes(b"no video" * 100)
    done = headrace(
        "run", "pgie.txt", "a", "bad.mp4", "b", "--processes", "3", "-o", "out.jsonl", "--json",
        cwd=scene,
    )  # fmt: skip
    assert done.returncode == 6
    states = [(s["source_id"], s["state"]) for s in json.loads(done.stdout)["sources"]]
    assert states == [(0, "ended"), (1, "failed"), (2, "ended")]
    assert len(by_source(scene / "out.jsonl")) == 2


SLOW = (
    "import time\nfrom headrace.meta import Detections\n"
    "def parse(layers, network, params):\n"
    "    time.sleep(0.2)\n"
    "    return Detections.empty()\n"
)


@pytest.fixture
def slow(scene: Path) -> Path:
    """The scene with a parser that takes its time, and folders that last 20 s."""
    (scene / "slow.py").write_text(SLOW)
    text = (scene / "pgie.txt").read_text()
    lines = [x for x in text.splitlines() if not x.startswith(("custom-lib", "parse-bbox"))]
    lines.insert(1, "custom-lib-path=slow.py\nparse-bbox-func-name=parse")
    (scene / "pgie.txt").write_text("\n".join(lines))
    for name in ("a", "b"):
        for i in range(100):
            Image.new("RGB", (8, 8)).save(scene / name / f"{i}.png")
    return scene


def lines_of(path: Path, count: int) -> None:
    """Wait until the file has that many lines."""
    for _ in range(600):
        if path.exists() and path.read_text().count("\n") >= count:
            return
        time.sleep(0.05)
    raise AssertionError(f"{path} has no {count} lines")


def workers(pid: int) -> list[int]:
    """Processes that were forked from the warm interpreter, itself a fork of a command."""
    (server,) = children(pid)
    return children(server)


def children(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += map(int, (task / "children").read_text().split())
    return found


@pytest.mark.slow
def test_a_process_that_dies_fails_its_sources_only(slow: Path) -> None:
    run = started("run", "pgie.txt", "a", "c", "--processes", "2", "-o", "out.jsonl", cwd=slow)
    lines_of(slow / "out.jsonl", 2)
    first = min(workers(run.pid))
    os.kill(first, signal.SIGKILL)
    out, err = run.communicate(timeout=30)
    assert run.returncode == 6
    assert "killed by SIGKILL; results up to there are kept" in err
    assert "0: a: 0 frames, failed" in out
    assert "1: c: 4 frames, ended" in out
    assert len(by_source(slow / "out.jsonl")["c"]) == 4


@pytest.mark.slow
def test_a_signal_finishes_the_file(slow: Path) -> None:
    run = started("run", "pgie.txt", "a", "b", "--processes", "2", "-o", "out.jsonl", cwd=slow)
    lines_of(slow / "out.jsonl", 4)
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=30)
    assert run.returncode == 130, err
    assert "stopped after" in out
    found = by_source(slow / "out.jsonl")
    assert set(found) == {"a", "b"}
    assert sum(map(len, found.values())) < 150


@pytest.mark.slow
def test_children_end_with_the_run(slow: Path) -> None:
    run = started("run", "pgie.txt", "a", "b", "--processes", "2", "-o", "out.jsonl", cwd=slow)
    lines_of(slow / "out.jsonl", 2)
    left = workers(run.pid)
    assert len(left) == 2
    run.kill()
    run.communicate()
    for _ in range(100):
        if not any(Path(f"/proc/{pid}").exists() for pid in left):
            return
        time.sleep(0.05)
    raise AssertionError("processes are left")


@pytest.mark.slow
def test_every_source_fails(scene: Path) -> None:
    for name in ("x.mp4", "y.mp4"):
        (scene / name).write_bytes(b"no video" * 100)
    done = headrace(
        "run", "pgie.txt", "x.mp4", "y.mp4", "--processes", "2", "-o", "out.jsonl", cwd=scene
    )
    assert done.returncode == 6
    assert "error: " in done.stderr
    assert "x.mp4" in done.stderr
