"""Digest of the native functions that this Python code is written for: `make stubs`."""

NATIVE_API = "e1781a8b2721"
