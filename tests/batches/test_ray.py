"""Batches on a Ray cluster of several nodes, and inference in Ray Data."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import headrace
from headrace.batches import ray_cluster, ray_joining
from headrace.batches.placement import Placement
from headrace.batches.shipping import packed_work, unpacked_work
from headrace.batches.units import BatchUnit
from headrace.batches.work import Work, Worker
from headrace.config import ModelConfig
from headrace.config.overrides import given_line
from headrace.infer.run_options import RunOptions
from headrace.pipeline.opening import pipeline_spec
from headrace.pipeline.stage_order import numbered
from tests.batches.test_running import rows, rows_of_run
from tests.media.sources.videos import X264, write_video
from tests.ports import free_port

HANGS = """
import time

def hangs_on_black(layers, network, params):
    (layer,) = layers.values()
    if layer.data[0] == 0:
        time.sleep(600)
    return parse(layers, network, params)
"""


def work_of(config: Path, *lines: str) -> tuple[Work, list[ModelConfig]]:
    spec = pipeline_spec(configs=[config], sources=["x"])
    spec = spec.with_models_overridden([given_line(line, "--set") for line in lines])
    return Work(spec, RunOptions(threads=1)), numbered(spec.load_models(), None)[0]


def test_a_shipment_needs_nothing_of_where_it_came_from(
    mean_config: Callable[..., Path], tmp_path: Path
) -> None:
    config = mean_config()
    work, configs = work_of(config, "batch-size=3", "pre-cluster-threshold=0.25")
    shipment = packed_work(work, configs)
    contents = {place: path.read_bytes() for place, path in shipment.files.items()}
    assert {Path(place).name for place in contents} == {
        "mean.onnx", "mean_parser.py", "labels.txt",
    }  # fmt: skip
    for name in ("config.txt", "mean.onnx", "mean_parser.py", "labels.txt"):
        (tmp_path / name).unlink()
    asked: list[str] = []

    def read(place: str) -> bytes:
        asked.append(place)
        return contents[place]

    folder = tmp_path / "node"
    for _ in range(2):
        there = unpacked_work(shipment, folder, read)
    assert sorted(asked) == sorted(contents)
    (cfg,) = there.spec.load_models()
    assert cfg.batch_size == 3
    assert cfg.all_classes.pre_cluster_threshold == 0.25
    assert cfg.labelfile_path.read_text() == "thing\n"
    Worker(there, None).close()
    assert list(folder.glob("*/*.engine"))


@pytest.fixture
def clips(tmp_path: Path) -> list[Path]:
    folder = tmp_path / "clips"
    folder.mkdir()
    videos = range(int(os.environ.get("HEADRACE_TEST_CLIPS", "120")))
    return [write_video(folder / f"{n:04}.mp4", 8 + n % 5, options=X264, seed=n) for n in videos]


@pytest.fixture
def ray_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # workers import the tests' modules and headrace from here
    path = [str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.setenv("RAY_memory_monitor_refresh_ms", "0")


@pytest.fixture
def cluster(ray_surroundings: None) -> Iterator[Any]:
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    made = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 0, "object_store_memory": 10**8, "include_dashboard": False},
    )
    for _ in range(2):
        made.add_node(num_cpus=1, object_store_memory=10**8)
    made.wait_for_nodes()
    yield made
    import ray

    ray.shutdown()
    made.shutdown()


def replace_node(cluster: Any) -> None:
    """Kill a node, and add another."""
    node = next(n for n in cluster.list_all_nodes() if not n.head)
    cluster.remove_node(node, allow_graceful=False)
    cluster.add_node(num_cpus=1, object_store_memory=10**8)


def wait_for_lines(ledger: Path, count: int) -> None:
    until = time.monotonic() + 60
    while not ledger.exists() or ledger.read_bytes().count(b"\n") < count:
        assert time.monotonic() < until, "the batch does not come on"
        time.sleep(0.05)


def wait_for_ray(address: str) -> None:
    import ray

    until = time.monotonic() + 60
    while True:
        try:
            ray.init(address=address, log_to_driver=False)
        except ConnectionError:
            assert time.monotonic() < until, "the cluster does not answer"
            time.sleep(0.5)
        else:
            return


@pytest.mark.slow
def test_nodes_and_drivers_that_are_killed_cost_no_row(
    cluster: Any, mean_config: Callable[..., Path], clips: list[Path], tmp_path: Path
) -> None:
    slow, out = tmp_path / "slow", tmp_path / "out"
    waits = f"""
import os, time

def waits(layers, network, params):
    if os.path.exists({str(slow)!r}):
        time.sleep(0.02)
    return parse(layers, network, params)
"""
    config = mean_config(parser=waits, parse_bbox_func_name="waits")
    slow.touch()  # a unit takes 0.2 s: what is killed is in the middle
    command = [sys.executable, "-m", "headrace", "batch", str(config), str(clips[0].parent),
               "-o", str(out), "--resume", "--threads", "1", "--on", "ray"]  # fmt: skip
    environment = os.environ | {"RAY_ADDRESS": cluster.address}
    ledger = out / "ledger.jsonl"
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    wait_for_lines(ledger, 5)
    replace_node(cluster)
    wait_for_lines(ledger, 10)
    process.send_signal(signal.SIGKILL)
    process.wait()
    lines = ledger.read_bytes().count(b"\n")
    assert 10 <= lines < 100
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    wait_for_lines(ledger, lines + 5)
    replace_node(cluster)
    slow.unlink()
    printed, _ = process.communicate(timeout=90 + len(clips) / 2)
    assert process.returncode == 0, printed
    assert " were done before" in printed
    assert rows(out) == rows_of_run(config, *clips)
    checked = subprocess.run(
        [sys.executable, "-m", "headrace", "batch", "-o", str(out), "--verify"],
        capture_output=True, text=True,
    )  # fmt: skip
    files = [path for kind in ("objects", "frames") for path in out.glob(f"{kind}/**/*.parquet")]
    assert len(files) <= 2 * (1 + len(clips) // 1000)  # small results share files
    assert checked.stdout == f"{len(files)} result files read, 0 faults; {len(clips)} inputs done\n"


@pytest.mark.slow
def test_an_actor_that_started_anew_in_silence_opens_the_models_again(
    cluster: Any, mean_config: Callable[..., Path], clips: list[Path], tmp_path: Path
) -> None:
    import ray

    ray.init(address=cluster.address, log_to_driver=False)
    work, configs = work_of(mean_config())
    executor = ray_cluster.RayExecutor("ray", work, configs, tmp_path, Placement(1, 1), workers=1)
    try:
        while executor._down:
            executor.collect(0.1)
        ray.kill(executor._actors[0], no_restart=False)  # no call is under way that would fail
        time.sleep(5)
        unit, lost = BatchUnit(str(clips[0])), 0
        executor.submit(unit)
        until = time.monotonic() + 60
        while time.monotonic() < until:
            for result in executor.collect(0.1):
                if result.outcome == "done":
                    assert result.frames == 8
                    assert lost < 5
                    return
                lost += 1
                executor.submit(unit)
        raise AssertionError(f"the unit came back {lost} times and was never done")
    finally:
        executor.close()


def test_actors_take_cores_and_gpus() -> None:
    assert ray_cluster.room_for({"CPU": 16, "GPU": 2}, 4, gpus=False) == 4
    assert ray_cluster.room_for({"CPU": 16, "GPU": 2}, 4, gpus=True) == 2
    assert ray_cluster.room_for({"CPU": 4, "GPU": 8}, 2, gpus=True) == 2
    assert ray_cluster.room_for({}, 2, gpus=True) == 1


@pytest.mark.parametrize(
    ("cores", "gpus", "fits"),
    [(4, False, True), (8, False, True), (9, False, False), (4, True, True), (8, True, False)],
)
def test_a_cluster_without_a_node_that_fits_is_refused_at_once(
    cores: int, gpus: bool, fits: bool
) -> None:
    nodes = [
        {"Alive": True, "Resources": {"CPU": 8.0}},
        {"Alive": True, "Resources": {"CPU": 4.0, "GPU": 1.0}},
        {"Alive": False, "Resources": {"CPU": 64.0, "GPU": 8.0}},
    ]
    if fits:
        ray_joining.require_node(nodes, cores, gpus)
        return
    with pytest.raises(headrace.HeadraceError, match="no node of the Ray cluster has") as caught:
        ray_joining.require_node(nodes, cores, gpus)
    assert "at most 8 core(s) and 1 GPU(s)" in str(caught.value)


@pytest.mark.slow
def test_a_running_cluster_without_a_node_that_fits_says_so_within_ten_seconds(
    cluster: Any, mean_config: Callable[..., Path], clips: list[Path], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("RAY_ADDRESS", cluster.address)
    begun = time.monotonic()
    with pytest.raises(headrace.HeadraceError, match="has 4096 CPU core") as caught:
        headrace.batch(mean_config(), inputs=clips[0], out=tmp_path / "out", on="ray", threads=4096)
    assert time.monotonic() - begun < 10
    assert caught.value.code == "ray-no-node"


@pytest.mark.slow
def test_a_cluster_of_this_machine_is_not_started_in_vain(
    mean_config: Callable[..., Path], clips: list[Path], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    ray = pytest.importorskip("ray")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(ray, "init", lambda **_: pytest.fail("it was started"))
    for workers in (None, 1):
        with pytest.raises(headrace.HeadraceError, match="has 4096 CPU core") as caught:
            headrace.batch(
                mean_config(), inputs=clips[0], out=tmp_path / str(workers), on="ray",
                threads=4096, workers=workers,
            )  # fmt: skip
        assert caught.value.code == "ray-no-node"
        assert "waits for nodes" not in str(caught.value)


@pytest.mark.parametrize("scheme", ["ray://", ""])
def test_a_cluster_that_is_not_there_is_told_before_models_are_opened(
    mean_config: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    ray = pytest.importorskip("ray")
    monkeypatch.setattr(ray, "init", lambda **_: pytest.fail("Ray waits for minutes"))
    address = f"{scheme}127.0.0.1:{free_port()}"
    monkeypatch.setenv("RAY_ADDRESS", address)
    config = mean_config()
    (tmp_path / "mean.onnx").write_text("no model")
    for on in {"ray", address if scheme else "ray"}:
        with pytest.raises(headrace.HeadraceError, match="does not answer: ") as caught:
            headrace.batch(config, inputs=".", out=tmp_path / "o", on=on)
        assert (caught.value.code, caught.value.where) == ("ray-away", address)


@pytest.mark.parametrize("scheme", ["ray://", ""])
@pytest.mark.parametrize("refuses", [True, False])
def test_a_cluster_that_asks_for_a_token_is_told_at_once(
    monkeypatch: pytest.MonkeyPatch, scheme: str, refuses: bool
) -> None:
    pytest.importorskip("ray")
    grpc = pytest.importorskip("grpc")
    status = grpc.StatusCode.UNAUTHENTICATED if refuses else grpc.StatusCode.UNIMPLEMENTED

    class EveryCall(grpc.GenericRpcHandler):
        def service(self, _: object) -> object:
            return grpc.unary_unary_rpc_method_handler(lambda _, call: call.abort(status, "no"))

    server = grpc.server(ThreadPoolExecutor(1), handlers=[EveryCall()])
    address = f"{scheme}127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    monkeypatch.setenv("RAY_ADDRESS", address)
    monkeypatch.delenv("RAY_AUTH_MODE", raising=False)
    try:
        if not refuses:
            ray_joining.check_cluster("ray", 1, gpus=False)
            return
        with pytest.raises(headrace.HeadraceError, match="asks for a token") as caught:
            ray_joining.check_cluster("ray", 1, gpus=False)
        assert (caught.value.code, caught.value.where) == ("ray-token", address)
        monkeypatch.setenv("RAY_AUTH_MODE", "token")  # Ray has it, or says what is wrong with it
        ray_joining.check_cluster("ray", 1, gpus=False)
    finally:
        server.stop(None)


def test_ray_chooses_the_gpu(mean_config: Callable[..., Path], tmp_path: Path) -> None:
    pytest.importorskip("ray")
    for device in ("cuda:1", "mars"):
        with pytest.raises(
            headrace.HeadraceError, match=f"{device} is no device for a batch on Ray"
        ):
            headrace.batch(mean_config(), inputs=".", out=tmp_path / "o", on="ray", device=device)


def collect_until(executor: ray_cluster.RayExecutor, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        executor.collect(0.1)


@pytest.mark.slow
def test_each_actor_has_a_gpu_of_its_own(
    cluster: Any, mean_config: Callable[..., Path], clips: list[Path], tmp_path: Path
) -> None:
    import ray

    cluster.add_node(num_cpus=4, num_gpus=2, object_store_memory=10**8)  # which it only claims
    ray.init(address=cluster.address, log_to_driver=False)
    work, configs = work_of(mean_config())
    work = replace(work, options=replace(work.options, device="cuda"))
    executor = ray_cluster.RayExecutor("ray", work, configs, tmp_path, Placement(1, 1))
    try:
        assert executor.workers == 2
        with pytest.raises(headrace.HeadraceError, match="--device cuda: "):
            collect_until(executor, 60)
        assert "GPU" not in ray.available_resources()
    finally:
        executor.close()


@pytest.mark.slow
def test_a_unit_that_never_ends_is_given_up_on_ray(
    cluster: Any, mean_config: Callable[..., Path], clips: list[Path], tmp_path: Path
) -> None:
    import ray

    ray.init(address=cluster.address, log_to_driver=False)
    config = mean_config(parser=HANGS, parse_bbox_func_name="hangs_on_black")
    black = tmp_path / "black.png"
    Image.new("RGB", (64, 48)).save(black)
    report = headrace.batch(
        config, inputs=[black, *clips[:20]], out=tmp_path / "out", threads=1, on="ray",
        unit_timeout=2,
    )  # fmt: skip
    assert report.progress.errors == [
        (str(black), "it ran longer than the limit of 2 s (--unit-timeout)")
    ]
    assert (report.progress.done, report.progress.failed) == (20, 1)
    assert rows(tmp_path / "out") == rows_of_run(config, *clips[:20])


@pytest.fixture
def growing_cluster(ray_surroundings: None, tmp_path: Path) -> Iterator[str]:
    """The address of a head without cores, whose autoscaler starts nodes of one core here."""
    pytest.importorskip("ray")
    import ray
    from ray.autoscaler._private.fake_multi_node.node_provider import FAKE_HEAD_NODE_ID

    port = free_port()
    folder = f"/tmp/ray-{port}"  # paths of sockets are short
    address = f"{ray.util.get_node_ip_address()}:{port}"
    config = tmp_path / "autoscaler.json"
    node = {"resources": {"CPU": 1}, "node_config": {}, "min_workers": 0, "max_workers": 2}
    head = {"resources": {"CPU": 0}, "node_config": {}, "max_workers": 0}
    config.write_text(json.dumps({
        "cluster_name": "headrace-test", "max_workers": 2, "idle_timeout_minutes": 5,
        "upscaling_speed": 1,
        "provider": {"type": "fake_multinode", "head_node_id": FAKE_HEAD_NODE_ID,
                     "gcs_address": address, "launch_multiple": True,
                     "disable_node_updaters": True},
        "auth": {"ssh_user": "nobody"},
        "available_node_types": {"small": node, "ray.head.default": head},
        "head_node_type": "ray.head.default",
        "head_node": {}, "worker_nodes": {}, "file_mounts": {}, "cluster_synced_files": [],
        "file_mounts_sync_continuously": False, "rsync_exclude": [], "rsync_filter": [],
        "initialization_commands": [], "setup_commands": [], "head_setup_commands": [],
        "worker_setup_commands": [], "head_start_ray_commands": [],
        "worker_start_ray_commands": [],
    }))  # fmt: skip
    head_process = subprocess.Popen(
        [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", "--num-cpus=0",
         f"--port={port}", "--include-dashboard=false", "--object-store-memory=100000000",
         f"--autoscaling-config={config}", f"--temp-dir={folder}"],
        env=os.environ | {"RAY_FAKE_CLUSTER": "1", "AUTOSCALER_UPDATE_INTERVAL_S": "1"},
        stdout=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    yield address
    ray.shutdown()
    head_process.terminate()
    head_process.wait(20)
    with suppress(ProcessLookupError):
        os.killpg(head_process.pid, signal.SIGKILL)  # the nodes it has started
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.slow
def test_nodes_come_when_units_wait(
    growing_cluster: str, mean_config: Callable[..., Path], clips: list[Path], tmp_path: Path
) -> None:
    import ray

    wait_for_ray(growing_cluster)
    assert ray.cluster_resources().get("CPU", 0) == 0
    config = mean_config()
    report = headrace.batch(
        config, inputs=clips[:30], out=tmp_path / "out", workers=2, threads=1, on="ray"
    )
    assert ray.cluster_resources()["CPU"] == 2
    assert report.progress.done == 30
    assert rows(tmp_path / "out") == rows_of_run(config, *clips[:30])


@pytest.mark.slow
def test_results_come_back_where_the_folder_is_not_shared(
    cluster: Any, mean_config: Callable[..., Path], clips: list[Path], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    import ray

    ray.init(address=cluster.address, log_to_driver=False)
    seen: list[object] = []
    real = ray_cluster.RayExecutor.collect

    def collect(self: Any, timeout_s: float) -> list[Any]:
        found = real(self, timeout_s)
        seen.extend(content for result in found for content in result.files.values())
        return found

    monkeypatch.setattr(ray_cluster.RayExecutor, "collect", collect)
    monkeypatch.setattr(Path, "resolve", lambda self, *a: Path("/nowhere", *self.parts[1:]))
    config = mean_config()
    broken = tmp_path / "broken.mp4"
    broken.write_text("no video")
    report = headrace.batch(
        config, inputs=[broken, *clips[:6]], out=tmp_path / "out", threads=1, on="ray"
    )
    monkeypatch.undo()
    ((name, text),) = report.progress.errors
    assert name == str(broken)
    assert "is not a video that can be read" in text
    assert report.progress.done == 6
    assert [type(content) for content in seen] == [bytes] * 6 * 2  # objects and frames
    assert rows(tmp_path / "out") == rows_of_run(config, *clips[:6])


@pytest.mark.slow
def test_map_batches_finds_what_the_inferencer_finds(
    cluster: Any, mean_config: Callable[..., Path]
) -> None:
    import ray

    config = mean_config()
    images = np.random.default_rng(0).integers(0, 255, (6, 48, 64, 3), np.uint8)
    made = headrace.ray.Inferencer(config, threads=1)
    here = made({"image": images})
    model = headrace.Inferencer.from_config(config)
    for place, image in enumerate(images):
        meta = model(image, format="rgb")
        assert here["boxes"][place] == meta.objects.rects.tolist()
        assert here["labels"][place] == ["thing"]
        assert here["scores"][place] == meta.objects.confidences.tolist()
    model.close()
    pytest.importorskip("ray.data")
    ray.init(address=cluster.address, log_to_driver=False)
    found = (
        ray.data.from_numpy(images)
        .map_batches(
            headrace.ray.Inferencer,
            fn_constructor_args=[str(config)],
            fn_constructor_kwargs={"column": "data", "threads": 1},
            concurrency=1,
            batch_size=3,
        )
        .take_all()
    )
    scores = sorted(float(row["scores"][0]) for row in found)
    assert scores == pytest.approx(sorted(s[0] for s in here["scores"]))


@pytest.mark.slow
def test_objects_are_read_as_a_dataset(
    cluster: Any, mean_config: Callable[..., Path], clips: list[Path], tmp_path: Path
) -> None:
    pytest.importorskip("ray.data")
    import ray

    ray.init(address=cluster.address, log_to_driver=False)
    config = mean_config()
    made = headrace.ray.read_objects(config, inputs=clips[0].parent, concurrency=2).materialize()
    found = [tuple(map(str, row.values())) for row in made.take_all()]
    assert sorted(found) == rows_of_run(config, *clips)
    assert made.size_bytes() < 1000 * len(found)  # tables alone, no frames
    broken = tmp_path / "broken.mp4"
    broken.write_text("no video")
    with pytest.raises(Exception, match="is not a video that can be read"):
        headrace.ray.read_objects(config, inputs=[clips[0], broken]).take_all()
