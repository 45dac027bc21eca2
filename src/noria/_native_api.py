"""Digest of the native functions that this Python code is written for: `make stubs`."""

NATIVE_API = "871f7ba32c9a"
