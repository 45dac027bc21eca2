"""Fuzz the readers of pipeline files: any bytes give a PipelineSpec or a ConfigError.

    pip install atheris
    python tests/fuzz/fuzz_pipeline.py -max_total_time=600 corpus_folder tests/fuzz/seeds/pipeline

The first byte of an input chooses the file: `y` YAML, `c` a CSV of sources beside a fixed YAML,
else INI. A crash is written to `crash-*`; put it into the seeds, which
`tests/config/test_pipeline_spec_fuzz.py` replays.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

SEEDS = Path(__file__).parent / "seeds" / "pipeline"
_FOLDER = Path(
    tempfile.mkdtemp(prefix="headrace-fuzz-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
)
_CSV_APP = b"source:\n  csv-file-path: sources.csv\nstreammux:\n  batch-size: 2\n"


def check(data: bytes) -> bool:
    """Load one input and everything that can be done with it; True when it is a valid pipeline.

    Raises:
        Whatever is no ConfigError or ModelError, and AssertionError when a dump does not read back.
    """
    from headrace.config import is_pipeline_file, load_pipeline
    from headrace.errors import ConfigError, ModelError

    kind, body = data[:1], data[1:]
    path = _FOLDER / ("app.txt" if kind not in (b"y", b"c") else "pipe.yml")
    if kind == b"c":
        (_FOLDER / "sources.csv").write_bytes(body)
        body = _CSV_APP
    path.write_bytes(body)
    is_pipeline = is_pipeline_file(path)
    try:
        spec = load_pipeline(path)
    except (ConfigError, ModelError) as error:  # ModelError: the bytes begin as a model's do
        _printable(str(error))
        return False
    assert is_pipeline or path.suffix == ".yml"
    for notice in spec.notices:
        _printable(str(notice))
    assert spec.opened_sources
    _printable(repr(spec))
    for sink in spec.sinks:
        spec.source_index(sink)
    try:
        spec.load_models()
    except ConfigError as error:
        _printable(str(error))
    again = _FOLDER / "again.yml"
    again.write_text(spec.dump())
    assert load_pipeline(again) == spec, spec.dump()
    return True


def _printable(text: str) -> None:
    """Refuse messages that would upset a terminal or cannot be encoded."""
    assert all(line.isprintable() for line in text.split("\n")), repr(text)


def _words() -> list[str]:
    """The words of the formats, so that the fuzzer need not find them letter by letter."""
    from headrace.config.app.keys import APP_GROUPS
    from headrace.config.pipeline_keys import SECTIONS, TOP_KEYS

    words = [*TOP_KEYS, "[sink0]\n", "[source0]\n", "[secondary-gie1]\n", "enable=1\n", "enable: 1"]
    for section in SECTIONS.values():
        words += [section.name + ":", *section.keys]
    for group in APP_GROUPS:
        words += [f"[{group.name}]\n", *group.keys, *group.unused]
    words += ["file://", "rtsp://", "%d", "usb:0", "csi:0", "camera:0", "kitti:", "iou:a=1", "2x2"]
    words += ["1;0;0;1", "[1, 0, 0, 1]", "{all: ", "&a ", "*a", "- ", "2147483648", "-1", "nan"]
    return words


def main() -> None:
    from instrument import fuzz_texts, instrumented

    with instrumented("headrace", "yaml"):
        import headrace.config.app.file
        import headrace.config.pipeline_files  # noqa: F401
    fuzz_texts(check, _words(), _FOLDER)


if __name__ == "__main__":
    main()
