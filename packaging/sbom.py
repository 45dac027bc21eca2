"""The software bill of materials of a wheel: CycloneDX 1.6, in `.dist-info/sboms/`."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from email.parser import HeaderParser
from importlib.metadata import version
from pathlib import Path
from typing import Any
from zipfile import ZipFile

_COMPILED_IN = {  # name: licence; what the core's one binary holds of others
    "nanobind": "BSD-3-Clause",
    "robin-map": "MIT",
}


def bill(metadata: str, when: datetime) -> dict[str, Any]:
    """Return the bill of a distribution.

    Args:
        metadata: its METADATA file: name, version and what it asks for.
        when: the time of the sources.
    """
    fields = HeaderParser().parsestr(metadata)
    name, release = fields["Name"], fields["Version"]
    own = f"pkg:pypi/{name}@{release}"
    parts = []
    for part, licence in _COMPILED_IN.items():
        row: dict[str, Any] = {"type": "library", "name": part, "bom-ref": part}
        row["licenses"] = [{"license": {"id": licence}}]
        if part == "nanobind":
            row["version"] = version(part)
            row["purl"] = f"pkg:pypi/{part}@{row['version']}"
        parts.append(row)
    asked = []
    for line in fields.get_all("Requires-Dist", []):
        requirement, _, marker = line.partition(";")
        if "extra ==" in marker:
            continue
        bare = requirement.split("[")[0].split(">")[0].strip()
        asked.append(f"pkg:pypi/{bare.lower()}")
        parts.append(
            {
                "type": "library", "name": bare, "bom-ref": asked[-1], "purl": asked[-1],
                "scope": "required", "description": f"installed beside it: {requirement.strip()}",
            }
        )  # fmt: skip
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": when.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                "type": "library", "name": name, "version": release, "bom-ref": own, "purl": own,
                "licenses": [{"license": {"id": fields["License-Expression"]}}],
            },
        },
        "components": parts,
        "dependencies": [{"ref": own, "dependsOn": [*_COMPILED_IN, *asked]}],
    }  # fmt: skip


def write_sbom(wheel: Path, epoch: str) -> None:
    """Add the bill to a wheel.

    Args:
        wheel: changed in place; its RECORD lists the bill.
        epoch: seconds since 1970: the time of the sources.
    """
    folder = wheel.parent / "unpacked"
    command = [sys.executable, "-m", "wheel"]
    subprocess.run([*command, "unpack", "-d", folder, wheel], check=True, capture_output=True)
    inside = next(folder.iterdir())
    info = next(inside.glob("*.dist-info"))
    when = datetime.fromtimestamp(int(epoch), UTC)
    (info / "sboms").mkdir(exist_ok=True)
    text = json.dumps(bill((info / "METADATA").read_text(), when), indent=1)
    (info / "sboms" / "headrace.cdx.json").write_text(text + "\n")
    wheel.unlink()
    subprocess.run(
        [*command, "pack", "-d", wheel.parent, inside],
        check=True, capture_output=True, env={"SOURCE_DATE_EPOCH": epoch, "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    with ZipFile(wheel) as archive:
        assert f"{info.name}/sboms/headrace.cdx.json" in archive.namelist()
    subprocess.run(["rm", "-r", folder], check=True)
