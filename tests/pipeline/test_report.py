"""The report of a run says what was left out, by filter and class, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import headrace
from headrace._core import _native
from headrace.pipeline.report import count_objects
from tests.pipeline.track.scenes import meta

Config = Callable[..., Path]


def filtered(config: Path, name: str, *keys: str) -> Path:
    """The config under another name, with lines for all classes."""
    path = config.with_name(name)
    path.write_text(config.read_text() + "[class-attrs-all]\n" + "\n".join(keys) + "\n")
    return path


def test_losses_are_in_the_report_its_json_and_notebooks(mean_config: Config, photos: Path) -> None:
    config = filtered(mean_config(), "small.txt", "detected-max-w=3")
    report = headrace.open_pipeline(config, sources=photos).run()
    (model,) = report.models
    assert model.dropped == {"detected-max-w": {"thing": 3}}
    assert model.skipped == {}
    (reason,) = model.reasons
    assert reason.startswith("detected-max-w=3 dropped all 3 boxes (thing 3); the nearest is ")
    (plain,) = report.to_dict()["models"]
    assert (plain["dropped"], plain["skipped"]) == (model.dropped, {})
    assert plain["reasons"] == model.reasons
    assert "detected-max-w=3 dropped all 3 boxes" in report._repr_html_()


def test_a_run_that_found_something_gives_no_reasons(mean_config: Config, photos: Path) -> None:
    report = headrace.open_pipeline(mean_config(), sources=photos).run()
    (model,) = report.models
    assert (model.dropped, model.skipped, model.reasons) == ({}, {}, [])


def test_each_run_of_one_model_counts_for_itself(mean_config: Config, photos: Path) -> None:
    config = filtered(mean_config(), "small.txt", "detected-max-w=3")
    with headrace.Inferencer.from_config(config) as model:
        for limit in (3, 2):
            report = headrace.open_pipeline(model, sources=photos, limit=limit).run()
            assert report.models[0].dropped == {"detected-max-w": {"thing": limit}}


def test_a_stage_that_counts_nothing_has_no_losses() -> None:
    report = headrace.pipeline.ModelReport("other")
    assert (report.dropped, report.skipped, report.reasons) == ({}, {}, [])


def test_the_rate_counts_no_frame_that_was_dropped() -> None:
    report = headrace.pipeline.RunReport("camera:0", frames=100, dropped_frames=75, seconds=2.0)
    assert report.fps == 12.5
    assert report.to_dict()["fps"] == 12.5
    assert "12.5 fps" in repr(report)


@given(
    st.lists(
        st.tuples(st.sampled_from([-(2**31), -1, 0, 1, 7, 2**31 - 1]), st.integers(-2, 3)),
        max_size=300,
    )
)
def test_pairs_are_counted_in_their_order(pairs: list[tuple[int, int]]) -> None:
    columns = np.array(pairs, np.int32).reshape(-1, 2)
    first, second = np.ascontiguousarray(columns[:, 0]), np.ascontiguousarray(columns[:, 1])
    counted = [(a, b, n) for (a, b), n in sorted(Counter(pairs).items())]
    assert _native.count_pairs(first, second) == counted


def test_objects_of_frames_with_other_labels_are_counted_by_their_own() -> None:
    metas = []
    for names in (["cat", "dog"], ["cat", "dog"], ["car", "bus"]):
        m = meta(0, [[0, 0, 9, 9], [20, 0, 9, 9]], classes=[0, 1])
        m.objects.labels = {1: names}
        metas.append(m)
    counts: Counter[str] = Counter()
    count_objects(metas, counts)
    assert counts == {"cat": 2, "dog": 2, "car": 1, "bus": 1}
