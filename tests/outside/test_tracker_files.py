"""Tracker files of public applications that you checked out: each loads, no key is in silence."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headrace.pipeline.track import open_tracker
from headrace.pipeline.track.original_keys import find_key
from headrace.pipeline.track.settings_file import read_entries

_SECTION = re.compile(r"^(BaseConfig|TargetManagement|NvDCF|DataAssociator)\s*:", re.MULTILINE)


def tracker_files(folder: Path) -> list[Path]:
    """The files below a folder that have a section of a tracker."""
    found = [path for kind in ("*.yml", "*.yaml") for path in folder.rglob(kind)]
    return sorted(
        path for path in found
        if path.is_file() and _SECTION.search(path.read_text("utf-8", errors="replace"))
    )  # fmt: skip


def test_every_key_is_applied_or_named(outside: Path) -> None:
    files = tracker_files(outside)
    if not files:
        pytest.skip("no tracker files in HEADRACE_OUTSIDE")
    silent = []
    for path in files:
        tracker = open_tracker(path)
        said = " ".join(notice.sentence for notice in tracker.notices)
        silent += [
            f"{path}: {name}"
            for name in read_entries(path)
            if find_key(name) is None and name.rpartition(".")[2] not in said
        ]
        assert tracker.name in ("nviou", "nvsort", "nvdcf", "nvdeepsort"), path
        tracker.close()
    assert silent == []
    print(f"{len(files)} tracker files")
