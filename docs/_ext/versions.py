"""Add the built documentation of one version to a folder that holds those of all versions.

Each version is a folder; `versions.json` lists them, newest first, for the list in each page's
margin, and the folder's own `index.html` leads to the newest release.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from packaging.version import Version

from headrace import __version__

_LEAD = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={0}/">\n'


def add(html: Path, site: Path, version: str = __version__) -> list[str]:
    """Copy a version in place of an earlier build of the same one; return all versions."""
    target = site / str(Version(version))  # nothing but a version becomes a folder
    if target.exists():
        shutil.rmtree(target)
    shutil.copytree(html, target, ignore=shutil.ignore_patterns(".doctrees", ".buildinfo"))
    found = [p.parent.name for p in site.glob("*/searchindex.js")]
    versions = sorted(found, key=Version, reverse=True)
    released = [v for v in versions if not Version(v).is_prerelease]
    (site / "versions.json").write_text(json.dumps(versions), encoding="utf-8")
    (site / "index.html").write_text(_LEAD.format((released or versions)[0]), encoding="utf-8")
    shutil.copy(target / "404.html", site / "404.html")
    return versions


if __name__ == "__main__":
    print("\n".join(add(Path(sys.argv[1]), Path(sys.argv[2]))))
