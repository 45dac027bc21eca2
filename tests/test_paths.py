"""The test of a file is found by its path, or in the table `tests/paths.toml`.

`tests/infer/test_cluster.py` and `tests/infer/test_cluster_rotated.py` are tests of
`infer/cluster.py`; `tests/infer/test_infer_modern.py` is one of the folder `infer/` as a whole.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import headrace

TESTS = Path(__file__).parent
SOURCE = Path(headrace.__file__).parent

# Folders of tests that have no counterpart: pages, examples and cases that cross the whole house.
ACROSS = {
    "conformance", "docs", "examples", "fuzz", "mistakes", "operators", "outside", "packaging",
}  # fmt: skip
# Of tests themselves, or of the whole package.
WHOLE = {"test_guest.py", "test_inside.py", "test_package.py", "test_paths.py", "test_warm.py"}
# Generated, or nothing but names of other files.
NO_TEST = {"_core/_native_api.py", "errors.py", "trt/plugin.py"}


def sources() -> list[Path]:
    """Return the files of the package that have code, as paths in it."""
    names = ("__init__.py", "__main__.py")
    found = [p.relative_to(SOURCE) for p in SOURCE.rglob("*.py") if p.name not in names]
    return [p for p in found if p.as_posix() not in NO_TEST]


def has_own_test(source: Path) -> bool:
    """Whether a test file is named after a source file."""
    folder = TESTS / source.parent
    return any(folder.glob(f"test_{source.stem}.py")) or any(
        folder.glob(f"test_{source.stem}_*.py")
    )


def table() -> dict[str, str]:
    """Return the test of each file without one of its own."""
    rooms = tomllib.loads((TESTS / "paths.toml").read_text(encoding="utf-8"))
    return {source: test for rows in rooms.values() for source, test in rows.items()}


def test_every_test_file_names_a_source() -> None:
    nameless = []
    for path in TESTS.rglob("test_*.py"):
        relative = path.relative_to(TESTS)
        if relative.parts[0] in ACROSS or relative.as_posix() in WHOLE:
            continue
        folder, words = SOURCE / relative.parent, path.stem.split("_")[1:]
        stems = ["_".join(words[:n]) for n in range(1, len(words) + 1)]
        known = {p.stem for p in folder.glob("*.py")} | {p.name for p in folder.iterdir()}
        if not {*stems} & {*known, folder.name}:
            nameless.append(relative.as_posix())
    assert nameless == [], "name the test after its file, or after its folder"


def test_every_source_has_a_test_by_its_path_or_in_the_table() -> None:
    rows = table()
    untested = [p.as_posix() for p in sources() if not has_own_test(p) and p.as_posix() not in rows]
    assert untested == [], "write tests/FOLDER/test_FILE.py, or a row of tests/paths.toml"


def test_the_table_is_true() -> None:
    rows = table()
    known = {p.as_posix(): p for p in sources()}
    assert [source for source in rows if source not in known] == [], "there is no such file"
    assert [test for test in rows.values() if not (TESTS / test).is_file()] == []
    assert [s for s in rows if has_own_test(known[s])] == [], "the file has a test of its own"
