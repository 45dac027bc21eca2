"""Whatever a hostile library tries, as root and as another user: what stops it, and what does not.

Each way is a few lines of `sources/escapes.cpp`. Run with `-s` it prints the layer of each.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

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
USERS = [
    pytest.param(0, id="as it is"),
    pytest.param(
        NOBODY,
        id="as nobody",
        marks=[
            pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user"),
            pytest.mark.skipif(
                not all(p.stat().st_mode & 1 for p in ROOT.parents), reason="these files are hidden"
            ),
        ],
    ),
]
STOPPED = {
    "filter": {"EPERM", "EACCES", "ENOSYS", "ENOTTY", "EOPNOTSUPP", "ENOTSUP"},
    "landlock": {"EACCES", "EXDEV"},
    "namespaces": {"EROFS", "EACCES", "EXDEV", "ENOENT"},
    "rights": {"EPERM", "EACCES", "EROFS"},
    "seals": {"EPERM", "EACCES"},
    "limits": {"EFBIG", "ENOMEM"},
    "environment": {"ENODATA"},
    "descriptors": {"ENODATA"},
    "keeper": {"ECHILD"},
    "named": {"works"},
}
"""Layer -> how it answers."""


@pytest.fixture(scope="session")
def tried(compile_parser: Compile, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """`tried(user, hidden)`: what became of all ways."""
    library = compile_parser("escapes.cpp", "-pthread", "-lrt")

    def run(user: int, hidden: str = "") -> dict[str, Any]:
        def make(folder: Path) -> None:
            with tempfile.TemporaryDirectory(dir="/tmp") as name:  # pytest's are for its user alone
                os.chmod(name, 0o755)
                copy, place = Path(name, library.name), Path(name, "place")
                shutil.copy(library, copy)
                place.mkdir()
                os.chown(place, user or -1, user or -1)
                environment = {
                    **os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": "/tmp", "HOME": str(place),
                    "ESCAPE_USER": str(user), "ESCAPE_HIDE": hidden,
                }  # fmt: skip
                done = subprocess.run(
                    [sys.executable, escapes.__file__, str(copy), str(place)],
                    env=environment, capture_output=True, text=True, timeout=120, check=False,
                )  # fmt: skip
            assert done.returncode == 0, done.stderr
            (folder / "told.json").write_text(done.stdout.splitlines()[-1])

        folder = made_once(tmp_path_factory, f"escapes-{user}-{hidden}", make)
        told: dict[str, Any] = json.loads((folder / "told.json").read_text())
        return told

    return run


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("hidden", ["", "landlock"])
def test_no_way_out_works_that_is_not_named(tried: Any, user: int, hidden: str) -> None:
    done, layers = tried(user, hidden), escapes.ways()
    assert len(layers) >= 140
    if hidden and [code for code, *_ in done["notices"] if "open" in code] == ["worker-open"]:
        pytest.skip("no namespaces here: what is open is named")
    for name, layer in layers.items():
        by = "namespaces" if hidden and layer == "landlock" else layer
        told = done["told"][name]
        print(f"{name}: stopped by {by} ({told})" if by != "named" else f"{name}: {told}, named")
        assert told in STOPPED[by], name
    assert done["after"] == done["before"]
    assert (done["heard"], done["signals"], done["workers"]) == ([], [], 1)
    assert "worker-open" not in [code for code, *_ in done["notices"]]


@pytest.mark.parametrize("user", USERS)
def test_what_a_worker_starts_ends_with_it(tried: Any, user: int) -> None:
    assert tried(user)["orphans"] == [1, 0]


@pytest.mark.parametrize("user", USERS)
def test_what_the_kernel_cannot_close_is_named_at_the_start(tried: Any, user: int) -> None:
    done, layers = tried(user, "landlock,namespaces"), escapes.ways()
    (data,) = [data for code, _, data in done["notices"] if code == "worker-open"]
    assert "files" in data["open"]
    assert user == 0 or "memory-of-others" in data["open"], "root gives up its rights"
    assert "warning" in [level for code, level, _ in done["notices"] if code == "worker-open"]
    for name, layer in layers.items():
        if layer != "landlock":
            assert done["told"][name] in STOPPED[layer], name


def test_strict_refuses_a_worker_that_is_not_closed_off(
    mean_config: Callable[..., Path], tmp_path: Path
) -> None:
    parser, image = tmp_path / "parser.py", tmp_path / "image.png"
    text = "from headrace import Detections\n"
    text += "def parse(layers, network, params): return Detections([], [], [])\n"
    parser.write_text(text)
    Image.new("RGB", (32, 32)).save(image)
    config = mean_config(custom_lib_path=parser, parse_bbox_func_name="parse")
    code = "import sys; from headrace.cli import main; from tests.custom.guard.escapes import hide;"
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


def test_the_page_names_what_works() -> None:
    page = (ROOT / "SECURITY.md").read_text()
    for name, layer in escapes.ways().items():
        if layer == "named":
            assert f"`{name}`" in page
