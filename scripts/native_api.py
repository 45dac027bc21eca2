"""Write the digest of the stub of the native core, which the Python side expects.

usage: native_api.py STUB TARGET
"""

import hashlib
import sys
from pathlib import Path


def main() -> None:
    stub, target = map(Path, sys.argv[1:])
    digest = hashlib.sha256(stub.read_bytes()).hexdigest()[:12]
    target.write_text(
        '"""Digest of the native functions that this Python code is written for: `make stubs`."""\n'
        f'\nNATIVE_API = "{digest}"\n'
    )


main()
