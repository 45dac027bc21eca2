"""The page on tracking lists what there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs._ext import tracker_keys
from headrace.pipeline.track import TRACKERS, open_tracker, tracker_settings
from headrace.pipeline.track.original_keys import original_keys
from tests.pipeline.track.scenes import needs_library

PAGE = (Path(__file__).parents[3] / "docs" / "tracking.md").read_text()


def test_every_setting_is_listed_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (\S+) \|", PAGE, re.M))
    settings = {s.name: s.default for s in tracker_settings("iou")}
    assert settings.keys() <= rows.keys()
    for name, default in settings.items():
        written = {"all": "()", "true": "True", "false": "False", "none": ""}.get(
            rows[name], rows[name]
        )
        assert written == (f"{default:g}" if isinstance(default, float) else str(default)), name


@pytest.mark.parametrize("name", TRACKERS)
def test_every_tracker_is_listed(name: str) -> None:
    assert f"`{name}`" in PAGE


def test_the_page_of_the_original_files_lists_every_key() -> None:
    page = (Path(__file__).parents[3] / "docs" / "tracker-files.md").read_text("utf-8")
    assert page == tracker_keys.page(), "run: make schema"
    rows = re.findall(r"^\| `([\w-]+)` \|", page, re.M)
    assert rows == [key.name for key in original_keys().values()]


@needs_library
def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("config_tracker_NvDCF_perf.yml").write_text(
        "%YAML:1.0\nBaseConfig:\n  minDetectorConfidence: 0\n"
    )
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    exec(compile(code, "docs/tracking.md", "exec"), {})
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.S)
    Path("tracker.yml").write_text(text)
    assert open_tracker("tracker.yml").name == "iou"
