"""The command `headrace`, and `python -m headrace`."""

import gc
import sys

_AT_START, _LATER = 200_000, 10_000  # new objects between two looks for garbage; Python's is 700


def main() -> None:
    """Run the command; name a damaged environment where it cannot even be imported.

    What a start makes stays: looking for garbage in it was a tenth of its time.
    """
    gc.set_threshold(_AT_START)
    gc.callbacks.append(_look_sooner)
    try:
        from headrace.cli import main as command  # it may fail
    except ImportError as error:
        from headrace._core.environment import damage_text

        if not (text := damage_text(error)):
            raise
        sys.exit(f"error: {text}")
    command()


def _look_sooner(phase: str, info: dict[str, int]) -> None:
    """Shorten the distance at the first look: the start is over."""
    gc.callbacks.remove(_look_sooner)
    gc.set_threshold(_LATER)


if __name__ == "__main__":
    main()
