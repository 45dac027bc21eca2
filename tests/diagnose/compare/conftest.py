"""A copy of the demo scene, and a comparison that plants one difference in B."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace.config import ModelConfig
from headrace.diagnose.compare import Comparison, compare
from headrace.media import Frame, open_source

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture(scope="package")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scene")
    for item in (EXAMPLES / "conveyor").iterdir():
        if item.is_file():
            shutil.copy(item, folder)
    return folder


@pytest.fixture(scope="package")
def frames(scene: Path) -> list[Frame]:
    """Four frames of the clip without their right edge, so that a letterbox has bars."""
    with open_source(str(scene / "conveyor.mp4")) as source:
        images = [frame.to_bgr() for i, frame in enumerate(source) if i in (10, 40, 70, 100)]
    cut = [np.ascontiguousarray(image[:, :560]) for image in images]
    return [Frame.from_array(image, frame=i) for i, image in enumerate(cut)]


@pytest.fixture(scope="package")
def planted(scene: Path, frames: list[Frame]) -> Callable[..., Comparison]:
    """Compare the scene's detector with itself, after `change` of its keys."""

    def run(a: dict[str, Any] | None = None, **keys: Any) -> Comparison:
        cfg = ModelConfig.load(scene / "config_infer_primary.txt")
        return compare(cfg.with_overrides(**(a or {})), cfg.with_overrides(**keys), frames)

    return run
