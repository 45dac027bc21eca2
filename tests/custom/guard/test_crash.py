"""Whatever a C++ parser does in one frame, only that frame's results of that model are lost."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import headrace
from headrace.custom.guard import LibraryDiedError, keeper
from tests.conftest import CONFIG, PARSER, write_mean_model

pytestmark = pytest.mark.skipif(
    keeper.can_guard() is not None, reason=f"no workers here: {keeper.can_guard()}"
)

FRAMES = 4
WHITE = 1  # of the first source
Compile = Callable[..., Path]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory, compile_parser: Compile) -> Path:
    """A folder with a model, a C++ library of harmful parsers and a sound Python parser."""
    folder = tmp_path_factory.mktemp("matrix")
    write_mean_model(folder / "mean.onnx")
    (folder / "mean_parser.py").write_text(PARSER)
    (folder / "labels.txt").write_text("thing\n")
    (folder / "sound.txt").write_text(CONFIG.replace("gie-unique-id=1", "gie-unique-id=2"))
    shutil.copy(compile_parser("crashes.cpp", "-g"), folder / "libcrashes.so")
    return folder


def config(scene: Path, function: str, **keys: object) -> Path:
    text = CONFIG.replace("mean_parser.py", "libcrashes.so").replace(
        "name=parse", f"name={function}"
    )
    keys = {"custom-lib-guard": "always", "custom-lib-guard-memory": 1024, **keys}
    text += "".join(f"{key}={value}\n" for key, value in keys.items())
    path = scene / f"{function}.txt"
    path.write_text(text)
    return path


def images(white: int | None) -> list[np.ndarray]:
    return [np.full((32, 32, 3), 255 if i == white else 60 + i, np.uint8) for i in range(FRAMES)]


def run(scene: Path, function: str, **keys: object) -> tuple[dict, headrace.RunReport]:
    """(source, frame) -> boxes of the model with the harmful parser; the other is looked at."""
    harmful = {}
    sources = [
        headrace.ArraySource(images(WHITE), name="left"),
        headrace.ArraySource(images(None), name="right"),
    ]
    with headrace.open_pipeline(
        config(scene, function, **keys), scene / "sound.txt", sources=sources
    ) as pipeline:
        for _, meta in pipeline:
            boxes = {1: [], 2: []}
            for o in meta.objects:
                boxes[o.component_id].append((o.left, o.top, o.width, o.height))
            assert boxes[2] == [(8, 8, 16, 16)], "the other model's result"
            harmful[meta.source_id, meta.frame] = boxes[1]
    assert len(harmful) == 2 * FRAMES, "every frame of both sources comes"
    return harmful, pipeline.report


def told(report: headrace.RunReport, phrase: str) -> str:
    found = [str(n) for n in report.notices if phrase in str(n)]
    assert len(found) == 1, [str(n) for n in report.notices]
    return found[0]


GOOD = [(2, 4, 6, 8)]

DEADLY = {
    "ParseSegfault": "crashed (SIGSEGV), writing a null pointer",
    "ParseAbort": "aborted (SIGABRT)",
    "ParseAssert": "Assertion `layers.size() == 77' failed",
    "ParseTerminate": "uncaught std::runtime_error: escaped on white",
    "ParseLoop": "did not return within 1 s and was ended",
    "ParseStack": "used up its stack",
    "ParsePast": "writing past the end of output layer mean (12 bytes)",
    "ParseHeap": "invalid pointer",
    "ParseExit": "ended its process by exit(0)",
    "ParseQuick": "ended its process (exit status 0)",
    "ParseClose": "closed file descriptors that it did not open",
}


@pytest.mark.parametrize("function", DEADLY)
@pytest.mark.sampled
def test_a_frame_is_lost_and_nothing_else(
    scene: Path, function: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE_CRASH_DIR", str(tmp_path))
    with pytest.warns(headrace.HeadraceWarning):
        found, report = run(scene, function, **{"custom-lib-guard-timeout": 1})
    assert found.pop((0, WHITE)) == []
    assert set(map(tuple, found.values())) == {tuple(GOOD)}
    assert [m.failed for m in report.models] == [1, 0]
    text = told(report, DEADLY[function])
    assert f"libcrashes.so: {function}: the function" in text
    assert f"first in frame {WHITE} of left" in text
    (case,) = tmp_path.iterdir()
    assert f"headrace replay {case}" in text
    assert '"frame": 1' in (case / "case.json").read_text()
    if function in ("ParseSegfault", "ParseStack"):  # compiled with -g
        inner = "inner_function" if function == "ParseSegfault" else "deeper"
        assert f"#0 {inner}" in text
        if shutil.which("addr2line"):
            assert "crashes.cpp:" in text
        assert inner in (case / "report.txt").read_text()


@pytest.mark.parametrize(
    ("function", "phrase"),
    [
        ("ParseThrow", "the parser threw std::runtime_error: thrown on white"),
        ("ParseBomb", "its worker may take 256 MiB (custom-lib-guard-memory)"),
        ("ParseMillions", "the parser returned 10,000,000 boxes"),
    ],
)
def test_errors_that_leave_the_worker_alive(scene: Path, function: str, phrase: str) -> None:
    memory = 256 if function == "ParseBomb" else 1024
    with pytest.warns(headrace.HeadraceWarning):
        found, report = run(scene, function, **{"custom-lib-guard-memory": memory})
    assert found.pop((0, WHITE)) == []
    assert set(map(tuple, found.values())) == {tuple(GOOD)}
    assert "first in frame 1 of left" in told(report, phrase)


@pytest.mark.parametrize("function", ["ParseNan", "ParseNegative", "ParseStdout", "ParseKill"])
def test_as_without_a_worker(scene: Path, function: str) -> None:
    """Bad values are treated as ever; what is done to the process is done to the worker's."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        guarded, report = run(scene, function)
        if function in ("ParseNan", "ParseNegative"):
            free, plain = run(scene, function, **{"custom-lib-guard": "never"})
            assert guarded == free
            own = {str(n) for n in report.notices if "worker process" not in str(n)}
            engine = {n for n in own | set(map(str, plain.notices)) if ".engine: " in n}
            assert own - engine == {str(n) for n in plain.notices} - engine
    assert guarded[0, WHITE][0] == GOOD[0]
    assert [m.failed for m in report.models] == [0, 0]


@pytest.mark.slow
def test_the_report_of_a_sanitizer_is_pointed_at(compile_parser: Compile, tmp_path: Path) -> None:
    library = headrace.custom.open_library(
        compile_parser("crashes.cpp", "-DSANITIZED"),
        guard="always",
        guard_options=headrace.custom.guard.GuardOptions(crash_dir=tmp_path),
    )
    layers = {"mean": headrace.Layer("mean", np.ones(3, np.float32))}
    given = (
        layers,
        headrace.NetworkInfo(32, 32, 3),
        headrace.DetectionParams(1, np.zeros(1, np.float32)),
    )
    with pytest.raises(LibraryDiedError) as error:
        library.bbox_parser("ParseReport")(*given)
    assert (
        "ended its process (exit status 1), as AddressSanitizer does: its report is above;"
        in str(error.value)
    )
    with pytest.raises(LibraryDiedError) as error:
        library.bbox_parser("ParseQuick")(*given)
    assert "ended its process (exit status 0);" in str(error.value)


def test_the_same_fault_is_told_once(
    scene: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE_CRASH_DIR", str(tmp_path))
    white = np.full((32, 32, 3), 255, np.uint8)
    sources = [headrace.ArraySource([white] * 3 + images(None)[:1])]
    with (
        pytest.warns(headrace.HeadraceWarning),
        headrace.open_pipeline(config(scene, "ParseAbort"), sources=sources) as pipeline,
    ):
        report = pipeline.run()
    assert report.models[0].failed == 3
    assert len(list(tmp_path.iterdir())) == 3
    (count,) = (n for n in report.notices if n.code == "worker-died")
    assert count.data["deaths"] == 3
    report.notices.remove(count)
    told(report, DEADLY["ParseAbort"])


def test_no_frames_of_the_interpreter_are_shown() -> None:
    from headrace.custom.guard.symbols import MappedFile, trace

    places = ["/lib/libc.so.6", "/x/libuser.so", "/x/_native.so", "/usr/bin/python3.12", "/x/y.so"]
    maps = [MappedFile(i << 12, (i + 1) << 12, 0, path) for i, path in enumerate(places)]
    libc, user, own, python, other = (1 + (i << 12) for i in range(len(places)))
    names = {a: (f"f{a >> 12}", 1) for a in (libc, user, own, python, other)}

    def shown(*frames: int, ended: bool = False) -> list[str]:
        return [line.split()[1] for line in trace(frames, None, maps, names, ended=ended)]

    assert shown(libc, user, own, python, other) == ["f0", "f1"]
    assert shown(libc, user, libc, python, other, own) == ["f0", "f1"]
    assert shown(libc, own, python, other) == ["f0"]
    assert shown(own, libc, user, python) == ["f0", "f1"]
    assert shown(libc, libc) == ["f0"]
    inner = libc + 8  # of a C library without its own names: something near
    names[inner] = ("near", 5)
    assert shown(inner, inner, libc, user, own) == ["near", "f0", "f1"]
    assert shown(inner, inner, libc, user, own, ended=True) == ["f0", "f1"]
    names[libc] = ("abort", 1)
    assert shown(inner, inner, libc, user, own, ended=True) == ["f1"]
    assert shown(inner, libc, ended=True) == ["near", "abort"], "nothing else is there"


def test_a_parser_that_dies_in_every_frame_is_given_up(scene: Path) -> None:
    library = headrace.custom.open_library(
        scene / "libcrashes.so",
        guard="always",
        guard_options=headrace.custom.guard.GuardOptions(restarts=2, crash_dir=scene / "given-up"),
    )
    parse = library.bbox_parser("ParseQuick")
    layers = {"mean": headrace.Layer("mean", np.ones(3, np.float32))}
    params = headrace.DetectionParams(1, np.zeros(1, np.float32))
    texts = []
    for _ in range(5):
        with pytest.raises(LibraryDiedError) as error:
            parse(layers, headrace.NetworkInfo(32, 32, 3), params)
        texts.append(str(error.value))
    assert ["is started again" in t for t in texts] == [True, True, False, False, False]
    assert "not started again after 3 faults" in texts[2]
    assert ["raise custom-lib-guard-restarts" in t for t in texts] == [False] * 2 + [True] * 3
    assert "not called any more: its worker died 3 times; the last time it ended" in texts[4]
    assert [d.data["deaths"] for d in library.decisions if d.code == "worker-died"] == [3]
