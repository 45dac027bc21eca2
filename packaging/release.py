"""Make a release: one command from a clean checkout to signed distributions.

    python packaging/release.py 0.2.0 [--key KEY] [--home URL --contact ADDRESS]

Sets the version, dates the changelog, makes the README's links absolute, commits and tags, builds
and checks the wheels, writes the notes and the hashes, and signs the hashes with `gpg`. The first
release says where the project lives and who answers (`--home`, `--contact`); later ones find both
in pyproject.toml. It publishes nothing: pushing the tag starts
the host's workflow, which publishes as a trusted publisher (`.github/workflows/release.yml`,
`.gitlab-ci.yml`). What fails before the commit leaves the checkout as it was.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tomllib
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


def placed(project: str, home: str | None, contact: str | None) -> tuple[str, str]:
    """Return pyproject.toml with the project's address and a contact, and the address.

    Args:
        project: pyproject.toml as it is; it keeps an address that it has.
        home: address of the repository, which serves `/blob/TAG/FILE` and `/raw/TAG/FILE`.
        contact: e-mail address of the maintainers.

    Raises:
        SystemExit: one of the two is neither given nor in pyproject.toml, or is none.
    """
    table = tomllib.loads(project)["project"]
    present = table.get("urls", {}).get("Homepage")
    if home is None and present is None:
        raise SystemExit("pyproject.toml has no address yet: --home https://HOST/OWNER/headrace")
    if contact is None and not any("email" in author for author in table["authors"]):
        raise SystemExit("pyproject.toml has no contact yet: --contact NAME@HOST")
    if home and not re.fullmatch(r"https://[^\s/]+/\S*[^\s/]", home):
        raise SystemExit(f"--home must be like https://HOST/OWNER/headrace, not {home!r}")
    if contact and not re.fullmatch(r"[^\s@\"]+@[^\s@\"]+\.[^\s@\"]+", contact):
        raise SystemExit(f"--contact must be like NAME@HOST, not {contact!r}")
    if contact:
        name = table["authors"][0]["name"]
        line = f'authors = [{{ name = "{name}", email = "{contact}" }}]'
        project = re.sub(r"(?m)^authors = .*$", lambda _: line, project)
    if home and home != present:
        project = re.sub(r"\n\[project\.urls\]\n(?:[^\n[][^\n]*\n)*", "", project)
        urls = (
            f'[project.urls]\nHomepage = "{home}"\nChangelog = "{home}/blob/main/CHANGELOG.md"\n\n'
        )
        project = project.replace("[project.scripts]", f"{urls}[project.scripts]", 1)
    return project, home or present


def linked(readme: str, home: str, version: str) -> str:
    """Return a README whose links to files lead to a release's, from any page.

    Args:
        readme: Markdown whose links are relative, or lead to an earlier release.
        home: address of the repository.
        version: the release.
    """
    earlier = re.escape(home) + r"/(?:blob|raw)/v[^/]+/"
    readme = re.sub(rf"(\]\(){earlier}", r"\1", readme)
    relative = r"(!?)(\[[^\]]*\]\()(?![a-z]+:|#)([^)\s]+\))"

    def absolute(link: re.Match[str]) -> str:
        kind = "raw" if link[1] else "blob"
        return f"{link[1]}{link[2]}{home}/{kind}/v{version}/{link[3]}"

    return re.sub(relative, absolute, readme)


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
    parser.add_argument(
        "--home", help="address of the repository, like https://HOST/OWNER/headrace"
    )
    parser.add_argument("--contact", help="e-mail address of the maintainers")
    options = parser.parse_args()
    if _run("git", "status", "--porcelain"):
        raise SystemExit("the checkout has changes: commit or stash them first")
    if f"v{options.version}" in _run("git", "tag").split():
        raise SystemExit(f"the tag v{options.version} exists already")
    project, changelog, readme = (
        ROOT / name for name in ("pyproject.toml", "CHANGELOG.md", "README.md")
    )
    day = datetime.now(UTC).strftime("%Y-%m-%d")
    new_project = versioned(project.read_text(), options.version)
    new_project, home = placed(new_project, options.home, options.contact)
    new_changelog, notes = dated(changelog.read_text(), options.version, day)
    project.write_text(new_project)
    changelog.write_text(new_changelog)
    readme.write_text(linked(readme.read_text(), home, options.version))
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
