"""Digest of the native functions that this Python code is written for: `make stubs`."""

NATIVE_API = "1a8a1a2faa8f"
