"""The command `headrace`, and `python -m headrace`."""

import sys


def main() -> None:
    """Run the command; name a damaged environment where it cannot even be imported."""
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
