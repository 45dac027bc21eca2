"""Digest of the native functions that this Python code is written for: `make stubs`."""

NATIVE_API = "dd94bae8797c"
