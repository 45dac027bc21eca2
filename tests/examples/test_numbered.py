"""The numbered examples run, and do what they say."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace import open_source
from tests.copies import copied_example

EXAMPLES = Path(__file__).parents[2] / "examples"
HERE = ("01_ten_lines", "02_probes", "04_many_sources", "05_own_frames", "06_tensors")
HERE += ("07_update_model", "08_plugin", "09_network_by_layers", "10_model_parser")
HERE += ("11_cpp_plugin",)


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy to run in: nothing is written into the checkout, engines are built once."""
    folder = tmp_path_factory.mktemp("examples")
    for name in ("conveyor", *HERE):
        copied_example(name, folder / name)
    return folder


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *(["-m"] if words[0] == "headrace" else []), *words]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_every_numbered_example_has_a_readme_with_a_command() -> None:
    for folder in EXAMPLES.glob("[0-9]*"):
        text = (folder / "README.md").read_text()
        assert re.search(r"^# ", text), folder
        assert re.search(r"^    \S", text, re.M), folder


def shown(cell: str, names: dict[str, Any]) -> object:
    """Run a cell as a notebook does: the value of its last expression is shown."""
    tree = ast.parse(cell)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    if last is None:
        return None
    assert isinstance(last, ast.Expr)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names)


@pytest.mark.slow
def test_ten_lines_in_a_notebook(
    examples: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(examples / "01_ten_lines")
    notebook = json.loads(Path("ten_lines.ipynb").read_text())
    assert notebook["nbformat"] == 4
    cells = ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code"]
    assert all(not c.get("outputs") for c in notebook["cells"])
    names: dict[str, Any] = {}
    results = [shown(cell, names) for cell in cells]
    report, meta, image = results[:3]
    assert "<table>" in report._repr_html_()  # type: ignore[attr-defined]
    assert "60 frames" in repr(report)
    assert "<table>" in meta._repr_html_()  # type: ignore[attr-defined]
    assert image._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]
    said = capsys.readouterr().out.splitlines()
    assert len(said) > len(names["meta"].objects) > 3
    assert all(line.split()[0].isdigit() for line in said[: len(names["meta"].objects)])
    truth = json.loads((examples / "conveyor" / "truth.json").read_text())
    codes = {a["code"] for a in truth["annotations"]}
    read = [code for _, code in names["codes"].values()]
    assert len(read) >= 3
    assert set(read) <= codes
    with open_source("parcels.mp4") as video:
        assert sum(1 for _ in video) == 60


@pytest.mark.slow
def test_probes_count_what_crosses_the_line(examples: Path) -> None:
    folder = examples / "02_probes"
    done = run(folder, "count_crossings.py", "crossings.jsonl")
    assert done.returncode == 0, done.stderr
    counted = {line.split()[1]: int(line.split()[0]) for line in done.stdout.splitlines()}
    truth = json.loads((examples / "conveyor" / "truth.json").read_text())
    names = {c["id"]: c["name"] for c in truth["categories"]}
    paths: dict[int, list[tuple[int, float, float]]] = {}
    kinds: dict[int, str] = {}
    for a in truth["annotations"]:
        centre = a["bbox"][0] + a["bbox"][2] / 2
        paths.setdefault(a["track_id"], []).append((a["image_id"], centre, a["bbox"][2]))
        kinds[a["track_id"]] = names[a["category_id"]]
    crossed: dict[str, int] = {}
    for parcel, path in paths.items():
        wide = [centre for _, centre, width in sorted(path) if width >= 60]
        if wide and min(wide) < 420 <= wide[-1]:
            crossed[kinds[parcel]] = crossed.get(kinds[parcel], 0) + 1
    assert counted == crossed
    records = lines(folder / "crossings.jsonl")
    assert len(records) == 250
    for record in records:
        made = [o for o in record["objects"] if o["component_id"] == 0]
        assert [(o["label"], o["left"]) for o in made] == [("line", 420)]
        assert all(o["width"] >= 55 for o in record["objects"] if o["component_id"] == 1)
    texts = [o.get("text", "") for r in records for o in r["objects"]]
    assert f"crossed: {sum(counted.values())}" in texts
    assert any(re.fullmatch(r"\w+ no\. 1", text) for text in texts)


@pytest.mark.slow
def test_many_sources_go_on_without_the_broken_ones(examples: Path) -> None:
    folder = examples / "04_many_sources"
    clip = (examples / "conveyor" / "conveyor.mp4").read_bytes()
    (folder / "cut_off.mp4").write_bytes(clip[:300_000])
    done = run(folder, "headrace", "run", "pipeline.yml", "--json")
    assert done.returncode == 6, done.stderr
    whole, half, cut, gate = json.loads(done.stdout)["sources"]
    assert (whole["frames"], whole["state"]) == (250, "ended")
    assert (half["name"], half["frames"], half["state"]) == ("every second frame", 125, "ended")
    assert 20 < cut["frames"] < 250
    assert (gate["frames"], gate["state"]) == (0, "failed")
    found = [lines(folder / "out" / f"source{i}.jsonl") for i in range(4)]
    assert [len(f) for f in found] == [250, 125, cut["frames"], 0]
    ids = [{o["object_id"] for r in f for o in r["objects"] if "object_id" in o} for f in found]
    assert ids[0]
    assert not ids[0] & ids[1]
    assert not ids[0] & ids[2]
    with open_source(str(folder / "out" / "tiles.mp4")) as video:
        assert (video.width, video.height) == (960, 576)
        assert sum(1 for _ in video) == 250


@pytest.mark.slow
def test_own_frames(examples: Path) -> None:
    done = run(examples / "05_own_frames", "own_frames.py")
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert "7 objects" in said[0]
    assert said[1].split() == ["7"] * 10
    assert "image 0: Objects(" in said[2]
    assert re.match(r"RunReport\(\d+ frames? of belt", said[-1])


@pytest.mark.slow
def test_own_decoding_finds_what_the_parser_finds(examples: Path) -> None:
    folder = examples / "06_tensors"
    done = run(folder, "decode.py", "decoded.jsonl")
    assert done.returncode == 0, done.stderr
    scene = examples / "conveyor"
    parsed = run(
        scene, "headrace", "run", "config_infer_primary.txt", "conveyor.mp4", "--limit", "40",
        "-o", str(folder / "parsed.jsonl"), "-q",
    )  # fmt: skip
    assert parsed.returncode == 0, parsed.stderr
    same = total = 0
    for ours, theirs in zip(
        lines(folder / "decoded.jsonl"), lines(folder / "parsed.jsonl"), strict=True
    ):
        for a in theirs["objects"]:
            if a["confidence"] < 0.6:
                continue
            total += 1
            same += any(
                b["label"] == a["label"]
                and all(abs(a[k] - b[k]) < 6 for k in ("left", "top", "width", "height"))
                for b in ours["objects"]
            )
    assert total > 200
    assert same / total > 0.95


@pytest.mark.slow
def test_a_model_is_exchanged_without_losing_a_frame(examples: Path) -> None:
    code = "import update_model as u; seen = u.main(); print(len(seen), [n for n, _ in seen] =="
    done = run(examples / "07_update_model", "-c", f"{code} list(range(120)))")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["config_infer_update.txt: takes over", "120 True"]
    done = run(examples / "07_update_model", "update_model.py")
    assert done.returncode == 0, done.stderr
    starts = [line for line in done.stdout.splitlines() if line.startswith("from frame")]
    assert len(starts) == 2, done.stdout
    assert "envelope" in starts[0]
    assert "Umschlag" in starts[1]
    assert int(starts[1].split()[2]) > 20


def test_a_layer_of_ones_own(examples: Path) -> None:
    folder = examples / "08_plugin"
    done = run(folder, "run.py")
    assert done.returncode == 0, done.stderr
    promised = re.search(
        r"    BoxFilter_TRT version.*\n    .*\n", (folder / "README.md").read_text()
    )
    assert promised is not None
    assert done.stdout == re.sub(r"^    ", "", promised.group(), flags=re.M)
    traced = run(folder, "headrace", "trace-plugins", "model.onnx", "--library", "box_filter.py")
    assert traced.returncode == 0, traced.stderr
    assert re.search(r"run +BoxFilter#\d+ +enqueue", traced.stdout)


@pytest.mark.slow
def test_a_network_layer_by_layer(examples: Path) -> None:
    folder = examples / "09_network_by_layers"
    assert run(folder, "prepare.py").returncode == 0
    clip = "../conveyor/conveyor.mp4"
    command = ("headrace", "run", "config_infer_layers.txt", clip, "-o", "out.jsonl")
    done = run(folder, *command)
    assert done.returncode == 0, done.stderr
    assert "the network was made by create_engine" in done.stderr
    frames = lines(folder / "out.jsonl")
    assert len(frames) == 250
    assert all(0 <= o["class_id"] < 2 for f in frames for o in f["objects"])
    assert any(f["objects"] for f in frames)
    # another reader of the same files finds the same scores
    from headrace.engine import BuildOptions, Plan, build
    from headrace.network import network_from_darknet
    from headrace.plugins import get_plugin_registry

    cfg, weights = folder / "tiny.cfg", folder / "tiny.weights"
    other = build(network_from_darknet(cfg, weights), BuildOptions(max_batch=2))
    registry = get_plugin_registry()
    handle = registry.load_library(folder / "yolo_layers.py")
    try:
        plan = Plan.load(folder / "model_b2_gpu0_fp32.engine")
        image = np.random.default_rng(0).random((2, 3, 96, 160), np.float32)
        with plan.open_session() as ours, other.open_session() as theirs:
            rows = ours.run({"data": image})["boxes"]
            raw = theirs.run({theirs.inputs[0].name: image})
        ours_sorted = np.sort((rows[:, :, 4:5] * rows[:, :, 5:]).max(2), 1)
        (table,) = raw.values()  # box, score, class
        np.testing.assert_allclose(ours_sorted, np.sort(table[:, :, 4], 1), atol=1e-4)
    finally:
        if handle is not None:
            registry.deregister_library(handle)


@pytest.mark.slow
def test_a_model_format_of_ones_own(examples: Path) -> None:
    folder = examples / "10_model_parser"
    assert run(folder, "prepare.py").returncode == 0
    clip = "../conveyor/conveyor.mp4"
    done = run(folder, "headrace", "run", "config_infer_blocks.txt", clip, "-o", "out.jsonl")
    assert done.returncode == 0, done.stderr
    assert "the network was made by NvDsInferCreateModelParser" in done.stderr
    frames = lines(folder / "out.jsonl")
    assert len(frames) == 250
    assert {o["text"] for f in frames for o in f["objects"]} <= {
        "dark",
        "dim",
        "bright",
        "blinding",
    }
    assert (folder / "light.blocks_b2_gpu0_fp32.engine").exists()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")
def test_a_plugin_in_cpp(examples: Path) -> None:
    folder = examples / "11_cpp_plugin"
    commands = re.findall(
        r"^    (python .+|headrace .+)$", (folder / "README.md").read_text(), re.M
    )
    assert len(commands) == 9
    for command in commands:
        words = command.split()
        done = run(folder, *(words if words[0] == "headrace" else words[1:]))
        assert done.returncode == 0, (command, done.stderr)
        if "inspect" in words:
            assert "plugin Swish_TRT version 1" in done.stdout
        if "run.py" in words:
            difference = re.search(r"difference from NumPy: (\S+)", done.stdout)
            assert difference is not None
            assert float(difference[1]) < (0.05 if "--int8" in words else 1e-6)
        if "calibrate" in words:
            assert "dB of signal to noise" in done.stderr
        if "trace-plugins" in words:
            assert " 0 failed" in done.stdout
    done = run(folder, "run.py", "--without")
    assert done.returncode == 1
    assert "Swish_TRT version 1" in done.stderr
