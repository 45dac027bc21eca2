"""docs/tracker-files.md: the keys of the original's tracker files, and what becomes of each."""

from __future__ import annotations

from collections import Counter

from headrace.pipeline.track.original_file import presets
from headrace.pipeline.track.original_keys import OriginalKey, original_keys

_TEXT = """\
# Tracker files of the original

<!-- written by make schema -->

The low-level tracker library's files (`ll-config-file`; IOU, NvSORT, NvDCF, NvDeepSORT) run as
they are: `headrace run … --tracker config_tracker_NvDCF_perf.yml`, `open_tracker("….yml")`, the
key of a deepstream-app file, the property of `nvtracker`. No key names the tracker: the modules
that a file switches on are the tracker. The core is Headrace's own, by the published rules; where
a formula is not published, *Headrace* says what is done instead. [Tracking](tracking.md) has the
rest.

The samples are trackers by name, with keys as settings (`nvdcf-perf:probationAge=5`):

{presets}

A key that its section does not have is looked for in the others, since generations moved keys. A
key that no generation has is named in a warning and nothing else happens, as in the original.

| | keys | means |
|---|---|---|
| applied | {applied} | as published |
| near | {near} | a rule is not published, or it is done in another way |
| so | {so} | asks for nothing that is not so anyway, or belongs to a key that is named |
| no effect | {no} | read and checked; a warning names it, unless its value asks for nothing |
"""


def page() -> str:
    """Return the whole page as Markdown."""
    keys = original_keys().values()
    counts = Counter(key.acts for key in keys)
    names = "\n".join(f"- `{name}`: {preset['text']}" for name, preset in presets().items())
    parts = [_TEXT.format(presets=names, **{act: counts[act] for act in _WORDS})]
    for section in dict.fromkeys(key.section for key in keys):
        title = f"`{section}`" + (" (generation 5)" if section == "NvDCF" else "")
        lines = ["| Key | Default | Values | Headrace | Meaning |", "|---" * 5 + "|"]
        lines += [_row(key) for key in keys if key.section == section]
        parts.append(f"## {title}\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


_WORDS = {"applied": "applied", "near": "near", "so": "so", "no": "no effect"}


def _row(key: OriginalKey) -> str:
    default = key.default
    if isinstance(default, bool):
        text = str(int(default))
    elif isinstance(default, list):
        text = "[" + ", ".join(f"{v:g}" for v in default) + "]"
    else:
        text = default if isinstance(default, str) else f"{default:g}"
    acts = _WORDS[key.acts] + (f": {key.how}" if key.how else "")
    return f"| `{key.name}` | {text or 'none'} | {key.expected} | {acts} | {key.text} |"
