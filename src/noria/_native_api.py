"""Digest of the native functions that this Python code is written for: `make stubs`."""

NATIVE_API = "81d9b6df81de"
