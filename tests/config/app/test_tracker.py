"""Which tracker the group `tracker` of a deepstream-app config asks for."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.config import PipelineSpec, load_pipeline
from headrace.config.app.tracker import is_original_library, sample_tracker
from headrace.pipeline.track.open import TRACKERS

APP = """[source0]
enable=1
type=2
uri=file://a.mp4
[tracker]
enable=1
tracker-width=640
tracker-height=384
{rows}
"""


def read(folder: Path, *rows: str) -> PipelineSpec:
    path = folder / "app.txt"
    path.write_text(APP.format(rows="\n".join(rows)))
    return load_pipeline(path)


@pytest.mark.parametrize(
    ("file", "tracker"),
    [
        ("config_tracker_IOU.yml", "nviou"),
        ("config_tracker_NvDCF_max_perf.yml", "nvdcf-max-perf"),
        ("/opt/nvidia/deepstream/config_tracker_NvDCF_accuracy.yml", "nvdcf-accuracy"),
        ("config_tracker_NvDeepSORT.yml", "nvdeepsort"),
        ("my_tracker.yml", "iou"),
    ],
)
def test_a_sample_file_that_is_not_there_is_a_tracker_by_its_name(file: str, tracker: str) -> None:
    assert sample_tracker(Path(file)) == tracker
    assert tracker in TRACKERS


@pytest.mark.parametrize(
    ("library", "original"),
    [
        ("/opt/nvidia/deepstream/lib/libnvds_nvmultiobjecttracker.so", True),
        ("libnvds_mot_klt.so", True),
        ("libByteTracker.so", False),
        ("./libnvmultiobjecttracker_mine.so", False),
    ],
)
def test_a_library_of_the_user_is_told_from_the_original(library: str, original: bool) -> None:
    assert is_original_library(library) is original


def test_a_library_of_the_user_is_called(tmp_path: Path) -> None:
    (tmp_path / "libmine.so").touch()
    spec = read(tmp_path, "ll-lib-file=libmine.so", "ll-config-file=mine.yml")
    assert spec.tracker is not None
    assert spec.tracker.name == "nvmot"
    assert dict(spec.tracker.settings) == {
        "library": str(tmp_path / "libmine.so"),
        "config": str(tmp_path / "mine.yml"),  # whatever is in it, and whether it is there
        "tracker_width": "640",
        "tracker_height": "384",
    }
    assert not [n for n in spec.notices if "tracker-width" in str(n)]


def test_one_that_is_not_there_is_named(tmp_path: Path) -> None:
    spec = read(tmp_path, "ll-lib-file=libmine.so")
    assert spec.tracker is not None
    assert spec.tracker.text == "iou"
    assert [n.level for n in spec.notices if n.code == "tracker-library"] == ["warning"]
    (tmp_path / "mine.cpp").touch()
    assert "headrace compile" in " ".join(
        map(str, read(tmp_path, "ll-lib-file=libmine.so").notices)
    )
    (size,) = (n for n in spec.notices if "tracker-width" in str(n))
    assert size.level == "info"
