"""What a user may write to get a tracker, and what a mistake is answered with."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from headrace import open_pipeline
from headrace.cli.run import run
from headrace.errors import ConfigError
from headrace.pipeline.track import TRACKERS, TrackIds, open_tracker, tracker_settings
from headrace.pipeline.track.library import LIBRARY_TRACKERS
from headrace.pipeline.track.original_file import presets
from tests.copies import copied_example
from tests.pipeline.track.scenes import meta, track

BOX = [100, 100, 50, 50]


def hits(spec: str | Path, **settings: object) -> int:
    """How many detections an object needs for its id: shows that a setting acts."""
    got = track(open_tracker(spec, **settings), [meta(i, [BOX]) for i in range(12)])
    return got.index([1]) + 1


def test_the_trackers_of_the_library_are_listed() -> None:
    assert set(LIBRARY_TRACKERS) == set(TRACKERS) - {"iou", "nvmot"} - set(presets())
    (option,) = (o for o in run.params if o.name == "tracker" and isinstance(o, click.Option))
    assert all(name in str(option.help) for name in TRACKERS)
    page = (Path(__file__).parents[3] / "docs" / "cli" / "run.md").read_text()
    assert all(name in page for name in TRACKERS)


def test_every_tracker_has_a_line_of_description() -> None:
    assert next(iter(TRACKERS)) == "iou"
    assert all(TRACKERS.values())
    assert all(s.help for s in tracker_settings("iou"))


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("iou", 2),
        (" iou ", 2),
        ("iou:", 2),
        ("iou:min_hits=5", 5),
        ("iou: min-hits = 3 , max_age=7,", 3),
        ("iou:min_hits=4.0", 4),
    ],
)
def test_a_name_may_be_followed_by_settings(spec: str, expected: int) -> None:
    assert open_tracker(spec).name == "iou"
    assert hits(spec) == expected


def test_keyword_settings_win() -> None:
    assert hits("iou:min_hits=5", min_hits=3) == 3


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("iuo", ["no tracker 'iuo'", "iou, sort", "YAML"]),
        ("bytetrak", ["did you mean bytetrack?"]),
        ("", ["no tracker ''"]),
        ("iou:min_iuo=0.3", ["no setting 'min_iuo'", "did you mean min_iou?", "max_age"]),
        ("iou:min_iou", ["'min_iou' has no value", "name=value"]),
        ("iou:min_iou=2", ["min_iou=2", "a number from 0 to 1"]),
        ("iou:min_iou=nan", ["min_iou=nan", "a number from 0 to 1"]),
        ("iou:min_hits=0", ["min_hits=0", "a whole number of at least 1"]),
        ("iou:min_hits=2.5", ["min_hits=2.5", "whole"]),
        ("iou:max_age=lots", ["max_age=lots", "whole"]),
        ("iou:max_age=inf", ["max_age=inf", "whole"]),
        ("iou:fill_gaps=perhaps", ["fill_gaps=perhaps", "true or false"]),
        ("iou:operate_on_class_ids=a;b", ["operate_on_class_ids=a;b", "0;2"]),
    ],
)
def test_a_mistake_names_what_is_possible(spec: str, words: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        open_tracker(spec)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("text", ["0;2", "0:2", "0;2;", " 0 ; 2 "])
def test_class_ids_are_written_as_in_configs(text: str) -> None:
    boxes = [[100 * i, 10, 50, 50] for i in range(3)]
    got = track(
        open_tracker(f"iou:min_hits=1,operate_on_class_ids={text}"),
        [meta(0, boxes, classes=[0, 1, 2])],
    )
    assert [i is not None for i in got[0]] == [True, False, True]


def test_a_yaml_file_names_the_tracker_and_its_settings(tmp_path: Path) -> None:
    path = tmp_path / "tracker.yml"
    path.write_text("tracker: iou\nmin-hits: 4\nmatch_classes: false\noperate_on_class_ids: [0]\n")
    assert hits(path) == hits(str(path)) == 4
    assert open_tracker(path).notices == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tracker: iou\nmin_hit: 4\n", ["no setting 'min_hit'", "min_hits"]),
        ("tracker: iou\nmin_hits: [1, 2]\n", ["min_hits=[1, 2]", "whole"]),
        ("tracker: iou\nmin_hits: yes\n", ["min_hits=True", "whole"]),
        ("tracker: [a\n", ["malformed YAML", ":2"]),
        ("- a\n", ["not a mapping"]),
        ("", ["not a mapping"]),
        ("a: \x00\n", ["malformed YAML"]),
        ("a: 2024-13-45\n", ["malformed YAML"]),
        (
            "BaseConfig: {minDetectorConfidence: x}\n",
            [":1: ", "minDetectorConfidence=x is not possible", "a number"],
        ),
        ("a: " + "[" * 30 + "]" * 30, ["deeper than 20"]),
        # libyaml may refuse it first
        pytest.param("a: " + "[" * 300_000 + "]" * 300_000, ["nest"], id="deep"),
        ("tracker: &a [iou]\nmin_hits: *a\n", ["aliases are not read"]),
        ("a: !!python/object:os.system x\n", ["malformed YAML"]),
        ("? [a]\n: 1\n", [":1: a key is not a text"]),
        ("a:\n  ? {b: c}\n  : 1\n", [":2: a key is not a text"]),
    ],
)
def test_a_bad_file_is_told_with_its_line(tmp_path: Path, text: str, words: list[str]) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        open_tracker(path)
    for word in words:
        assert word in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_file_that_is_not_there_or_too_large(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.yml: the file cannot be read: No such file"):
        open_tracker(tmp_path / "none.yml")
    with pytest.raises(ConfigError, match="cannot be read"):
        open_tracker(tmp_path)
    large = tmp_path / "large.yml"
    large.write_bytes(b"#" * (1 << 20) + b"\n")
    with pytest.raises(ConfigError, match="larger than 1 MiB"):
        open_tracker(large)


def test_lasting_ids_are_of_one_run_alone(tmp_path: Path) -> None:
    file = tmp_path / "state" / "ids"
    first, second = TrackIds(file), TrackIds(file)
    mine, others = first.take(999).tolist(), second.take(3).tolist()
    mine += first.take(5).tolist()
    again = TrackIds(file).take(1500).tolist()  # after a kill
    assert (mine[0], others[0]) == (1, 1001)
    assert len({*mine, *others, *again}) == len(mine) + len(others) + len(again)
    file.write_text("damaged")
    assert TrackIds(file).take(1)[0] > 1_700_000_000_000
    assert TrackIds(Path("/proc/headrace/ids")).take(1)[0] > 1_700_000_000_000


@pytest.mark.slow
def test_a_run_that_appends_goes_on_behind_the_ids_of_the_last(
    tmp_path: Path,
) -> None:
    out, conveyor = tmp_path / "found.jsonl", tmp_path / "conveyor"
    copied_example("conveyor", conveyor)
    ids: list[set[int]] = []
    for _ in range(2):
        with open_pipeline(
            conveyor / "config_infer_primary.txt", sources=conveyor / "conveyor.mp4",
            tracker="iou", outputs=out, append=True, limit=40,
        ) as pipeline:  # fmt: skip
            rows = [o.track_id for _, meta in pipeline for o in meta.objects]
        ids.append({row for row in rows if row is not None})
    assert ids[0]
    assert not ids[0] & ids[1]
