"""When a library is guarded, by config, argument and trust, and with which limits."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest

import headrace
from headrace.custom import CustomLibrary, open_library
from headrace.custom.guard import GuardOptions, LibraryDiedError, keeper
from headrace.custom.guard.library import GuardedLibrary
from headrace.custom.guard.trust import TrustStore, content_hash
from headrace.errors import ConfigError, CustomLibraryError
from headrace.infer.inferencer import Inferencer
from headrace.infer.parser_choice import custom_library
from headrace.meta import DetectionParams, Layer, NetworkInfo

pytestmark = pytest.mark.skipif(
    keeper.can_guard() is not None, reason=f"no workers here: {keeper.can_guard()}"
)
Compile = Callable[..., Path]
NETWORK, PARAMS = NetworkInfo(32, 32, 3), DetectionParams(1, np.zeros(1, np.float32))


def mean(value: float) -> dict[str, Layer]:
    return {"mean": Layer("mean", np.full(3, value, np.float32))}


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "headrace"


@pytest.fixture
def library(compile_parser: Compile) -> Path:
    return compile_parser("crashes.cpp", "-g")


@pytest.fixture
def opened() -> Iterator[Callable[..., CustomLibrary]]:
    made: list[CustomLibrary] = []

    def open_(path: Path, **arguments: object) -> CustomLibrary:
        made.append(open_library(path, **arguments))
        return made[-1]

    yield open_
    for library in made:
        if isinstance(library, GuardedLibrary):
            library.close()


def texts(library: CustomLibrary) -> str:
    return "\n".join(map(str, library.decisions))


def test_auto_trusts_what_ran_without_a_fault(
    library: Path, opened: Callable[..., CustomLibrary]
) -> None:
    few = GuardOptions(clean_calls=3)
    first = opened(library, guard="auto", guard_options=few)
    assert isinstance(first, GuardedLibrary)
    assert "not trusted yet: it is after 3 calls" in texts(first)
    parse = first.bbox_parser("ParseSegfault")
    for _ in range(3):
        assert TrustStore().get(content_hash(library)) is None
        assert len(parse(mean(0.1), NETWORK, PARAMS)) == 1
    assert "3 calls without a fault: from the next start on it is trusted" in texts(first)
    second = opened(library, guard="auto", guard_options=few)
    assert not isinstance(second, GuardedLibrary)
    assert "it runs in this process: trusted since" in texts(second)
    assert "(3 calls without a fault)" in texts(second)
    assert isinstance(opened(library, guard="always"), GuardedLibrary)


def test_a_fault_rules_trust_out(
    library: Path, opened: Callable[..., CustomLibrary], tmp_path: Path
) -> None:
    options = GuardOptions(clean_calls=2, crash_dir=tmp_path)
    guarded = opened(library, guard="auto", guard_options=options)
    parse = guarded.bbox_parser("ParseQuick")
    with pytest.raises(LibraryDiedError):
        parse(mean(1), NETWORK, PARAMS)
    for _ in range(4):
        parse(mean(0), NETWORK, PARAMS)
    assert TrustStore().get(content_hash(library)) is None


def test_trust_is_for_the_content(
    library: Path, tmp_path: Path, opened: Callable[..., CustomLibrary]
) -> None:
    store = TrustStore()
    store.add(content_hash(library), library, "headrace trust")
    copy = tmp_path / "copy.so"
    shutil.copy(library, copy)
    assert not isinstance(opened(copy, guard="auto"), GuardedLibrary)
    with copy.open("ab") as file:
        file.write(b"\0")
    assert isinstance(opened(copy, guard="auto"), GuardedLibrary)
    assert store.remove(content_hash(library))
    assert not store.remove(content_hash(library))
    assert isinstance(opened(library, guard="auto"), GuardedLibrary)


@pytest.mark.parametrize("damage", [b"", b"{", b'{"libraries": 7}', b'{"libraries": [{"x": 1}]}'])
def test_a_damaged_list_trusts_nothing(state: Path, library: Path, damage: bytes) -> None:
    state.mkdir(parents=True)
    (state / "trusted.json").write_bytes(damage)
    store = TrustStore()
    assert store.entries() == {}
    store.add(content_hash(library), library, "said")
    assert store.get(content_hash(library)) is not None


def test_python_modules_are_guarded_only_always(
    tmp_path: Path, opened: Callable[..., CustomLibrary]
) -> None:
    (tmp_path / "parser.py").write_text(
        "import os\nfrom headrace import Detections\n"
        "def parse(layers, network, params):\n"
        "    if layers['mean'].data[0] > 0.9:\n"
        "        os.abort()\n"
        "    return Detections([[os.getpid(), 0, 1, 1]], [1], [0])\n"
    )
    free = opened(tmp_path / "parser.py", guard="auto")
    assert not isinstance(free, GuardedLibrary)
    guarded = opened(
        tmp_path / "parser.py", guard="always", guard_options=GuardOptions(crash_dir=tmp_path / "c")
    )
    parse = guarded.bbox_parser("parse")
    assert guarded.symbols() == ["parse"]
    inside = parse(mean(0), NETWORK, PARAMS).boxes[0, 0]
    assert inside != free.bbox_parser("parse")(mean(0), NETWORK, PARAMS).boxes[0, 0]
    with pytest.raises(LibraryDiedError, match=r"aborted \(SIGABRT\)") as error:
        parse(mean(1), NETWORK, PARAMS)
    assert 'parser.py", line 5 in parse' in str(error.value)


def test_the_config_sets_mode_and_limits(library: Path, mean_config: Callable[..., Path]) -> None:
    path = mean_config(
        custom_lib_path=library,
        parse_bbox_func_name="ParseLoop",
        custom_lib_guard="always",
        custom_lib_guard_timeout=0.25,
        custom_lib_guard_memory=512,
        custom_lib_guard_restarts=1,
    )
    cfg = headrace.ModelConfig.load(path)
    guarded = custom_library(cfg, library)
    assert isinstance(guarded, GuardedLibrary)
    assert guarded.options == GuardOptions(timeout_s=0.25, memory_mib=512, restarts=1)
    with pytest.raises(LibraryDiedError, match=r"within 0\.25 s"):
        guarded.bbox_parser("ParseLoop")(mean(1), NETWORK, PARAMS)
    assert not isinstance(custom_library(cfg, library, guard="never"), GuardedLibrary)
    with pytest.raises(ConfigError, match="auto, always, never"):
        headrace.ModelConfig.load(mean_config(custom_lib_guard="sometimes"))


def test_the_inferencer_ends_its_worker(library: Path, mean_config: Callable[..., Path]) -> None:
    path = mean_config(custom_lib_path=library, parse_bbox_func_name="ParseQuick")
    with Inferencer.from_config(path, guard="always") as model:
        guarded = model.parser.library
        assert isinstance(guarded, GuardedLibrary)
        pid = guarded.process.pid
        assert Path(f"/proc/{pid}").exists()
    assert not Path(f"/proc/{pid}").exists()


def test_no_worker_where_there_can_be_none(
    library: Path, opened: Callable[..., CustomLibrary], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "can_guard", lambda: "the moon is full")
    free = opened(library, guard="auto")
    assert not isinstance(free, GuardedLibrary)
    assert "cannot run in a worker process: the moon is full; it runs in this one" in texts(free)
    assert free.decisions[0].level == "warning"
    with pytest.raises(CustomLibraryError, match="the moon is full"):
        opened(library, guard="always")


def test_names_and_modes_are_checked(
    library: Path, opened: Callable[..., CustomLibrary], layers: Mapping[str, Layer]
) -> None:
    with pytest.raises(CustomLibraryError, match="guard='perhaps'"):
        opened(library, guard="perhaps")
    guarded = opened(library, guard="always")
    with pytest.raises(CustomLibraryError, match="did you mean ParseAbort") as error:
        guarded.bbox_parser("ParseAbrot")
    with pytest.raises(CustomLibraryError) as plain:
        open_library(library).bbox_parser("ParseAbrot")
    assert str(error.value) == str(plain.value)
    assert guarded.symbols() == open_library(library).symbols()
