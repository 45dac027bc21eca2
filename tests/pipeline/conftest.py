"""deepstream-app configs that really run, over the parcels of the example."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headrace
from headrace.pipeline.report import RunReport

SCENE = Path(__file__).parents[2] / "examples" / "conveyor"
FRAMES = 5
DETECTOR = "[primary-gie]\nenable=1\ngie-unique-id=1\nconfig-file=config_infer_primary.txt\n"
READER = (
    "[secondary-gie0]\nenable=1\ngie-unique-id=2\noperate-on-gie-id=1\n"
    "config-file=config_infer_secondary_characters.txt\n"
)
Run = Callable[..., tuple[RunReport, list[Any]]]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scene")
    for path in SCENE.iterdir():
        if path.is_file():
            shutil.copy(path, folder)
    return folder


@pytest.fixture
def run(scene: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)

    def run(groups: str, sources: int = 1, **options: Any) -> tuple[RunReport, list[Any]]:
        text = "".join(
            f"[source{n}]\nenable=1\ntype=2\nuri=file://conveyor.mp4\n" for n in range(sources)
        )
        path = scene / "app.txt"
        path.write_text(text + groups)
        metas: list[Any] = []
        pipeline = headrace.open_pipeline(
            path, limit=FRAMES, device="cpu", on_result=metas.append, **options
        )
        return pipeline.run(), metas

    return run
