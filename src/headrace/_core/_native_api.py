"""Digest of the native functions that this Python code is written for: `make stubs`."""

NATIVE_API = "67d33bad2846"
