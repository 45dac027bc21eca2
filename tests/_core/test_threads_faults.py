"""Every thread that the sources start, with an exception raised at several lines of its work.

Whatever it is and wherever: what waits for the thread comes back, somebody hears of the error, and
no traceback is printed.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import Pipe
from pathlib import Path
from tempfile import mkdtemp
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from headrace._core import mapped
from headrace._core.errors import HeadraceError
from headrace._core.findings import Finding
from headrace._core.gpu.driver_turn import DriverTurn
from headrace.batches.transfer import within
from headrace.cli import batch, ending, live_page, run
from headrace.cli.live_page import LivePage
from headrace.config.pipeline_spec import ConsumerSpec
from headrace.custom import in_process
from headrace.custom.guard.prints import Prints
from headrace.diagnose.plugin_check import runs
from headrace.engine.tuning import worker
from headrace.gstreamer.elements.reconnect import Patience, Reconnector
from headrace.infer import loaded_model
from headrace.infer.batch import Batch
from headrace.infer.update import ModelUpdater
from headrace.infer.watch import half, half_trial
from headrace.live import Address, LiveServer, LiveView
from headrace.live.adding import SourceAdding
from headrace.live.allowed import AllowedSources
from headrace.live.kept import KeptSources
from headrace.media import open_sink
from headrace.media.messages.sender import Sender
from headrace.media.messages.spool import Spool
from headrace.media.sinks import lasting
from headrace.media.sinks.publish import PublishSink
from headrace.media.sources.feed import Feed
from headrace.media.sources.reconnect import Losses
from headrace.pipeline import Pipeline, consumer, shares, source_errors
from headrace.pipeline.care import Care
from headrace.pipeline.health import Health
from headrace.pipeline.rate_lines import RateLines
from tests._core.killing import WORD, Kill, killing, other_threads, thread_names
from tests.gstreamer.conftest import SCENE, detector, gst, play
from tests.gstreamer.elements.test_elements_faults import MUX, source
from tests.media.conftest import gray_frame, make_meta, write_clip
from tests.media.messages.test_sender import Taking
from tests.pipeline.fakes import FakeModel, FakeSink, FakeSource
from tests.ports import free_port
from tests.profiles import PROFILE

__all__ = ["detector", "gst", "make_meta", "play"]  # fixtures

ERRORS = [
    RuntimeError,
    *(
        pytest.param(e, marks=pytest.mark.slow)
        for e in (SystemExit, KeyboardInterrupt, MemoryError)
    ),
]
LINES = (0, 1, 2, 5, 11) if PROFILE == "full" else (0, 2)
Ask = Callable[[str], Any]  # for a fixture
Scene = Callable[[Ask], str]  # returns what was heard of the error


def _until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end, "it hangs"
        time.sleep(0.01)


def _pipeline(ask: Ask) -> str:
    pipeline = Pipeline([FakeSource(30)], [FakeModel()], [FakeSink()])
    pipeline.run()
    return ""


def _two_sources(ask: Ask) -> str:
    report = Pipeline([FakeSource(30, source_id=i) for i in (0, 1)], [FakeModel()]).run()
    return "".join(source.error or "" for source in report.sources)


def _judging(ask: Ask) -> str:
    model = FakeModel()
    pipeline = Pipeline([FakeSource(3000)], [model], on_result=lambda _: pipeline.stop(5))
    pipeline.run()
    return ""


def _messages(ask: Ask) -> str:
    notices: list[Finding] = []
    sender = Sender(Spool(Path(mkdtemp(dir=ask("tmp_path")))), Taking(), watch=Losses(notices, "x"))
    for _ in range(3):
        sender.put(b"{}")
        time.sleep(0.02)
    waiting = sender.close()
    assert sender.sent + waiting == 3, "nothing is lost"
    return "".join(map(str, notices))


def _feed(ask: Ask) -> str:
    packet = SimpleNamespace(stream=SimpleNamespace(index=0))
    container = SimpleNamespace(demux=lambda: [packet] * 20, close=lambda: None)
    feed = Feed(lambda feed: (container, SimpleNamespace(index=0)), 5)  # type: ignore[arg-type, return-value]
    try:
        feed.opened()
        list(feed.packets())
    finally:
        feed.end()
    return ""


def _publish(ask: Ask) -> str:
    sink = PublishSink("udp://127.0.0.1:9", Path("x"), fps=1000)
    for number in range(12):
        frame = gray_frame(number, pts_ns=number)
        sink.write(frame, ask("make_meta")(frame))
        time.sleep(0.005)
    try:
        sink.close()
    finally:
        heard = "".join(map(str, sink.notices))
    return heard


def _rtsp_server(ask: Ask) -> str:
    sink = PublishSink(f"rtsp-server://127.0.0.1:{free_port()}/a", Path("x"), fps=1000)
    for number in range(12):
        frame = gray_frame(number, pts_ns=number)
        sink.write(frame, ask("make_meta")(frame))
        time.sleep(0.02)
    with suppress(HeadraceError):  # none was sent
        sink.close()
    return "".join(map(str, sink.notices))


def _view(ask: Ask) -> str:
    view = LiveView()
    server = LiveServer(Pipeline([FakeSource(3)], (), [view]), view, Address(port=0))
    end = time.monotonic() + 0.3
    while not view.notices and time.monotonic() < end:
        time.sleep(0.02)
    server.close()
    return "".join(map(str, view.notices))


def _share(ask: Ask) -> str:
    ours, theirs = Pipe()
    stops: list[int] = []
    assembly = SimpleNamespace(pipeline=SimpleNamespace(stop=lambda within_s=None: stops.append(1)))
    shares._hear_stop(theirs, assembly)
    ours.send(("stop", None))
    _until(lambda: bool(stops))
    ours.close()
    time.sleep(0.1)
    return ""


def _model(ask: Ask) -> str:
    warned: list[str] = []
    inferencer: Any = SimpleNamespace(
        warn=lambda code, text, where=None: warned.append(f"{code}: {text}"), model=None
    )
    updater = ModelUpdater(inferencer)
    updater.update(config=ask("tmp_path") / "none.txt")
    assert updater.wait(10)
    return "".join(warned) + "".join(map(str, updater.errors))


def _half(ask: Ask) -> str:
    ask("monkeypatch").setattr(half_trial, "try_half", lambda cfg, feeds: ())
    ask("monkeypatch").setattr(half_trial, "half_findings", lambda check, end: ())
    watch = half.HalfWatch(None, computed=False)  # type: ignore[arg-type]
    watch._feeds = [{"x": np.zeros(1)}]
    return "".join(map(str, watch.findings(final=True)))


def _losses(ask: Ask) -> str:
    pipeline: Any = SimpleNamespace(
        sources=[SimpleNamespace(notices=[Finding("connection-away", "warning", "away")])], sinks=[]
    )
    ask("monkeypatch").setattr(run, "_LOOK_S", 0.02)
    with run._tell_losses(pipeline, lambda findings: None):
        time.sleep(0.2)
    return ""


def _rates(ask: Ask) -> str:
    lines: list[str] = []
    rates = RateLines(1, 0.02, lines.append)
    rates._began = rates._last = time.perf_counter()
    time.sleep(0.3)
    rates.close()
    return "".join(lines)


def _contexts(ask: Ask) -> str:
    patch = ask("monkeypatch").setattr
    patch(runs, "lived", lambda subject: SimpleNamespace(context=lambda: None))
    patch(runs, "run", lambda context, subject, inputs: [])
    subject: Any = SimpleNamespace(sizes=[1, 2], inputs=lambda size, seed: [])
    return "".join(map(str, runs.check_contexts(subject)))


def _count(ask: Ask) -> str:
    for number in range(5):
        (ask("tmp_path") / f"{number}.png").touch()
    total = batch._Total([str(ask("tmp_path"))])
    time.sleep(0.2)
    return "" if total.count is None else "counted"


def _limit(ask: Ask) -> str:
    ask("monkeypatch").setattr(in_process, "_end", lambda *args: None)
    ask("monkeypatch").setattr(in_process, "debugged", lambda: False)
    ask("monkeypatch").setattr(in_process, "_can_write", lambda: False)
    with in_process.limited(0.1, "x"):
        time.sleep(0.2)
    return ""


def _leave(ask: Ask) -> str:
    ending.Countdown(0.1, lambda: None, "headrace-leave")
    time.sleep(0.2)
    return ""


def _slow(ask: Ask) -> str:
    ask("monkeypatch").setattr(loaded_model, "_SLOW_S", 0.05)
    config: Any = SimpleNamespace(path=Path("x.txt"))
    with loaded_model._told_when_slow(config):
        time.sleep(0.2)
    return str(ask("caplog").text)


def _signals(ask: Ask) -> str:
    with ending.signals_watched():
        time.sleep(0.1)
    return ""


def _transfer(ask: Ask) -> str:
    within(lambda at: time.sleep(0.05))
    return ""


def _tune(ask: Ask) -> str:
    worker.measure(lambda: time.sleep(0.001), streams=2, window_s=0.05, at_least=3)
    return ""


def _tuning(ask: Ask) -> str:
    with worker.TuningWorker([b"no model"], {"x": np.zeros(1, np.float32)}, 1) as tuning:
        tuning.ask(20, kind="none")
    return ""


def _stream(ask: Ask) -> str:
    from headrace.cli.trtexec.inference import run_timed
    from headrace.cli.trtexec.options import parse

    runner: Any = SimpleNamespace(
        inputs=[], outputs=[], run=lambda feeds, **rest: [], close=lambda: None
    )
    options = parse(["--onnx=x", "--infStreams=2", "--iterations=3", "--duration=0", "--warmUp=0"])
    run_timed(runner, {}, options)
    return ""


def _video(ask: Ask) -> str:
    detector = ask("detector")
    ran = ask("play")(
        f"{source()} {MUX} ! nvinfer config-file-path={detector} ! fakesink sync=false", wait_s=20
    )
    return "".join(ran.errors)


def _loop(ask: Ask) -> str:
    gst, clip = ask("gst"), ask("tmp_path") / "short.mp4"
    write_clip(clip, 5)
    pipeline = gst.parse_launch(
        f"nvurisrcbin uri={clip.as_uri()} file-loop=true ! fakesink sync=false"
    )
    pipeline.set_state(gst.State.PLAYING)
    message = pipeline.get_bus().timed_pop_filtered(2 * gst.SECOND, gst.MessageType.ERROR)
    pipeline.set_state(gst.State.NULL)
    return "" if message is None else str(message.parse_error())


def _reconnect(ask: Ask) -> str:
    given_up: list[str] = []
    watch = Reconnector(Patience(0.05, 0.05, 1), lambda text: None, given_up.append)
    watch.problem("away")
    _until(lambda: bool(given_up))
    watch.close()
    return "".join(given_up)


def _bus(ask: Ask) -> str:
    ask("gst")
    from headrace.gstreamer import servicemaker

    pipeline = servicemaker.Pipeline("x").add("videotestsrc", "a", {"num-buffers": 3})
    pipeline.add("fakesink", "b").link("a", "b").start().wait()
    return ""


def _engine_file(ask: Ask) -> str:
    ask("gst")
    from headrace.gstreamer.servicemaker.utils import EngineFileMonitor

    EngineFileMonitor(SimpleNamespace(), ask("tmp_path") / "x").start()  # type: ignore[arg-type]
    time.sleep(0.3)  # two cores may be busy
    return ""


def _prints(ask: Ask) -> str:
    prints = Prints()
    ends = [os.dup(end) for end in prints.ends]
    prints.start()
    for end in ends:
        for _ in range(6):
            with suppress(BrokenPipeError):
                os.write(end, b"line\n")
            time.sleep(0.001)
        os.close(end)
    prints.finish(10)
    return ""


def _decoder_ends(ask: Ask) -> str:
    turn = DriverTurn(9999)
    turn.end([object()])
    _until(lambda: "headrace-decoder-ends" not in {t.name for t in threading.enumerate()})
    _until(lambda: turn._free.qsize() == 1)  # the next has its turn
    return ""


def _add_source(ask: Ask) -> str:
    added: list[str] = []
    report = SimpleNamespace(interrupted=False)
    pipeline: Any = SimpleNamespace(
        report=report, add_source=lambda uri, name: added.append(uri) or 7
    )
    number = asyncio.run(
        SourceAdding(pipeline, AllowedSources(["rtsp:"]), KeptSources()).add("rtsp://gate/1", None)
    )
    assert (number, added) == (7, ["rtsp://gate/1"])
    return ""


def _finish(ask: Ask) -> str:
    ask("monkeypatch").setattr(lasting, "_LOOK_S", 0.0)
    sink = open_sink(f"{mkdtemp(dir=ask('tmp_path'))}/x.jsonl?size=1k")
    for number in range(20):
        frame = gray_frame(number)
        sink.write(frame, ask("make_meta")(frame))
    sink.close()
    return "".join(map(str, sink.notices))


def _media(ask: Ask) -> str:
    ask("gst")
    from headrace.gstreamer.servicemaker.utils import MediaChunk, MediaExtractor

    clip = str(SCENE / "conveyor.mp4")
    chunks = [MediaChunk(clip, n, 40_000_000) for n in range(2)]
    with MediaExtractor(chunks, scaling=(64, 64), q_size=4) as extractor:
        for queue in extractor():
            while queue.get(timeout=10) is not None:
                pass
    return ""


def _care(ask: Ask) -> str:
    care, model = Care(), FakeModel()
    for number in range(4):
        batch = Batch([gray_frame(number)], [ask("make_meta")(gray_frame(number))], [number])
        care.complete(model, care.begin(model, batch), batch)
    care.end()
    assert not care.stuck
    return "".join(map(str, care.notices))


def _recording(ask: Ask) -> str:
    gst, folder = ask("gst"), ask("tmp_path")
    pipeline = gst.parse_launch(
        f"nvurisrcbin name=u uri=file://{SCENE}/conveyor.mp4 smart-record=2 "
        f"smart-rec-dir-path={folder} smart-rec-container=0 ! {MUX} ! fakesink name=s"
    )
    source = pipeline.get_by_name("u")
    frames = iter(range(10**6))

    def look(pad: Any, info: Any) -> int:
        if next(frames) == 50:
            source.emit("start-sr", None, 0, 1, None)
        return 1

    pipeline.get_by_name("s").get_static_pad("sink").add_probe(gst.PadProbeType.BUFFER, look)
    pipeline.set_state(gst.State.PLAYING)
    text, bus = "", pipeline.get_bus()
    kinds = gst.MessageType.EOS | gst.MessageType.ERROR | gst.MessageType.WARNING
    wait_ns = 10 * gst.SECOND
    while not text and (message := bus.timed_pop_filtered(wait_ns, kinds)) is not None:
        if message.type == gst.MessageType.WARNING:
            text += str(message.parse_warning())
        else:
            wait_ns = gst.SECOND // 10
    pipeline.set_state(gst.State.NULL)
    return text


def _restart(ask: Ask) -> str:
    notes: list[Finding] = []
    care = Care()
    care.unanswered_since = time.monotonic() - 99
    segment = SimpleNamespace(stage=FakeModel(), care=care)
    pipeline: Any = SimpleNamespace(
        state="running", model_segments=[segment], note=notes.append, restart_model=lambda index: 0
    )
    Health(pipeline, action="restart").look()
    _until(lambda: len(notes) > 1)
    return "".join(map(str, notes))


def _watch(ask: Ask) -> str:
    pipeline = Pipeline([FakeSource(3)], [FakeModel()])
    spec: Any = None
    page = LivePage(spec, LiveView(), FakeSink(), Address(), service=None)
    ask("monkeypatch").setattr(live_page, "_LOOK_S", 0.01)
    with page.watch(pipeline, ()):
        time.sleep(0.3)
        pipeline.note(Finding("page-ended", "warning", "told at the end"))
        time.sleep(0.3)
    return "".join(map(str, pipeline.notices))


@pytest.mark.parametrize("error", [BrokenPipeError, ValueError])
def test_a_loss_is_told_when_standard_error_takes_it_again(
    monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    away = Finding("connection-away", "warning", "away")
    pipeline: Any = SimpleNamespace(sources=[SimpleNamespace(notices=[away])], sinks=[])
    monkeypatch.setattr(run, "_LOOK_S", 0.01)
    tries, told = iter(range(3)), []

    def show(findings: list[Finding]) -> None:
        if next(tries, None) is not None:
            raise error("closed")
        told.extend(findings)

    with run._tell_losses(pipeline, show):
        _until(lambda: bool(told))
        time.sleep(0.1)
    assert told == [away]


def _consumer(ask: Ask) -> str:
    receiver = SimpleNamespace(receive=list, close=lambda: None)
    ask("monkeypatch").setattr(consumer, "receiver_for", lambda *_: receiver)
    one = consumer.Consumer(ConsumerSpec(uri="redis://localhost/commands"))
    one.follow(Pipeline([FakeSource(3)], [FakeModel()]))
    _until(lambda: bool(one.notices) or one._thread is None or one._thread.is_alive())
    time.sleep(0.02)
    one.close()
    return "".join(map(str, one.notices))


def _source_errors(ask: Ask) -> str:
    ask("monkeypatch").setattr(source_errors, "broker_for", lambda _: Taking())
    ask("monkeypatch").setattr(source_errors, "_LOOK_S", 0.01)
    one = source_errors.SourceErrors("redis://localhost/errors", ask("tmp_path"))
    one.follow(Pipeline([FakeSource(3)], [FakeModel()]))
    time.sleep(0.05)
    one.close()
    return "".join(map(str, one.notices))


def _give_back(ask: Ask) -> str:
    path = ask("tmp_path") / "weights"
    path.write_bytes(bytes(8192))
    with path.open("rb") as file:
        view = mapped.mapped(file.fileno(), 0, 8192)
    with mapped.read_once(view):
        time.sleep(0.1)
    return ""


SCENES: dict[str, list[Scene]] = {
    "headrace-stage": [_pipeline],
    "headrace-write": [_pipeline],
    "headrace-decode": [_pipeline, _two_sources],
    "headrace-judge": [_judging],
    "headrace-messages": [_messages],
    "headrace-feed": [_feed],
    "headrace-publish": [_publish],
    "headrace-rtsp-server": [_rtsp_server],
    "headrace-view": [_view],
    "headrace-share-stop": [_share],
    "headrace-model-load": [_model],
    "headrace-fp16-check": [_half],
    "headrace-losses": [_losses],
    "headrace-rates": [_rates],
    "headrace-contexts": [_contexts],
    "headrace-count": [_count],
    "headrace-limit": [_limit],
    "headrace-leave": [_leave],
    "headrace-signals": [_signals],
    "headrace-slow": [_slow],
    "headrace-transfer": [_transfer],
    "headrace-tune": [_tune],
    "headrace-tune-models": [_tuning],
    "headrace-stream": [_stream],
    "headrace-nvinfer": [_video],
    "headrace-nvstreammux": [_video],
    "headrace-file-loop": [_loop],
    "headrace-reconnect": [_reconnect],
    "headrace-bus": [_bus],
    "headrace-decoder-ends": [_decoder_ends],
    "headrace-engine-file": [_engine_file],
    "headrace-prints": [_prints],
    "headrace-add-source": [_add_source],
    "headrace-finish": [_finish],
    "headrace-media": [_media],
    "headrace-model": [_care],
    "headrace-recording": [_recording],
    "headrace-restart": [_restart],
    "headrace-consumer": [_consumer],
    "headrace-give-back": [_give_back],
    "headrace-errors": [_source_errors],
    "headrace-watch": [_watch],
}


def test_each_thread_has_a_scene_and_none_is_started_in_another_way() -> None:
    assert thread_names() == set(SCENES)
    assert [place for place in other_threads() if not place.startswith("_core/threads.py")] == []


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize(
    ("name", "scene"), [(name, scene) for name, scenes in SCENES.items() for scene in scenes]
)
def test_a_fault_in_a_thread_is_heard_and_nothing_waits_for_it(
    name: str,
    scene: Scene,
    error: type[BaseException],
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    reached = 0
    for line in LINES:
        kill = Kill(name, line, error(WORD))
        with killing(kill, monkeypatch):
            try:
                heard = scene(request.getfixturevalue)
            except Exception as raised:
                heard = "".join(map(str, (raised, raised.__cause__, raised.__context__)))
        printed = capfd.readouterr().err
        assert "Traceback" not in printed
        assert kill.bare == []
        reached += kill.done
        if kill.done:
            assert WORD in heard + printed, f"line {line}"
    assert reached, "the thread was not started"
