"""What the training scripts are told."""

from __future__ import annotations

import argparse
import os
from pathlib import Path


def arguments(about: str, out: Path, *, batch: int) -> argparse.Namespace:
    """The command line of a script; `out` and `batch` are defaults."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=320, help="videos to render")
    parser.add_argument("--per-seed", type=int, default=34, help="frames of each")
    parser.add_argument("--steps", type=int, default=9000)
    parser.add_argument("--batch", type=int, default=batch)
    parser.add_argument("--rate", type=float, default=4e-3)
    parser.add_argument("--device", default=None)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=out)
    return parser.parse_args()
