"""What a release changes, holds and says."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def load(name: str) -> dict[str, Any]:
    """The names of a file of `packaging/`."""
    return runpy.run_path(str(ROOT / "packaging" / name))


def test_the_version_is_set_in_its_one_line() -> None:
    versioned = load("release.py")["versioned"]
    text = (ROOT / "pyproject.toml").read_text()
    changed = versioned(text, "7.1.0rc2")
    assert tomllib.loads(changed)["project"]["version"] == "7.1.0rc2"
    assert len(changed.splitlines()) == len(text.splitlines())


@pytest.mark.parametrize(
    ("version", "why"),
    [("1.2", "written like"), ("v1.2.3", "written like"), ("0.4.9", "lies before"),
     ("0.5.0rc1", "lies before")],
)  # fmt: skip
def test_a_wrong_version_is_refused(version: str, why: str) -> None:
    with pytest.raises(SystemExit, match=why):
        load("release.py")["versioned"]('version = "0.5.0"\n', version)


def test_a_release_follows_its_candidates() -> None:
    versioned = load("release.py")["versioned"]
    assert versioned('version = "0.5.0rc1"\n', "0.5.0") == 'version = "0.5.0"\n'


def test_the_changelog_is_dated_and_gives_the_notes() -> None:
    text = "# Changelog\n\n## 0.2.0 (unreleased)\n\n- new\n\n## 0.1.0 (2026-01-01)\n\n- old\n"
    changed, notes = load("release.py")["dated"](text, "0.2.0", "2026-11-28")
    assert changed == text.replace("(unreleased)", "(2026-11-28)")
    assert notes == "## 0.2.0 (2026-11-28)\n\n- new\n"
    with pytest.raises(SystemExit, match="unreleased"):
        load("release.py")["dated"](changed, "0.3.0", "2026-11-29")


def test_the_first_release_says_where_the_project_lives() -> None:
    placed = load("release.py")["placed"]
    text = (ROOT / "pyproject.toml").read_text()
    changed, home = placed(text, "https://forge.example/us/headrace", "us@forge.example")
    project = tomllib.loads(changed)["project"]
    assert home == project["urls"]["Homepage"] == "https://forge.example/us/headrace"
    assert project["authors"][0]["email"] == "us@forge.example"
    assert placed(changed, None, None) == (changed, home)
    moved, _ = placed(changed, "https://other.example/headrace", None)
    assert tomllib.loads(moved)["project"]["urls"]["Homepage"] == "https://other.example/headrace"
    assert tomllib.loads(moved)["project"] | {"urls": 0} == project | {"urls": 0}


@pytest.mark.parametrize(
    ("home", "contact", "why"),
    [(None, "us@forge.example", "--home"), ("https://forge.example/headrace", None, "--contact"),
     ("forge.example", "us@forge.example", "must be like https"),
     ("https://forge.example/headrace", "us", "must be like NAME")],
)  # fmt: skip
def test_an_address_that_is_none_is_refused(
    home: str | None, contact: str | None, why: str
) -> None:
    text = '[project]\nauthors = [{ name = "us" }]\n[project.scripts]\n'
    with pytest.raises(SystemExit, match=why):
        load("release.py")["placed"](text, home, contact)


def test_links_of_the_readme_lead_to_the_release_from_any_page() -> None:
    linked = load("release.py")["linked"]
    home = "https://forge.example/us/headrace"
    text = "![a](docs/a.png) [b](docs/b.md#c) [d](#e) [f](https://g.example/h)"
    first = linked(text, home, "0.2.0")
    assert first == (
        f"![a]({home}/raw/v0.2.0/docs/a.png) [b]({home}/blob/v0.2.0/docs/b.md#c) "
        "[d](#e) [f](https://g.example/h)"
    )
    assert linked(first, home, "0.3.0") == first.replace("v0.2.0", "v0.3.0")
    readme = linked((ROOT / "README.md").read_text(), home, "0.2.0")
    links = re.findall(r"\]\(([^)\s]+)\)", readme)
    assert len(links) > 60
    assert [link for link in links if not link.startswith("https://")] == []


def test_this_changelog_can_be_released() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    version = PROJECT["project"]["version"]
    _, notes = load("release.py")["dated"](text, version, "2030-01-01")
    assert notes.startswith(f"## {version} (2030-01-01)\n")
    assert len(notes) > 1000


def test_a_checkout_with_changes_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "packaging").mkdir()
    source = (ROOT / "packaging" / "release.py").read_text()
    (tmp_path / "packaging" / "release.py").write_text(source)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    command = [sys.executable, str(tmp_path / "packaging" / "release.py"), "0.2.0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "commit or stash" in done.stderr


def test_the_bill_names_what_is_compiled_in_and_what_is_asked_for() -> None:
    metadata = (
        "Metadata-Version: 2.4\nName: headrace\nVersion: 0.1.0\nLicense-Expression: Apache-2.0\n"
        "Requires-Dist: numpy>=1.26\nRequires-Dist: ray[data]>=2; extra == 'ray'\n"
    )
    bill = load("sbom.py")["bill"](metadata, datetime(2026, 1, 2, tzinfo=UTC))
    assert bill["metadata"]["timestamp"] == "2026-01-02T00:00:00Z"
    names = {part["name"]: part for part in bill["components"]}
    assert set(names) == {"nanobind", "robin-map", "numpy"}
    assert names["nanobind"]["licenses"] == [{"license": {"id": "BSD-3-Clause"}}]
    references = {part["bom-ref"] for part in bill["components"]}
    assert set(bill["dependencies"][0]["dependsOn"]) == references
    notices = (ROOT / "packaging" / "NOTICES.txt").read_text()
    assert all(f"\n{name} <" in notices for name in ("nanobind", "robin-map"))


def test_headrace_gst_has_the_same_version() -> None:
    gst = tomllib.loads((ROOT / "packaging" / "gst" / "pyproject.toml").read_text())
    assert gst["project"]["dynamic"] == ["version"]
    assert gst["tool"]["hatch"]["version"]["path"] == "../../pyproject.toml"
    assert PROJECT["project"]["optional-dependencies"]["gst"] == ["headrace-gst"]


def test_files_of_the_hosts_can_be_read_and_call_what_is_there() -> None:
    makefile = (ROOT / "Makefile").read_text()
    assert "\nwheels:" in makefile
    for name in (".github/workflows/release.yml", ".gitlab-ci.yml"):
        text = (ROOT / name).read_text()
        assert yaml.safe_load(text)
        assert "make wheels" in text
    for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"):
        form = yaml.safe_load(path.read_text())
        assert {"name", "description", "body"} <= set(form)
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["license"] == "Apache-2.0"


def test_each_needed_package_has_a_lower_bound() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "lowest.py"))
    pins = script["lowest"]
    extras = dict(PROJECT["project"]["optional-dependencies"])
    assert set(script["LEFT_OUT"]) < set(extras)
    held = [r for extra in set(extras) - set(script["LEFT_OUT"]) for r in extras[extra]]
    dependencies = [*PROJECT["project"]["dependencies"], *held]
    assert len(pins(dependencies)) == len(dependencies)
    assert pins(["a-b[c]>=1.2"]) == ["a-b==1.2"]
    with pytest.raises(ValueError, match="no lower bound"):
        pins(["numpy"])


@pytest.mark.parametrize("flavour", ["cpu", "gpu", "gst"])
def test_a_container_copies_what_the_build_reads(flavour: str) -> None:
    lines = (ROOT / "packaging" / "containers" / f"{flavour}.Containerfile").read_text()
    copied = {
        name.rstrip("/")
        for line in re.findall(r"(?m)^COPY (?!--from)(.+)$", lines)
        for name in line.split()[:-1]
    }
    build = (ROOT / "CMakeLists.txt").read_text()
    read = set(re.findall(r"\$\{CMAKE_SOURCE_DIR\}/([\w./-]+)", build))
    read |= set(re.findall(r"(?<![\w/])(?:native|scripts|packaging|src)/[\w./-]+\w", build))
    read |= set(PROJECT["project"]["license-files"]) | {PROJECT["project"]["readme"]}
    assert len(read) > 20
    parts = {name: [name, *map(str, Path(name).parents)] for name in read}
    assert [name for name, above in parts.items() if not copied & set(above)] == []
