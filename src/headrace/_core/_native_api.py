"""Digest of the native functions that this Python code is written for: `make stubs`."""

NATIVE_API = "45fb074bcb9f"
