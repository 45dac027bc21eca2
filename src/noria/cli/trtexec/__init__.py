"""What trtexec does, on Noria's engines: the same options, report lines and exported files."""

from noria.cli.trtexec.command import trtexec

__all__ = ["trtexec"]
