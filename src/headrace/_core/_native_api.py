"""Digest of the native functions that this Python code is written for: `make stubs`."""

NATIVE_API = "5ee20164d683"
