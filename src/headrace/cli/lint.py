"""`headrace lint`: everything that is wrong with a set-up, as far as its files tell."""

from __future__ import annotations

from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace._core.errors import MediaError, StrictError
from headrace._core.files import os_errors, write_where_named
from headrace.cli.options import run_options
from headrace.cli.output import echo, print_json

if TYPE_CHECKING:
    from headrace.config.overrides import GivenKey
    from headrace.diagnose.lint.findings import LintFinding
    from headrace.diagnose.lint.linting import LintReport
    from headrace.infer.run_options import RunOptions

EPILOG = """\b
Examples:
  headrace lint config_infer_primary.txt
  headrace lint pipeline.yml configs/
  headrace lint --together pgie.txt sgie.txt
  headrace lint config_infer_primary.txt video.mp4
  headrace lint config_infer_primary.txt --fix
  headrace lint config_infer_primary.txt --target deepstream-6.2
  headrace lint --explain class-count
"""

_COLORS = {"error": "red", "warning": "yellow", "note": "cyan"}
_MOST_ALIKE = 10  # findings of one rule in one file that are printed
_TARGETS = ("deepstream-6.2", "deepstream-7", "deepstream-8", "deepstream-9")


@click.command(epilog=EPILOG)
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE|DIR]...")
@click.option("--together", is_flag=True,
              help="The configs are the models of one pipeline, in this order.")  # fmt: skip
@click.option("--target", type=click.Choice(_TARGETS),
              help="Report what this generation of the original does differently.")  # fmt: skip
@click.option("--select", multiple=True, metavar="RULE", help="Only this rule; repeatable.")
@click.option("--ignore", multiple=True, metavar="RULE", help="Not this rule; repeatable.")
@click.option("--notes", is_flag=True, help="Show notes, too.")
@click.option("--fix", is_flag=True, help="Show the edits that fix findings, ask, and write them.")
@click.option("--yes", is_flag=True, help="With --fix: do not ask.")
@click.option("--strict", is_flag=True, help="Fail if there are warnings.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@click.option("--sarif", type=click.Path(path_type=Path), metavar="FILE",
              help="Write SARIF 2.1.0 for code hosts and editors.")  # fmt: skip
@click.option("--rules", "listed", is_flag=True, help="List the rules.")
@click.option("--explain", metavar="RULE", help="Explain a rule.")
@run_options("lint")
def lint(
    paths: tuple[Path, ...],
    together: bool,
    target: str | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    notes: bool,
    fix: bool,
    yes: bool,
    strict: bool,
    as_json: bool,
    sarif: Path | None,
    listed: bool,
    explain: str | None,
    run: RunOptions,
    settings: list[GivenKey],
) -> int:
    """Check configs, pipeline files and deepstream-app configs with everything that they name.

    Model, weights, labels, custom library, engine and calibration table are read, nothing is built
    or saved. Of a folder, every config in it is checked. With a video, an image or a folder of
    images, the models run on frames of it, and what is advised is tried on them.
    """
    if listed or explain:
        _print_rules(explain)
        return 0
    if not paths:
        raise click.UsageError("Missing argument 'FILE|DIR...'.")
    from headrace.diagnose.lint.catalogue import find_rule
    from headrace.diagnose.lint.fixes import fixes_for
    from headrace.diagnose.lint.frames import split_source
    from headrace.diagnose.lint.linting import Linter
    from headrace.diagnose.lint.targets import TARGETS
    from headrace.diagnose.lint.text import sarif_text

    for name in (*select, *ignore):
        find_rule(name)
    settings = [*settings, *run.keys()]
    if fix and settings:
        text = "--fix mends files, and what is set over configs does not stand in them"
        raise click.UsageError(text)
    if fix and as_json and not yes:
        raise click.UsageError("--json cannot ask: --fix needs --yes beside it")

    files, source = split_source(paths)
    if not files:
        raise click.UsageError("Missing argument 'FILE|DIR...': a config beside the source.")

    def checked() -> LintReport:
        linter = Linter(TARGETS[target] if target else None, settings, source=source, options=run)
        return linter.lint(files, together=together).chosen(select, ignore)

    report = checked()
    if fix and _mended(report, yes=yes):
        report = checked()
    fixes = [] if settings else fixes_for(report.findings)
    edits = {finding: edit for fix in fixes for finding, edit in fix.mended.items()}
    _print(report, edits, notes=notes, as_json=as_json)
    if sarif is not None:
        _write(sarif, sarif_text(report, version("headrace")))
    errors = [finding for finding in report.findings if finding.severity == "error"]
    if errors:
        return errors[0].exit_code or 1
    return StrictError.exit_code if strict and report.count("warning") else 0


def _print(
    report: LintReport, edits: dict[LintFinding, str], *, notes: bool, as_json: bool
) -> None:
    from headrace.diagnose.lint.text import json_data, summary

    if as_json:
        print_json(json_data(report, edits))
    else:
        shown = [f for f in report.findings if notes or f.severity != "note"]
        alike = Counter((finding.code, finding.place.path) for finding in shown)
        printed = Counter[tuple[str, Path | None]]()
        for finding in shown:
            kind = (finding.code, finding.place.path)
            printed[kind] += 1
            if printed[kind] <= _MOST_ALIKE:
                _print_finding(finding, edits.get(finding))
            elif printed[kind] == alike[kind]:
                more = alike[kind] - _MOST_ALIKE
                echo(f"... and {more} more of {finding.code}")
        echo(summary(report, fixable=len(edits), notes_shown=notes))


def _mended(report: LintReport, *, yes: bool) -> bool:
    """Show the edits, and write them if that is wanted; True if files were changed."""
    from headrace.diagnose.lint.fixes import fixes_for

    fixes = fixes_for(report.findings)
    for fix in fixes:
        echo(fix.diff, lines=True, nl=False, err=True)
    count = sum(len(fix.mended) for fix in fixes)
    if not fixes:
        return False
    question = f"Write these edits, which mend {count} finding(s)?"
    if not (yes or click.confirm(question, err=True)):
        return False
    for fix in fixes:
        fix.write()
    return True


def _write(path: Path, text: str) -> None:
    with os_errors(MediaError, "it cannot be written", path):
        write_where_named(path, text.encode())


def _print_finding(finding: LintFinding, edit: str | None) -> None:
    from headrace.diagnose.lint.text import finding_lines, head_line

    where, severity, text = head_line(finding)
    echo(f"{where}: ", nl=False)
    echo(severity, fg=_COLORS[severity], bold=severity == "error", nl=False)
    echo(text)
    for line in finding_lines(finding, edit):
        echo(line)


def _print_rules(name: str | None) -> None:
    from headrace.diagnose.lint.catalogue import all_rules, find_rule
    from headrace.diagnose.lint.text import explanation

    if name:
        echo(explanation(find_rule(name)), lines=True)
        return
    width = max(map(len, all_rules()))
    for rule in all_rules().values():
        run = " (in a run)" if rule.found == "run" else ""
        echo(f"{rule.id:<{width}}  {rule.severity:<7}  {rule.summary}{run}")
