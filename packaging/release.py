"""Make a release: one command from a clean checkout to signed distributions.

    python packaging/release.py 0.2.0 [--key KEY]

Sets the version, dates the changelog, commits and tags, builds and checks the wheels, writes the
notes and the hashes, and signs the hashes with `gpg`. It publishes nothing: pushing the tag starts
the host's workflow, which publishes as a trusted publisher (`.github/workflows/release.yml`,
`.gitlab-ci.yml`). What fails before the commit leaves the checkout as it was.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
_VERSION = re.compile(r'^version = "([^"]+)"$', re.MULTILINE)
_HEADING = re.compile(r"^## (\S+) \(unreleased\)$", re.MULTILINE)
_NUMBER = re.compile(r"\d+\.\d+\.\d+((a|b|rc)\d+)?")


def versioned(project: str, version: str) -> str:
    """Return pyproject.toml with another version.

    Raises:
        SystemExit: the version is none, or not beyond the present one.
    """
    if not _NUMBER.fullmatch(version):
        raise SystemExit(f"a version is written like 0.2.0 or 0.2.0rc1, not {version!r}")
    present = _VERSION.findall(project)
    if len(present) != 1:
        raise SystemExit(f"pyproject.toml must have one line `version = …`; it has {len(present)}")
    if _order(version) < _order(present[0]):
        raise SystemExit(f"{version} lies before {present[0]}, which pyproject.toml has")
    return _VERSION.sub(f'version = "{version}"', project)


def dated(changelog: str, version: str, day: str) -> tuple[str, str]:
    """Return the changelog with the date of a release, and that release's part of it, the notes.

    Raises:
        SystemExit: there is no part `## VERSION (unreleased)`.
    """
    heading = _HEADING.search(changelog)
    if heading is None:
        raise SystemExit("CHANGELOG.md has no heading `## VERSION (unreleased)`")
    title = f"## {version} ({day})"
    text = changelog[: heading.start()] + title + changelog[heading.end() :]
    notes = text[text.index(title) :].partition("\n## ")[0]
    return text, notes.rstrip() + "\n"


def _order(version: str) -> tuple[int, int, int, str]:
    """The order of versions: a pre-release lies before its release."""
    numbers = [int(part) for part in re.findall(r"\d+", version)[:3]]
    suffix = re.sub(r"^[\d.]+", "", version)
    return (numbers[0], numbers[1], numbers[2], suffix or "z")


def _run(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr or done.stdout}")
    return done.stdout.strip()


def main() -> None:
    """Make the release that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("version", help="like 0.2.0")
    parser.add_argument("--key", help="the key with which gpg signs; default: gpg's own choice")
    options = parser.parse_args()
    if _run("git", "status", "--porcelain"):
        raise SystemExit("the checkout has changes: commit or stash them first")
    if f"v{options.version}" in _run("git", "tag").split():
        raise SystemExit(f"the tag v{options.version} exists already")
    project, changelog = ROOT / "pyproject.toml", ROOT / "CHANGELOG.md"
    day = datetime.now(UTC).strftime("%Y-%m-%d")
    new_project = versioned(project.read_text(), options.version)
    new_changelog, notes = dated(changelog.read_text(), options.version, day)
    project.write_text(new_project)
    changelog.write_text(new_changelog)
    _run("git", "commit", "-qam", f"Release {options.version}")
    subprocess.run([sys.executable, "packaging/wheels.py"], check=True, cwd=ROOT)
    files = sorted([*DIST.glob("headrace*.whl"), *DIST.glob("headrace*.tar.gz")])
    sums = subprocess.run(
        ["sha256sum", *(path.name for path in files)], check=True, cwd=DIST, capture_output=True
    ).stdout
    (DIST / "SHA256SUMS").write_bytes(sums)
    (DIST / "NOTES.md").write_text(notes)
    key = ["--local-user", options.key] if options.key else []
    _run("gpg", "--batch", "--yes", *key, "--armor", "--detach-sign", "dist/SHA256SUMS")
    _run("git", "tag", "-a", f"v{options.version}", "-m", f"Release {options.version}")
    print(f"dist/ holds {len(files)} files, SHA256SUMS, its signature, and NOTES.md")
    print(f"next: git push --follow-tags, which publishes v{options.version}")


if __name__ == "__main__":
    main()
