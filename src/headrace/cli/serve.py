"""`headrace serve`: a pipeline that waits for sources, driven over HTTP."""

from __future__ import annotations

from typing import Any

import click

from headrace.cli.device_option import with_device
from headrace.cli.overriding import overridable

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
@click.option("--threads", type=click.IntRange(1, 1024), help="CPU threads of each engine.")
@with_device("Where engines run and streams are decoded")
@click.option("--guard", type=click.Choice(["auto", "always", "never"]), help="As of headrace run.")
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    help="json writes one object a line to standard error: sources that come and go, errors, "
    "notices.",
)
@click.option("--strict", is_flag=True, help="Treat every warning of the opening as an error.")
@overridable
def serve(
    configs: tuple[str, ...],
    listen: str,
    outs: tuple[str, ...],
    tracker: str | None,
    analytics: str | None,
    log_format: str,
    strict: bool,
    given: list[Any],
    **options: Any,
) -> int:
    """Run models on sources that come and go, until it is stopped."""
    from headrace.cli.live_page import live_page
    from headrace.cli.run import execute, print_report
    from headrace.config import is_pipeline_file, load_pipeline
    from headrace.pipeline.assembly import AssemblyOptions
    from headrace.pipeline.opening import pipeline_spec

    if is_pipeline_file(configs[0]):
        if len(configs) > 1:
            raise click.UsageError(f"{configs[0]} is a pipeline file; it names its configs itself")
        base, names = load_pipeline(configs[0]).changed(keep_open=True), None
    else:
        base, names = None, configs
    spec = pipeline_spec(
        base, configs=names, outputs=outs, tracker=tracker, analytics=analytics, keep_open=True
    ).with_models_overridden(given)
    made = AssemblyOptions(**options)
    page = live_page(spec, made, listen, service=True, json_log=log_format == "json")
    report = execute(spec, made, strict=strict, quiet=True, page=page)
    if page.log is None:
        print_report(report)
    else:
        from headrace.live.log import log_end

        log_end(report)
    return 0
