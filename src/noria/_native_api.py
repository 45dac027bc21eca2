"""What functions of the native core this Python code is written for: `make stubs`."""

NATIVE_API = "58d06cf8cc7f"
