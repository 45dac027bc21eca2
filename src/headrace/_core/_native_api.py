"""Digest of the native functions that this Python code is written for: `make stubs`."""

NATIVE_API = "db8e65d372a4"
