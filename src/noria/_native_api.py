"""Digest of the native functions that this Python code is written for: `make stubs`."""

NATIVE_API = "98e8d44ec9fe"
