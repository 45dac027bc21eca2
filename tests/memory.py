"""What this process holds."""

from __future__ import annotations

from pathlib import Path


def resident() -> int:
    """Bytes of main memory."""
    return int(Path("/proc/self/status").read_text().split("VmRSS:")[1].split()[0]) * 1024
