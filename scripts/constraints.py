"""Write the exact packages of a container, each with the hashes of its file.

    python scripts/constraints.py constraints.txt '.[live,mqtt]'
    pip install --require-hashes -r constraints.txt && pip install --no-deps headrace-*.whl

pip works out the packages for this interpreter and this machine, so run it in the image that the
container begins with. Nothing is installed. Headrace itself is left out: its wheel is yours.
Arguments behind the name are requirements; without them it is `.`, the core.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

HEAD = """\
# Made by scripts/constraints.py for {python} on {machine}: {wanted}
# pip install --require-hashes -r {name} && pip install --no-deps headrace-*.whl
"""


def report(requirements: list[str]) -> dict[str, Any]:
    """Ask pip for what it would install into an empty environment.

    Raises:
        SystemExit: there is no such set of packages; pip has said why.
    """
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    command += ["--dry-run", "--ignore-installed", "--only-binary=:all:", "--no-binary=headrace"]
    done = subprocess.run(
        [*command, "--report", "-", *requirements], stdout=subprocess.PIPE, check=False
    )
    if done.returncode != 0:
        raise SystemExit(done.returncode)
    data: dict[str, Any] = json.loads(done.stdout)
    return data


def lines(data: dict[str, Any]) -> list[str]:
    """Write one requirement for each package of a report, in order of their names.

    Raises:
        ValueError: a package comes without a SHA-256.
    """
    rows = []
    for item in data["install"]:
        metadata = item["metadata"]
        name = re.sub(r"[-_.]+", "-", metadata["name"]).lower()
        if name == "headrace":
            continue
        digest = item["download_info"].get("archive_info", {}).get("hashes", {}).get("sha256")
        if digest is None or re.fullmatch(r"[0-9a-f]{64}", digest) is None:
            raise ValueError(f"{name} comes without a SHA-256")
        rows.append(f"{name}=={metadata['version']} --hash=sha256:{digest}")
    return sorted(rows)


def main(arguments: list[str]) -> None:
    """Write the file that the first argument names."""
    if not arguments:
        raise SystemExit(__doc__)
    path, wanted = Path(arguments[0]), arguments[1:] or ["."]
    data = report(wanted)
    environment = data["environment"]
    head = HEAD.format(
        python=f"Python {environment['python_full_version']}",
        machine=f"{environment['sys_platform']} {environment['platform_machine']}",
        wanted=" ".join(wanted),
        name=path.name,
    )
    path.write_text(head + "\n".join(lines(data)) + "\n")
    print(f"{path}: {len(lines(data))} packages")


if __name__ == "__main__":
    main(sys.argv[1:])
