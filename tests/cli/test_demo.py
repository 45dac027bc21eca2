"""`headrace demo`: detector, tracker and code reader on the video that ships with headrace."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from PIL import Image

from headrace.cli.demo import scene_dir
from tests.inside import headrace
from tests.warm import started_anew


def objects(lines: Path) -> list[object]:
    return [json.loads(line)["objects"] for line in lines.open()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def done(folder: Path) -> subprocess.CompletedProcess[str]:
    return started_anew("demo", "--limit", 40, "--out", "here", cwd=folder)


@pytest.mark.slow
def test_it_reads_the_codes_of_the_parcels_it_follows(
    done: subprocess.CompletedProcess[str], folder: Path
) -> None:
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in (folder / "here" / "found.jsonl").open()]
    assert len(lines) == 40
    texts: dict[int, Counter[str]] = defaultdict(Counter)
    for line in lines:
        for thing in line["objects"]:
            if "object_id" in thing:
                texts[thing["object_id"]][thing.get("text", "")] += 1
    truth = json.loads((scene_dir() / "truth.json").read_text())["annotations"]
    frames = Counter(
        (a["track_id"], a["code"]) for a in truth if a["readable"] and a["image_id"] <= 40
    )
    codes = {code for (_, code), count in frames.items() if count >= 20}
    read = {max(t, key=lambda text: t[text]).split(" ")[-1] for t in texts.values()}
    assert len(codes) >= 4
    assert codes <= read
    said = next(line for line in done.stdout.splitlines() if line.startswith("read "))
    assert codes <= set(said.split())
    assert set(said.split(": ")[1].split()) <= {a["code"] for a in truth}


@pytest.mark.slow
def test_it_makes_a_video_and_a_contact_sheet(folder: Path) -> None:
    import av

    done = headrace("demo", "--limit", 9, "--out", "short", cwd=folder)
    assert done.returncode == 0, done.stderr
    with av.open(str(folder / "short" / "annotated.mp4")) as video:
        assert sum(1 for _ in video.decode(video=0)) == 9
    with Image.open(folder / "short" / "contact_sheet.png") as sheet:
        assert sheet.width > 3 * 640
        assert sheet.height > 3 * 384
    for name in ("annotated.mp4", "found.jsonl", "contact_sheet.png"):
        assert f"wrote {folder.resolve() / 'short' / name}" in done.stdout


@pytest.mark.slow
def test_the_lines_it_prints_do_the_same(
    done: subprocess.CompletedProcess[str], folder: Path
) -> None:
    lines = [
        line.strip() for line in done.stdout.splitlines() if line.startswith("  headrace run ")
    ]
    assert len(lines) == 2
    assert "pipeline.yml" in lines[0]
    assert "--tracker" in lines[1]
    expected = objects(folder / "here" / "found.jsonl")
    for number, line in enumerate(lines):
        words = shlex.split(line)[1:]
        out = folder / f"{number}.jsonl"
        again = headrace(*words, "-o", out, "--limit", 40, cwd=folder)
        assert again.returncode == 0, again.stderr
        assert objects(out) == expected


@pytest.mark.slow
def test_the_report_can_be_json(folder: Path) -> None:
    done = headrace("demo", "--limit", 3, "--out", "json", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["frames"] == 3
    assert [Path(p).name for p in report["outputs"]] == [
        "annotated.mp4",
        "found.jsonl",
        "contact_sheet.png",
    ]
    assert all(Path(p).is_file() for p in report["outputs"])


@pytest.mark.slow
def test_changed_files_are_kept_and_used(folder: Path) -> None:
    pipeline = folder / "own" / "scene" / "pipeline.yml"
    pipeline.parent.mkdir(parents=True)
    text = (scene_dir() / "pipeline.yml").read_text()
    pipeline.write_text(text.replace("  - config_infer_secondary_characters.txt\n", ""))
    done = headrace("demo", "--limit", 3, "--out", "own", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "classifiers" not in (folder / "own" / "found.jsonl").read_text()
    assert "characters" not in done.stdout
