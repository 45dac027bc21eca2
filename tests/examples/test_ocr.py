"""The text-reading example: models nobody here made read what the test wrote."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from pathlib import Path

import numpy as np
import prepare
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ocr_parsers import (
    parse_orientation,
    parse_text,
    parse_text_boxes,
    regions,
)
from PIL import Image, ImageDraw, ImageFont
from read_image import lines, orientation, read, text

from headrace import FrameMeta, Inferencer, Layer, NetworkInfo, ObjectMeta, open_source
from headrace.meta import ClassifierParams, DetectionParams
from tests.profiles import examples

PAPER, INK = (250, 248, 240), (20, 20, 40)
PAGE = {  # text: (size, left, top, stands on its head)
    "The quick brown fox jumps over the lazy dog": (26, 40, 20, False),
    "This side up, please": (30, 40, 90, True),
    "Headrace 42": (60, 500, 160, False),
    "ok": (24, 60, 180, False),
    "Platform 9, departure 17:30": (34, 40, 280, False),
    "and a long line of small print that stands on its head": (20, 40, 380, True),
    "Total 1299 EUR": (44, 40, 450, False),
    "seen on the right": (22, 700, 560, True),
}

Lines = dict[str, tuple[int, int, int, bool]]


def written(
    page: Lines,
    size: tuple[int, int],
    *,
    scale: float = 1,
    paper: object = PAPER,
    ink: object = INK,
) -> Image.Image:
    """An image with these lines."""
    image = Image.new("RGB", size, paper)  # type: ignore[arg-type]
    for said, (points, left, top, turned) in page.items():
        font = ImageFont.load_default(points * scale)
        _, _, right, bottom = font.getbbox(said)
        line = Image.new("RGB", (int(right) + 16, int(bottom) + 16), paper)  # type: ignore[arg-type]
        ImageDraw.Draw(line).text((8, 8), said, fill=ink, font=font)  # type: ignore[arg-type]
        image.paste(line.rotate(180 if turned else 0), (int(left * scale), int(top * scale)))
    return image


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example made ready, engines and all."""
    if importlib.util.find_spec(prepare.PACKAGE) is None:
        pytest.skip(f"{prepare.PACKAGE} is not installed")
    return prepare.prepare(tmp_path_factory.mktemp("ocr"))


@pytest.fixture(scope="module")
def found(folder: Path) -> FrameMeta:
    """The page, read."""
    written(PAGE, (960, 640)).save(folder / "page.png")
    (meta,) = read(folder, [folder / "page.png"], [str(folder / "seen.png")])
    return meta


@pytest.mark.slow
def test_the_lines_of_a_page_are_read_exactly(found: FrameMeta) -> None:
    by_height = sorted(PAGE, key=lambda said: _middle(PAGE[said]))
    read_lines = sorted(lines(found), key=lambda o: o.top + o.height / 2)
    assert [text(o) for o in read_lines] == by_height
    assert len(found.objects) == len(PAGE)
    assert all(c.labels[0].confidence > 0.8 for o in read_lines for c in o.classifiers[-1:])


def _middle(place: tuple[int, int, int, bool]) -> float:
    size, _, top, _ = place
    return top + 8 + size * 0.6


@pytest.mark.slow
def test_boxes_hold_their_lines(found: FrameMeta) -> None:
    for line in lines(found):
        size, left, top, _ = PAGE[text(line)]
        right = left + 16 + ImageFont.load_default(size).getlength(text(line))
        assert left <= line.left <= left + 16
        assert right - 16 <= line.left + line.width <= right + size / 4
        assert top <= line.top + line.height / 2 <= top + 1.5 * size
        assert 0.7 * size <= line.height <= 1.7 * size


@pytest.mark.slow
def test_lines_on_their_head_are_marked_and_left_as_they_are(
    folder: Path, found: FrameMeta
) -> None:
    for line in found.objects:
        assert orientation(line) == ("180" if PAGE[text(line)][3] else "")
    drawn = np.asarray(Image.open(folder / "seen.png"))
    page = np.asarray(Image.open(folder / "page.png"))
    inside = _inside(_line(found, "This side up, please"))
    np.testing.assert_array_equal(drawn[inside], page[inside])


def _line(meta: FrameMeta, said: str) -> ObjectMeta:
    return next(o for o in meta.objects if text(o) == said)


def _inside(line: ObjectMeta) -> tuple[slice, slice]:
    left, top = int(line.left) + 6, int(line.top) + 6
    return slice(top, int(line.top + line.height) - 6), slice(left, int(line.left + line.width) - 6)


def test_long_lines_go_to_the_wider_reader(found: FrameMeta) -> None:
    for line in found.objects:
        readers = [c.component_id for c in line.classifiers if c.classifier_type == "text"]
        long = line.width > 9 * line.height
        assert (line.label, readers) == (("long text", [4]) if long else ("text", [3]))


@pytest.mark.slow
def test_images_of_other_sizes_and_colours(folder: Path) -> None:
    """One run over a large, a small and a dark image; each frame has a size of its own."""
    sign: Lines = {"Headrace reads": (40, 20, 20, False), "images": (30, 40, 110, True)}
    images = folder / "signs"
    images.mkdir()
    written(sign, (1800, 1100), scale=2.5).save(images / "1_large.png")
    written(sign, (301, 199)).save(images / "2_small.png")
    written(sign, (640, 480), paper=(30, 60, 40), ink=(255, 255, 220)).save(images / "3_dark.png")
    for meta in read(folder, [images]):
        assert [text(o) for o in lines(meta)] == list(sign), meta.source


@pytest.mark.slow
def test_the_command_line_reads_an_image(folder: Path, found: FrameMeta) -> None:
    upright = {said: place for said, place in PAGE.items() if not place[3]}
    written(upright, (960, 640)).save(folder / "upright.png")
    command = "run det.txt cls.txt rec.txt rec_long.txt upright.png -q -o out.jsonl -o out.png"
    done = subprocess.run(
        [sys.executable, "-m", "headrace", *command.split()],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (frame,) = map(json.loads, (folder / "out.jsonl").read_text().splitlines())
    said = {c["labels"][0]["label"] for o in frame["objects"] for c in o["classifiers"]}
    assert said == set(upright)
    assert Image.open(folder / "out.png").size == (960, 640)


def test_an_empty_image_has_no_lines(folder: Path) -> None:
    Image.new("RGB", (320, 240), PAPER).save(folder / "empty.png")
    with (
        Inferencer.from_config(folder / "det.txt") as model,
        open_source(str(folder / "empty.png")) as source,
    ):
        (meta,) = model.process(list(source))
    assert not len(meta.objects)


def test_a_missing_package_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(prepare, "PACKAGE", "no_such_package_of_models")
    with pytest.raises(prepare.Missing, match="pip install"):
        prepare.prepare(tmp_path / "work")
    assert not (tmp_path / "work").exists()


# The parsers by themselves.


@settings(max_examples=examples(60))
@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 2**32 - 1), st.floats(0.2, 0.8))
def test_regions_are_those_of_a_flood_fill(
    height: int, width: int, seed: int, share: float
) -> None:
    rng = np.random.default_rng(seed)
    likely = np.where(rng.random((height, width)) < share, rng.uniform(0.31, 1, (height, width)), 0)
    likely = likely.astype(np.float32)
    boxes, scores = regions(likely, 0.3)
    given_regions = sorted((*box, round(float(s), 5)) for box, s in zip(boxes, scores, strict=True))
    expected = sorted(_flooded(likely))
    assert [r[:4] for r in given_regions] == [e[:4] for e in expected]
    np.testing.assert_allclose([r[4] for r in given_regions], [e[4] for e in expected], atol=2e-5)


def _flooded(likely: np.ndarray) -> list[tuple[float, ...]]:
    left = {(int(y), int(x)) for y, x in np.argwhere(likely > 0.3)}
    found = []
    while left:
        queue, members = deque([left.pop()]), []
        while queue:
            y, x = queue.popleft()
            members.append((y, x))
            near = {(y + dy, x + dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1)} & left
            left -= near
            queue.extend(near)
        ys, xs = zip(*members, strict=True)
        score = float(np.mean([likely[m] for m in members]))
        found.append((min(xs), min(ys), max(xs) + 1, max(ys) + 1, round(score, 5)))
    return found


def test_a_box_grows_and_stays_in_the_image() -> None:
    likely = np.zeros((1, 64, 128), np.float32)
    likely[0, 20:30, 40:80] = 0.9  # grows by 10 * 40 * 2 / (2 * 50) = 8
    likely[0, 60:64, 0:100] = 0.8
    likely[0, 5:7, 5:7] = 0.9  # a speck
    likely[0, 40:50, 40:80] = 0.4  # unsure
    params = DetectionParams(2, np.full(2, 0.5, np.float32))
    found = parse_text_boxes({"m": Layer("m", likely)}, NetworkInfo(128, 64, 3), params)
    np.testing.assert_allclose(found.boxes[0], [32, 12, 56, 26])
    assert found.boxes[1][0] == 0
    assert found.boxes[1][1] + found.boxes[1][3] == 64
    np.testing.assert_allclose(found.scores, [0.9, 0.8], rtol=1e-5)
    assert found.class_ids.tolist() == [0, 1]


@pytest.fixture
def said() -> Callable[[str, float], tuple[str, list[float]]]:
    """Parses steps written as characters: `_` is a blank, each step as sure as given."""
    characters = ("a", "b", "c")
    params = ClassifierParams(0.5, (*((c,) for c in characters), ("", "")))
    order = "_abc; "

    def parse(steps: str, sure: float) -> tuple[str, list[float]]:
        data = np.full((len(steps), len(order)), (1 - sure) / 5, np.float32)
        data[np.arange(len(steps)), [order.index(c) for c in steps]] = sure
        found = parse_text({"y": Layer("y", data)}, NetworkInfo(320, 48, 3), params)
        assert [a[3] for a in found.attributes] == ([found.text[:-1]] if found.text else [])
        return found.text, [a[2] for a in found.attributes]

    return parse


@pytest.mark.parametrize(
    ("steps", "expected"),
    [("_aab_", "ab "), ("a_a", "aa "), ("aa", "a "), ("__a  b__", "a b "), ("a;", "a; "),
     ("_c_ _", "c ")],
)  # fmt: skip
def test_steps_become_text(
    said: Callable[[str, float], tuple[str, list[float]]], steps: str, expected: str
) -> None:
    read_text, sure = said(steps, 0.9)
    assert read_text == expected
    assert sure == pytest.approx([0.9])


@pytest.mark.parametrize(("steps", "sure"), [("___", 0.9), (" ", 0.9), ("ab", 0.4)])
def test_nothing_read_or_not_sure(
    said: Callable[[str, float], tuple[str, list[float]]], steps: str, sure: float
) -> None:
    assert said(steps, sure) == ("", [])


def test_a_label_file_of_another_model_is_refused() -> None:
    layer = Layer("y", np.zeros((4, 9), np.float32))
    with pytest.raises(ValueError, match="3 characters"):
        parse_text(
            {"y": layer},
            NetworkInfo(320, 48, 3),
            ClassifierParams(0.5, (("a",), ("b",), ("c",))),
        )


@pytest.mark.parametrize(
    ("values", "expected"), [([0.1, 0.9], 1), ([0.4, 0.6], 0), ([0.9, 0.1], 0)]
)
def test_only_a_sure_180_is_said(values: list[float], expected: int) -> None:
    layer = Layer("o", np.array(values, np.float32))
    params = ClassifierParams(0.7, (("0", "180"),))
    found = parse_orientation({"o": layer}, NetworkInfo(640, 48, 3), params)
    assert len(found.attributes) == expected
