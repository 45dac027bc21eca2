"""`headrace exec`: run a script that was written for TensorRT or DeepStream."""

from __future__ import annotations

from pathlib import Path

import click

from headrace.cli.output import echo

EPILOG = """\b
Examples:
  headrace exec build_engine.py --onnx model.onnx --engine model.engine
  headrace exec --trt-version 10 infer.py model.engine
  headrace exec --plugins libyololayer.so=yolo_layer.py trt_yolo.py
  headrace exec -m polygraphy run model.onnx --trt --onnxrt
  headrace exec deepstream_test_1.py clip.h264
  headrace exec --report out.html deepstream_test_1.py clip.h264
  headrace exec gst-inspect-1.0 nvinfer
"""


@click.command(
    "exec",
    epilog=EPILOG,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.option(
    "--trt-version", metavar="RELEASE",
    help="Look like this release: 8.6, 10.x, 11.x; hides what it lacks. Default: all of them.",
)  # fmt: skip
@click.option(
    "--plugins", multiple=True, metavar="[LIBRARY.so=]FILE",
    help="Load a file of plugins first; or, behind the name of a library, when the script loads "
    "that library. Repeatable.",
)  # fmt: skip
@click.option(
    "--report", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
    help="Write what a DeepStream script used and what it cost: out.html, the numbers alone: "
    "out.json, or its pipeline alone: out.svg, out.dot.",
)  # fmt: skip
@click.option("-m", "module", is_flag=True, help="SCRIPT is a module, as for python -m.")
@click.argument("script", type=click.Path(path_type=Path))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def exec(
    trt_version: str | None,
    plugins: tuple[str, ...],
    report: Path | None,
    module: bool,
    script: Path,
    arguments: tuple[str, ...],
) -> None:
    """Run SCRIPT with its ARGUMENTS as python does, `import tensorrt` giving headrace.trt.

    `import pyds` gives Headrace's, with the GStreamer elements of DeepStream. SCRIPT may also be a
    tool of GStreamer, such as gst-launch-1.0, or a compiled program over GStreamer; these find the
    elements then.

    Engines are built and run on the CPU; device pointers are addresses of host memory. pycuda,
    cuda-python and cupy are small stand-ins, in this process only.
    """
    from headrace.cli.ending import unwatch_signals
    from headrace.gstreamer.applications import provide
    from headrace.gstreamer.elements.programs import is_program, is_tool, run_program, run_tool
    from headrace.trt import release
    from headrace.trt.scripts.script import run_script

    unwatch_signals()  # the script's own handlers decide
    if trt_version is not None:
        release.set_version(trt_version)
    tool = not module and is_tool(str(script))
    if tool or (not module and is_program(script)):
        for option in [n for n, v in (("--report", report), ("--plugins", plugins)) if v]:
            raise click.UsageError(f"{option} is for scripts in Python, not for {script}")
        if tool:
            run_tool(str(script), arguments)
        run_program(script, arguments)
    provide()
    if report is None:
        run_script(script, arguments, plugins, module=module)
        return
    from headrace.gstreamer.elements.usage import Usage
    from headrace.gstreamer.elements.usage_report import (
        check_report,
        last_written,
        report_of_children,
        write_report,
    )

    check_report(report)
    usage = Usage()
    usage.start()
    report_of_children(usage, report, script.name)
    before = last_written(report)
    try:
        run_script(script, arguments, plugins, module=module)
    finally:
        if usage.elements or last_written(report) == before:  # else a child wrote it
            write_report(usage, report, script.name)
            echo(f"{report}: report of the run", err=True)
