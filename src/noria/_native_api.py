"""What functions of the native core this Python code is written for: `make stubs`."""

NATIVE_API = "10fd8154dc26"
