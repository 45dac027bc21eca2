"""`python -m noria`."""

from noria.cli import main

main()
