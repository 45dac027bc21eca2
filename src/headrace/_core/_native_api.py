"""Digest of the native functions that this Python code is written for: `make stubs`."""

NATIVE_API = "a510ff63f447"
