"""Whatever a hostile library tries, as root and as another user: what stops it, and what does not.

Each way is a few lines of `sources/escapes/`. Run with `-s` it prints the layer of each.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
from PIL import Image

from headrace.custom.compile.toolchain import gpu_present
from headrace.custom.guard import keeper
from tests.custom.conftest import Compile
from tests.custom.guard import escapes
from tests.session import made_once

pytestmark = [
    pytest.mark.skipif(keeper.can_guard() is not None, reason="no workers here"),
    pytest.mark.skipif("HEADRACE_SANITIZED" in os.environ, reason="its runtime allocates much"),
]
ROOT = Path(__file__).parents[3]
NOBODY = 65534
_OTHER = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user"),
    pytest.mark.skipif(
        not all(p.stat().st_mode & 1 for p in ROOT.parents), reason="these files are hidden"
    ),
]
USERS = [pytest.param(0, id="as it is"), pytest.param(NOBODY, id="as nobody", marks=_OTHER)]
USERS_OF_PUSHES = [USERS[0], pytest.param(NOBODY, marks=[*_OTHER, pytest.mark.slow])]
"""A run of all ways takes seconds: at every push each user and each kernel has one."""
RUNS = [
    pytest.param("", 0, id="as it is"),
    pytest.param("landlock", NOBODY, id="landlock-as nobody", marks=[*_OTHER, pytest.mark.slow]),
    pytest.param("", NOBODY, id="as nobody", marks=[*_OTHER, pytest.mark.slow]),
    pytest.param("landlock", 0, id="landlock-as it is", marks=pytest.mark.slow),
]
STOPPED = {
    "filter": {"EPERM", "EACCES", "ENOSYS", "ENOTTY", "EOPNOTSUPP", "ENOTSUP"},
    "landlock": {"EACCES", "EXDEV"},
    "namespaces": {"EROFS", "EACCES", "EXDEV", "ENOENT"},
    "rights": {"EPERM", "EACCES", "EROFS"},
    "seals": {"EPERM", "EACCES", "EIO", "EROFS", "EINVAL"},
    "limits": {"EFBIG", "ENOMEM"},
    "environment": {"ENODATA"},
    "descriptors": {"ENODATA"},
    "keeper": {"ECHILD"},
    "named": {"works"},
}
"""Layer -> how it answers."""
OF_DRIVERS = {"name_of_socket", "socket_of_name"} if gpu_present() else set[str]()
"""Ways that a driver of a GPU needs, see SECURITY.md."""
_HARMED = (
    "custom/guard/test_guard_escapes.py",
    "test_a_worker_that_harms_itself_harms_nobody_else",
)
ELSEWHERE = {
    "answers with forged": ("custom/guard/test_answers.py", "test_a_forged_field_is_an_error"),
    "makes the application run": _HARMED,
    "hangs, or dies": _HARMED,
}
"""Start of a row of the page -> its test."""
OPEN = "worker-open"


@pytest.fixture(scope="session")
def tried(compile_parser: Compile, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """`tried(user, hidden)`: what became of all ways."""
    library = compile_parser("escapes.cpp", "-pthread", "-lrt")

    def run(user: int, hidden: str = "") -> dict[str, Any]:
        def make(folder: Path) -> None:
            with a_run(library, user, hidden) as (done, _):
                assert done.returncode == 0, done.stderr
                (folder / "told.json").write_text(done.stdout.splitlines()[-1])

        folder = made_once(tmp_path_factory, f"escapes-{user}-{hidden}", make)
        told: dict[str, Any] = json.loads((folder / "told.json").read_text())
        return told

    return run


@contextmanager
def a_run(
    library: Path, user: int, hidden: str = "", **more: str
) -> Iterator[tuple[subprocess.CompletedProcess[str], Path]]:
    """An application that has tried all ways, and its copy of the library."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:  # pytest's are for its user alone
        os.chmod(name, 0o755)
        copy, place = Path(name, library.name), Path(name, "place")
        shutil.copy(library, copy)
        temporary = Path(name, "temporary")
        for folder in (place, temporary):
            folder.mkdir()
            os.chown(folder, user or -1, user or -1)
        environment = {
            **os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary), "HOME": str(place),
            "XDG_STATE_HOME": str(place), "ESCAPE_USER": str(user), "ESCAPE_HIDE": hidden, **more,
        }  # fmt: skip
        yield subprocess.run(
            [sys.executable, escapes.__file__, str(copy), str(place)],
            env=environment, capture_output=True, text=True, timeout=120, check=False,
        ), copy  # fmt: skip
        end = monotonic() + 20
        while list(temporary.iterdir()):
            assert monotonic() < end, "files of a worker are left"
            sleep(0.05)


@pytest.mark.parametrize(
    "row", [row for row, ways in escapes.rows().items() if ways], ids=lambda row: row[:40]
)
@pytest.mark.parametrize(("hidden", "user"), RUNS)
def test_no_way_of_a_row_works(tried: Any, user: int, hidden: str, row: str) -> None:
    done, layers = tried(user, hidden), escapes.ways()
    if hidden and OPEN in [code for code, *_ in done["notices"]]:
        pytest.skip("no namespaces here: what is open is named")
    for name in [name for name in escapes.rows()[row] if name not in OF_DRIVERS]:
        by = "namespaces" if hidden and layers[name] == "landlock" else layers[name]
        print(f"user {user}: {name}: stopped by {by} ({done['told'][name]})")
        assert done["told"][name] in STOPPED[by], name


@pytest.mark.parametrize(("hidden", "user"), RUNS)
def test_the_application_is_as_it_was(tried: Any, user: int, hidden: str) -> None:
    done = tried(user, hidden)
    if hidden and OPEN in [code for code, *_ in done["notices"]]:
        pytest.skip("no namespaces here: what is open is named")
    assert OPEN not in [code for code, *_ in done["notices"]]
    assert done["after"] == done["before"]
    assert (done["heard"], done["signals"], done["workers"]) == ([], [], 1)
    assert done["tensor"] == 1 << 16
    assert done["printed"].startswith(escapes.PRINTED.decode())


@pytest.mark.parametrize("user", USERS_OF_PUSHES)
def test_what_works_is_named_on_the_page(tried: Any, user: int) -> None:
    done, page = tried(user), escapes.PAGE.read_text()
    for name, layer in escapes.ways().items():
        if layer == "named":
            print(f"user {user}: {name}: {done['told'][name]}")
            assert f"`{name}`" in page


@pytest.mark.parametrize(("hidden", "user"), RUNS)
def test_a_worker_that_harms_itself_harms_nobody_else(tried: Any, user: int, hidden: str) -> None:
    """It hangs, dies or answers nonsense; and a program that looks at a file has its rights."""
    harmed = tried(user, hidden)["harmed"]
    print(f"user {user}: {harmed}")
    assert "did not return within 2 s" in harmed["hang"]
    assert "aborted (SIGABRT)" in harmed["die"]
    assert any(words in harmed["forge"] for words in ("overwrote the memory", "did not return"))
    assert harmed["program"] not in ("0", ""), "the shell could not write"


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("hidden", ["", "landlock", "landlock,namespaces"])
@pytest.mark.sampled
def test_what_a_worker_starts_ends_with_it(tried: Any, user: int, hidden: str) -> None:
    before, after = tried(user, hidden)["orphans"]
    assert before >= 5
    assert after == 0


@pytest.mark.parametrize("user", USERS)
def test_what_a_worker_starts_ends_with_a_killed_application(
    compile_parser: Compile, user: int
) -> None:
    library = compile_parser("escapes.cpp", "-pthread", "-lrt")
    with a_run(library, user, ESCAPE_DIE="1") as (done, copy):
        assert done.returncode == -signal.SIGKILL, done.stderr
        end = monotonic() + 20
        while escapes.processes(str(copy)):
            assert monotonic() < end
            sleep(0.05)


@pytest.mark.slow
@pytest.mark.parametrize("user", USERS_OF_PUSHES)
def test_what_the_kernel_cannot_close_is_named_at_the_start(tried: Any, user: int) -> None:
    done, layers = tried(user, "landlock,namespaces"), escapes.ways()
    ((level, data),) = [(level, data) for code, level, data in done["notices"] if code == OPEN]
    assert level == "warning"
    assert "files" in data["open"]
    assert user == 0 or "memory-of-others" in data["open"], "root gives up its rights"
    for name, layer in layers.items():
        if layer != "landlock" and name not in OF_DRIVERS:
            assert done["told"][name] in STOPPED[layer], name


def test_each_row_of_the_page_is_tried() -> None:
    for row, ways in escapes.rows().items():
        elsewhere = [tests for start, tests in ELSEWHERE.items() if row.startswith(start)]
        assert bool(ways) != bool(elsewhere), row
        for path, test in elsewhere:
            assert f"def {test}(" in (ROOT / "tests" / path).read_text(), test
    tried = [name for ways in escapes.rows().values() for name in ways]
    named = [name for name, layer in escapes.ways().items() if layer == "named"]
    assert sorted([*tried, *named]) == sorted(escapes.ways()), "each stands below a row"
    assert f"{len(tried)} ways in all" in escapes.PAGE.read_text()


@pytest.mark.slow
def test_strict_refuses_a_worker_that_is_not_closed_off(
    mean_config: Callable[..., Path], tmp_path: Path
) -> None:
    parser, image = tmp_path / "parser.py", tmp_path / "image.png"
    text = "from headrace import Detections\n"
    text += "def parse(layers, network, params): return Detections([], [], [])\n"
    parser.write_text(text)
    Image.new("RGB", (32, 32)).save(image)
    config = mean_config(custom_lib_path=parser, parse_bbox_func_name="parse")
    code = "import faulthandler, sys; faulthandler.dump_traceback_later(100, exit=True);"
    code += "from headrace.cli import main; from tests.custom.guard.escapes import hide;"
    code += "hide(sys.argv.pop(1)); sys.exit(main())"
    words = ["run", str(config), str(image), "--guard", "always", "--strict"]
    for hidden, status in (("landlock,namespaces", 7), ("nothing", 0)):
        done = subprocess.run(
            [sys.executable, "-c", code, hidden, *words],
            cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert ("workers are not closed off" in done.stderr) == bool(status), done.stderr
        assert done.returncode == status, done.stderr
