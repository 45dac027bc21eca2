"""The command `headrace`, and `python -m headrace`."""

import gc
import sys


def main() -> None:
    """Run the command; name a damaged environment where it cannot even be imported.

    Garbage is looked for after 200,000 new objects, not 700: what a start makes stays, and passes
    over all of it were a tenth of its time.
    """
    gc.set_threshold(200_000)
    try:
        from headrace.cli import main as command  # it may fail
    except ImportError as error:
        from headrace._core.environment import damage_text

        if not (text := damage_text(error)):
            raise
        sys.exit(f"error: {text}")
    command()


if __name__ == "__main__":
    main()
