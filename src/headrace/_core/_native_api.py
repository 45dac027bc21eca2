"""Digest of the native functions that this Python code is written for: `make stubs`."""

NATIVE_API = "cbdf1e406b5a"
