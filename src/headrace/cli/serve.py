"""`headrace serve`: a pipeline that waits for sources, driven over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from headrace._core.errors import MediaError
from headrace.cli.inputs import parted, spec_of
from headrace.cli.options import run_options

if TYPE_CHECKING:
    from headrace.cli.live_page import LivePage
    from headrace.config.overrides import GivenKey
    from headrace.infer.run_options import RunOptions
    from headrace.pipeline import RunReport
    from headrace.pipeline.health import Action

EPILOG = """\b
CONFIG is an nvinfer config; several run one after the other. Or it is one pipeline file. SOURCEs
are opened at first, in the place of the pipeline file's own.

\b
Sources come and go over HTTP:
  curl -X POST localhost:8088/api/sources -d '{"uri": "rtsp://camera/stream", "name": "door"}'
  curl -X DELETE localhost:8088/api/sources/0
The paths of the original's REST server work as well: /api/v1/stream/add and others. Counts for
Prometheus are at /metrics, readiness is at /readyz, a page to watch at /. SIGTERM finishes the
files and ends it.

\b
Examples:
  headrace serve pgie.txt
  headrace serve pipeline.yml --listen 127.0.0.1:9000
  headrace serve deepstream_app_config.txt rtsp://camera/stream
  headrace serve pgie.txt sgie.txt --tracker iou -o found.jsonl
"""


@click.command(epilog=EPILOG)
@click.argument("inputs", nargs=-1, required=True, metavar="CONFIG... [SOURCE...]")
@click.option(
    "--listen",
    default="",
    metavar="HOST:PORT",
    help="Where to listen. Default: 127.0.0.1:8088. Other machines may connect where "
    "HEADRACE_VIEW_TOKEN holds a token.",
)
@click.option(
    "-o",
    "--out",
    "outs",
    multiple=True,
    metavar="OUT",
    help="Where results go, as of headrace run; repeatable.",
)
@click.option("--tracker", metavar="TRACKER", help="As of headrace run.")
@click.option("--analytics", type=click.Path(), metavar="FILE", help="As of headrace run.")
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    help="json writes one object a line to standard error: sources that come and go, errors, "
    "notices.",
)
@click.option(
    "--allow-source",
    "allowed",
    multiple=True,
    metavar="WHERE",
    help="What requests may add as sources, and no more: a folder, a scheme as rtsp: or camera:, "
    "or a scheme and a host as rtsp://gate.example; repeatable. Default: all that the process can "
    "read.",
)
@click.option(
    "--open-probes",
    is_flag=True,
    help="Answer /healthz and /readyz without the token, as orchestrators ask.",
)
@click.option(
    "--answers-within",
    type=click.FloatRange(0),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="A model that answers nothing for so long while frames come is not ready: it crashes, "
    "hangs, or its outputs cannot be read. 0: never.",
)
@click.option(
    "--results-within",
    type=click.FloatRange(0),
    default=0.0,
    metavar="SECONDS",
    help="The same for a model that answers and finds nothing. Default: never, since a scene may "
    "be empty.",
)
@click.option(
    "--not-ready",
    "action",
    type=click.Choice(["keep", "restart", "exit"]),
    default="keep",
    show_default=True,
    help="What is done about a model that is not ready: run on, load it anew, or end the service "
    "with exit code 11.",
)
@click.option("--strict", is_flag=True, help="Treat every warning of the opening as an error.")
@run_options("serve", device="Where engines run and streams are decoded")
def serve(
    inputs: tuple[str, ...],
    listen: str,
    outs: tuple[str, ...],
    tracker: str | None,
    analytics: str | None,
    log_format: str,
    allowed: tuple[str, ...],
    open_probes: bool,
    answers_within: float,
    results_within: float,
    action: Action,
    strict: bool,
    run: RunOptions,
    settings: list[GivenKey],
) -> int:
    """Run models on sources that come and go, until it is stopped."""
    from headrace._core.heap import share_heaps
    from headrace.cli.live_page import ModelLimits, live_page
    from headrace.cli.run import execute, print_report
    from headrace.live.address import live_address
    from headrace.live.allowed import AllowedSources, ServiceRules
    from headrace.live.kept import KeptSources
    from headrace.live.kept_changes import KeptChanges
    from headrace.live.kept_file import service_file
    from headrace.live.log import errors_logged, log_as_json, log_end

    share_heaps()
    log = log_as_json() if log_format == "json" else None
    with errors_logged(log):
        spec = spec_of(inputs, outs, tracker, analytics, run.generation, keep_open=True)
        spec = spec.with_models_overridden(settings)
        limits = ModelLimits(answers_within, results_within, action)
        port = live_address(listen).port
        pipeline, configs, _ = parted(inputs)
        configs = configs if pipeline is None else (pipeline,)
        kept = KeptSources(service_file(configs, port, "sources"))
        changes = KeptChanges(service_file(configs, port, "changes"))
        rules = ServiceRules(AllowedSources(allowed), open_probes, kept, changes)
        page = live_page(spec, run, listen, service=rules, log=log, limits=limits)
        report = execute(spec, run, strict=strict, quiet=True, page=page)
    if log is None:
        print_report(report, notes=False)
    else:
        log_end(report)
    return _ended(page, report)


def _ended(page: LivePage, report: RunReport) -> int:
    """The exit code of a service that has stopped: models first, then outputs, then messages."""
    from headrace.cli import EXIT_NOT_READY
    from headrace.cli.ending import leave_at_once
    from headrace.cli.run import exit_code_of_messages

    code, health = exit_code_of_messages(report), page.health
    if health is None:
        return code
    if any(not s.up and s.kind != "messages" for s in health.pipeline.outputs):
        code = MediaError.exit_code
    if page.not_ready:
        code = EXIT_NOT_READY
    if health.pipeline.left:  # a call that does not come back
        leave_at_once(code)
    return code
