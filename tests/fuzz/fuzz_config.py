"""Fuzz the config reader: any bytes give a ModelConfig or a ConfigError, and nothing else.

    pip install atheris
    python tests/fuzz/fuzz_config.py -max_total_time=600 corpus_folder tests/fuzz/seeds/config

Arguments are libFuzzer's: new inputs go into the first folder. The first byte of an input chooses
the form (`y`: YAML, else INI), the rest is the file. A crash is written to `crash-*`; put it into
the seeds, which `tests/config/test_model_config_fuzz.py` replays.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Literal

SEEDS = Path(__file__).parent / "seeds" / "config"
_FOLDER = Path(
    tempfile.mkdtemp(prefix="headrace-fuzz-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
)


def check(data: bytes) -> bool:
    """Load one input and everything that can be done with it; True when it is a valid config.

    Raises:
        Whatever is not a ConfigError, and AssertionError when a dump does not read back.
    """
    from headrace.config import ModelConfig
    from headrace.errors import ConfigError

    form: Literal["ini", "yaml"] = "yaml" if data[:1] == b"y" else "ini"
    path = _FOLDER / ("model.yml" if form == "yaml" else "model.txt")
    path.write_bytes(data[1:])
    try:
        cfg = ModelConfig.load(path)
    except ConfigError as error:
        _printable(str(error))
        return False
    for notice in cfg.notices:
        _printable(str(notice))
    assert len(cfg.per_class) == cfg.num_detected_classes
    assert repr(cfg)
    for row in cfg.effective():
        row.text.encode()
    try:
        cfg.check_files()
    except ConfigError as error:
        _printable(str(error))
    for other in ("ini", "yaml"):
        try:
            text = cfg.dump(other)
        except ConfigError:
            # a form that has no way to write a value cannot be the form it was read from
            assert other != form
            continue
        again = _FOLDER / ("again.yml" if other == "yaml" else "again.txt")
        again.write_bytes(text.encode())
        assert ModelConfig.load(again).values() == cfg.values(), text
    return True


def _printable(text: str) -> None:
    """Refuse messages that would upset a terminal or cannot be encoded."""
    assert all(line.isprintable() for line in text.split("\n")), repr(text)


def _words() -> list[str]:
    """The words of the format, so that the fuzzer need not find them letter by letter."""
    from headrace.config.keys import KEYS

    words = [key.name for key in KEYS]
    words += [
        "[property]\n",
        "property:\n  ",
        "[class-attrs-all]\n",
        "[class-attrs-0]\n",
        "\\s",
        "\\;",
    ]
    words += [
        "0x1p3",
        "nan",
        "inf",
        "1e999",
        "2147483648",
        "-1",
        ";",
        " # ",
        "true",
        "&a ",
        "*a",
        "- ",
    ]
    return words


def main() -> None:
    from instrument import fuzz_texts, instrumented

    with instrumented("headrace", "yaml"):
        import headrace.config.model_config  # noqa: F401
    fuzz_texts(check, _words(), _FOLDER)


if __name__ == "__main__":
    main()
