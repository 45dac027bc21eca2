"""Keys of deepstream-app configs whose work is seen in a run alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.pipeline.conftest import DETECTOR, FRAMES, READER, Run

pytestmark = pytest.mark.filterwarnings("ignore::headrace.HeadraceWarning")


def test_every_output_of_each_batch_lies_in_its_folder(run: Run, tmp_path: Path) -> None:
    raw = f"infer-raw-output-dir={tmp_path}/raw\n"
    _, metas = run(DETECTOR + raw + READER + raw.replace("raw\n", "crops\n"))
    files = sorted((tmp_path / "raw").iterdir())
    names = {file.name.split("_batch0")[0] for file in files}
    for layer in names:
        mine = [file for file in files if file.name.startswith(f"{layer}_batch0")]
        assert [f.name for f in mine] == [
            f"{layer}_batch{n:010d}_batchsize01.bin" for n in range(FRAMES)
        ]
        sizes = {file.stat().st_size for file in mine}
        assert len(sizes) == 1
        assert np.fromfile(mine[0], np.uint8).tobytes() != bytes(sizes.pop())
    found = sum(len(meta.objects) for meta in metas)
    crops = [file.name for file in (tmp_path / "crops").iterdir()]
    layers = {name.split("_batch0")[0] for name in crops}
    items = sum(int(name.rpartition("batchsize")[2][:-4]) for name in crops)
    assert items % len(layers) == 0
    assert 0 < items <= found * len(layers)  # small objects are not read


def test_key_frames_of_a_source_alone(run: Run) -> None:
    _, metas = run(
        "[source1]\nenable=1\ntype=2\nuri=file://conveyor.mp4\nintra-decode-enable=1\n" + DETECTOR
    )
    times = {n: [m.pts_ns for m in metas if m.source_id == n] for n in (0, 1)}
    assert len(times[0]) == FRAMES
    assert times[1] == [0]  # the video has one key frame
