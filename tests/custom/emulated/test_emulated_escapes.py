"""The ways of a hostile library, tried by one of AArch64 in its emulator."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headrace.custom.guard import keeper
from tests.custom.guard import escapes
from tests.custom.guard.test_guard_escapes import OF_DRIVERS, OPEN, STOPPED, USERS, a_run
from tests.session import made_once

pytestmark = [
    pytest.mark.sampled,
    pytest.mark.skipif(keeper.can_guard() is not None, reason="no workers here"),
]

BY_EMULATOR = {
    # its program has no descriptor of the worker's results and outputs
    "reopen_results": "ENOENT",
    "map_results": "ENOENT",
    "unprotect_results": "EBADF",
    "shrink_results": "EBADF",
    "grow_results": "EBADF",
    "shrink_outputs": "EBADF",
    "write_far": "EBADF",
    "shrink_inputs": "EBADF",
    "shrink_page": "EBADF",
    # it looks at the arguments before the kernel does
    "change_terminal": "EFAULT",
    "clock": "EINVAL",
    "handles_with_messages": "ENOPROTOOPT",
    "open_for_neither": "works",  # it opens the file for reading
    "child_in_namespace": "EINVAL",
}
"""Way that ends in the emulator, before it reaches what stops a native library -> its answer."""


@pytest.fixture(scope="session")
def foreign(compile_foreign: Callable[..., Path]) -> Path:
    return compile_foreign("escapes.cpp", "-pthread", "-lrt")


@pytest.fixture(scope="session")
def tried(foreign: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """`tried(user, hidden)`: what became of all ways."""

    def run(user: int, hidden: str) -> Any:
        def make(folder: Path) -> None:
            with a_run(foreign, user, hidden) as (done, _):
                assert done.returncode == 0, done.stderr
                (folder / "told.json").write_text(done.stdout.splitlines()[-1])

        folder = made_once(tmp_path_factory, f"emulated-{user}-{hidden}", make)
        return json.loads((folder / "told.json").read_text())

    return run


@pytest.mark.slow
@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("hidden", ["", "landlock"])
def test_no_way_works(tried: Callable[..., Any], foreign: Path, user: int, hidden: str) -> None:
    done, layers = tried(user, hidden), escapes.ways(foreign)
    codes = [code for code, *_ in done["notices"]]
    assert "library-emulated" in codes
    if hidden and OPEN in codes:
        pytest.skip("no namespaces here: what is open is named")
    open_ways = {}
    for name, layer in layers.items():
        by = "namespaces" if hidden and layer == "landlock" else layer
        answers = STOPPED[by] | {BY_EMULATOR.get(name, "")}
        if done["told"][name] not in answers and name not in OF_DRIVERS:
            open_ways[name] = done["told"][name]
    assert open_ways == {}
    assert len(layers) >= 170


@pytest.mark.slow
@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("hidden", ["", "landlock"])
def test_the_application_is_as_it_was(tried: Callable[..., Any], user: int, hidden: str) -> None:
    done = tried(user, hidden)
    if OPEN in [code for code, *_ in done["notices"]]:
        pytest.skip("no namespaces here: what is open is named")
    assert done["after"] == done["before"]
    assert (done["heard"], done["signals"], done["workers"]) == ([], [], 1)
    assert done["tensor"] == 1 << 16
    assert done["orphans"][0] >= 5
    assert done["orphans"][1] == 0


@pytest.mark.slow
@pytest.mark.parametrize("user", USERS)
def test_a_library_that_harms_its_process_harms_no_other(
    tried: Callable[..., Any], user: int
) -> None:
    harmed = tried(user, "")["harmed"]
    assert "did not return within 2 s" in harmed["hang"]
    assert "aborted (SIGABRT)" in harmed["die"]
    assert any(words in harmed["forge"] for words in ("returned false", "did not return"))
    assert harmed["program"] not in ("0", ""), "the shell could not write"
