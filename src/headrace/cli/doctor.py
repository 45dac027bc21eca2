"""`headrace doctor`: find out which parts of this machine can be used."""

from __future__ import annotations

from itertools import groupby

import click

from headrace._core.text import counted
from headrace.cli.output import echo, print_json, stdout_is_for_results

EPILOG = """\b
Examples:
  headrace doctor
  headrace doctor --json
  headrace doctor --part gpu
"""
_AREAS = {
    "gpu": "NVIDIA GPU",
    "engine": "Runtimes",
    "video": "Video",
    "tools": "Tools",
    "guard": "Guarded libraries",
    "extra": "Optional packages",
}
_COLOURS = {"ok": "green", "absent": None, "problem": "red"}


@click.command(epilog=EPILOG)
@click.option("--part", metavar="NAME", help="Look at one part alone, in this process: "
              "gpu, a runtime, or gstreamer.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def doctor(part: str | None, as_json: bool) -> int:
    """Try each part of this machine by using it: GPU, runtimes, video, packages.

    The exit code is 1 if something is installed and cannot be used. What is only absent is no
    problem.
    """
    from headrace.diagnose.doctor.examination import PARTS, examine, examine_part

    if part is not None and part not in PARTS:
        raise click.BadParameter(f"{part!r} is none of {', '.join(PARTS)}", param_hint="'--part'")
    with stdout_is_for_results():
        report = examine() if part is None else examine_part(part)
    if as_json:
        print_json(report.to_dict())
        return int(bool(report.problems))
    echo(report.system)
    width = max(len(check.name) for check in report.checks)
    for area, checks in groupby(report.checks, lambda check: check.area):
        echo()
        echo(_AREAS[area], bold=True)
        for check in checks:
            echo(f"  {check.state:<7}  ", fg=_COLOURS[check.state], nl=False)
            brief = check.state == "absent" and len(check.fix) == 1 and area != "tools"
            more = f": {check.fix[0]}" if brief else ""
            first, *others = check.text.splitlines() or [""]
            echo(f"{check.name:<{width}}  {first}{more}")
            for line in (*others, *(() if brief else check.fix)):
                echo(f"{'':<{width + 13}}{line}")
    count = len(report.problems)
    text = counted(count, "problem") if count else "no problems"
    where = f"; headrace run computes on {report.device}" if report.device else ""
    echo(f"\n{text}{where}", lines=True)
    return int(bool(count))
