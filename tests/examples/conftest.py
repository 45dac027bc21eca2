"""Modules that stand beside the examples are imported as the examples import them."""

from __future__ import annotations

import sys
from pathlib import Path

for example in ("conveyor", "03_ocr"):
    sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / example))
