"""`headrace serve`: a pipeline that waits for sources, driven over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from headrace.cli.inputs import parted
from headrace.cli.options import run_options

if TYPE_CHECKING:
    from headrace.config.overrides import GivenKey
    from headrace.infer.run_options import RunOptions

EPILOG = """\b
CONFIG is an nvinfer config; several run one after the other. Or it is one pipeline file, whose own
sources are opened at first.

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
  headrace serve pgie.txt sgie.txt --tracker iou -o found.jsonl
"""


@click.command(epilog=EPILOG)
@click.argument("configs", nargs=-1, required=True, metavar="CONFIG...")
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
@click.option("--strict", is_flag=True, help="Treat every warning of the opening as an error.")
@run_options("serve", device="Where engines run and streams are decoded")
def serve(
    configs: tuple[str, ...],
    listen: str,
    outs: tuple[str, ...],
    tracker: str | None,
    analytics: str | None,
    log_format: str,
    allowed: tuple[str, ...],
    open_probes: bool,
    strict: bool,
    run: RunOptions,
    settings: list[GivenKey],
) -> int:
    """Run models on sources that come and go, until it is stopped."""
    from headrace.cli.live_page import live_page
    from headrace.cli.run import execute, exit_code_of_messages, print_report
    from headrace.config import load_pipeline
    from headrace.live.allowed import AllowedSources, ServiceRules
    from headrace.pipeline.opening import pipeline_spec

    pipeline, names, others = parted(configs)
    if pipeline is not None and others:
        raise click.UsageError(f"{pipeline} is a pipeline file; it names its configs itself")
    spec = pipeline_spec(
        None if pipeline is None else load_pipeline(pipeline),
        configs=(*names, *others) if pipeline is None else None,
        outputs=outs,
        tracker=tracker,
        analytics=analytics,
        keep_open=True,
    ).with_models_overridden(settings)
    rules = ServiceRules(AllowedSources(allowed), open_probes)
    page = live_page(spec, run, listen, service=rules, json_log=log_format == "json")
    report = execute(spec, run, strict=strict, quiet=True, page=page)
    if page.log is None:
        print_report(report)
    else:
        from headrace.live.log import log_end

        log_end(report)
    return exit_code_of_messages(report)
