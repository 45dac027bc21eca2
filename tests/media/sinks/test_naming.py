"""File names of sources and frames: told apart, and fit for a file system."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import MediaError, MissingExtraError
from headrace.media import check_sinks, expand_sink_path, open_sink
from headrace.media.sinks.naming import has_placeholder, source_labels
from tests.media.conftest import MakeMeta, gray_frame


@dataclass
class Named:
    name: str
    source_id: int = 0


def named(*names: str) -> list[Named]:
    return [Named(name, i) for i, name in enumerate(names)]


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("videos/belt.mp4", "belt"),
        ("camera:0", "camera_0"),
        ("/dev/video2", "video2"),
        ("rtsp://10.0.0.7:554/live/main", "10.0.0.7_554_live_main"),
        ("photos/", "photos"),
        ("a b*.png", "a_b"),
        ("Büro.mp4", "Büro"),
        ("..", "source"),
        ("x" * 300 + ".mp4", "x" * 60),
    ],
)
def test_labels(name: str, label: str) -> None:
    assert source_labels([Named(name)]) == {0: label}


def test_sources_named_alike_have_their_id() -> None:
    assert source_labels(named("a/x.mp4", "b/X.mkv", "c/y.mp4")) == {0: "x_0", 1: "X_1", 2: "y"}
    assert source_labels(named("a.mp4", "b/a.mp4", "a_1.mp4")) == {0: "a_0", 1: "a_1", 2: "a_1_2"}


@given(st.lists(st.text(max_size=8), max_size=6))
def test_labels_are_file_names_and_differ(names: list[str]) -> None:
    labels = source_labels(named(*names))
    assert len({s.casefold() for s in labels.values()}) == len(names)
    for label in labels.values():
        assert label.strip(".")
        assert Path(label).name == label


def test_placeholders() -> None:
    a, b = named("belt.mp4", "other/belt.mp4")
    assert expand_sink_path("out/{source}.mp4", a) == "out/belt.mp4"
    assert expand_sink_path("kitti:{id}/{source}", b, [a, b]) == "kitti:1/belt_1"
    assert expand_sink_path("{source}_{id}.mp4", Named("%d{id}.mp4", 3)) == "d_id_3.mp4"
    assert expand_sink_path("o/{x}.json", a) == "o/{x}.json"
    assert has_placeholder("a{id}")
    assert not has_placeholder("a{ids}")


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("images", ["belt_0_frame_000005.jpg", "belt_1_frame_000005.jpg", "p_q.jpg"]),
        ("kitti", ["belt_0_000005.txt", "belt_1_000005.txt", "p_q.txt"]),
        ("kitti-track", ["belt_0.txt", "belt_1.txt", "p.txt"]),
    ],
)
def test_files_carry_the_source(
    tmp_path: Path, make_meta: MakeMeta, kind: str, names: list[str]
) -> None:
    sources = named("a/belt.mp4", "b/belt.mp4", "p/")
    with open_sink(f"{kind}:{tmp_path}/x", sources=sources) as sink:
        for source, name in zip(sources, ("a/belt.mp4", "b/belt.mp4", "p/q.jpg"), strict=True):
            frame = gray_frame(5, source=name, source_id=source.source_id)
            sink.write(frame, make_meta(frame))
    assert sorted(p.name for p in (tmp_path / "x").iterdir()) == names


def test_images_of_one_name_in_many_folders(tmp_path: Path, make_meta: MakeMeta) -> None:
    with open_sink(f"kitti:{tmp_path}") as sink:
        for i in range(3):
            frame = gray_frame(0, source=f"{i}/p.jpg", source_id=i)
            sink.write(frame, make_meta(frame))
    assert len(list(tmp_path.iterdir())) == 3


def test_one_video_of_several_sources_is_told(tmp_path: Path, make_meta: MakeMeta) -> None:
    with open_sink(str(tmp_path / "x.mp4")) as sink:
        for i in range(4):
            frame = gray_frame(i, source_id=i % 2)
            sink.write(frame, make_meta(frame))
    told = [n.sentence for n in sink.notices if n.level == "warning"]
    assert len(told) == 1
    assert "several sources" in told[0]


@pytest.mark.parametrize(
    "spec", ["{name}.mp4", "{source}/{frame}.jsonl", "images:{Source}", "{}.mp4"]
)
def test_what_stands_for_nothing_is_refused_before_anything_is_written(spec: str) -> None:
    with pytest.raises(MediaError, match="stands for nothing") as caught:
        check_sinks([spec])
    assert "{source} for the name" in str(caught.value)


@pytest.mark.parametrize("spec", ["{source}.mp4", "kitti:{id}", "a}{b.mp4", "{1}.jsonl"])
def test_other_braces_are_names(spec: str) -> None:
    check_sinks([spec])


def test_one_output_for_each_source_may_be_named_twice_but_a_file_not(tmp_path: Path) -> None:
    check_sinks([f"{tmp_path}/{{source}}.mp4", f"{tmp_path}/{{source}}.jsonl"])
    with pytest.raises(MediaError, match="would be destroyed"):
        check_sinks([f"{tmp_path}/a.mp4", f"video:{tmp_path}/a.mp4"])


@pytest.mark.parametrize("name", ["a.parquet", "b.arrow"])
def test_a_missing_package_is_told_before_anything_is_written(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match="pip install 'pyarrow>="):
        check_sinks(["x.jsonl", name])
