"""Digest of the native functions that this Python code is written for: `make stubs`."""

NATIVE_API = "b9c24a9efe5a"
