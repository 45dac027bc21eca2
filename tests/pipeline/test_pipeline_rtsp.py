"""A camera that drops out and comes back beside files: a real server on loopback."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.infer.batch import Batch
from headrace.infer.inferencer import Inferencer
from headrace.media import ReconnectPolicy, open_source
from headrace.pipeline import Pipeline
from tests.media.conftest import write_clip
from tests.media.sources.test_stream_rtsp import Server, server  # noqa: F401 - a fixture

Config = Callable[..., Path]


@pytest.mark.slow
def test_a_camera_drops_and_returns_beside_files(
    mean_config: Config,
    tmp_path: Path,
    server: Server,  # noqa: F811
) -> None:
    server.start()
    files = [write_clip(tmp_path / f"{i}.mp4", n) for i, n in enumerate((40, 90))]
    url = server.url()
    camera = open_source(url, timeout_s=5, reconnect=ReconnectPolicy(first_s=0.1, max_s=0.4))
    sources = [open_source(str(files[0])), camera, open_source(str(files[1]))]
    seen: dict[int, list[int]] = {}
    restarted: list[threading.Thread] = []

    def restart() -> None:
        server.kill()
        server.start("--size", "96x80")

    def watch(batch: Batch) -> None:
        for meta in batch.metas:
            seen.setdefault(meta.source_id, []).append(meta.frame)
        if len(seen.get(1, ())) >= 20 and not restarted:
            restarted.append(threading.Thread(target=restart))
            restarted[0].start()

    with Inferencer.from_config(mean_config(batch_size=4)) as model:
        report = Pipeline(sources, [model, watch], limit=120).run()
    restarted[0].join()
    assert seen[0] == list(range(40))
    assert seen[2] == list(range(90))
    assert seen[1] == sorted(set(seen[1]))
    one, cam, other = report.sources
    assert (one.frames, one.state, other.frames, other.state) == (40, "ended", 90, "ended")
    assert (cam.frames, cam.error, cam.reconnects) == (120, None, 1)
    assert cam.frames == len(seen[1]) + cam.dropped
    assert any("the connection was lost" in n.sentence for n in report.notices)
