"""Where a page or service listens, and the token that others need there."""

from __future__ import annotations

import hmac
import os
import re
from dataclasses import dataclass
from ipaddress import ip_address

from headrace._core.errors import HeadraceError

TOKEN = "HEADRACE_VIEW_TOKEN"
"""Environment variable that holds the token; without one, only this machine may connect."""
_DEFAULT_HOST, _DEFAULT_PORT = "127.0.0.1", 8088
_ADDRESS = re.compile(r"(?:(\[[0-9a-fA-F:]+\]|[^\s:/\[\]]+):)?([0-9]{1,5})?")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens.

    Attributes:
        host: a name or number of this machine.
        port: 0 takes any that is free.
    """

    host: str = _DEFAULT_HOST
    port: int = _DEFAULT_PORT

    @property
    def is_local(self) -> bool:
        """True if only this machine can connect."""
        if self.host == "localhost":
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def url(self) -> str:
        """As a browser takes it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/"


def live_address(text: str) -> Address:
    """Read `HOST:PORT`, `HOST:` or `PORT`; empty is the default.

    Raises:
        HeadraceError: it is none of these.
    """
    match = _ADDRESS.fullmatch(text)
    port = _DEFAULT_PORT if match is None or match[2] is None else int(match[2])
    if match is None or port > 65535:
        raise HeadraceError(
            f"{text!r} is no address to listen at",
            expected="HOST:PORT, such as 127.0.0.1:8088",
            fix="--view alone listens at 127.0.0.1:8088; put it last, or write --view=HOST:PORT",
        )
    return Address((match[1] or _DEFAULT_HOST).strip("[]"), port)


def require_token(address: Address, *, option: str = "--view") -> str | None:
    """Return the token of the environment.

    Args:
        option: the option that gave the address, for the error.

    Raises:
        HeadraceError: others can connect at the address, and there is no token.
    """
    token = os.environ.get(TOKEN) or None
    if token is None and not address.is_local:
        raise HeadraceError(
            f"everybody in the network could watch at {address.host}",
            where=option,
            expected=f"a token in the environment variable {TOKEN}",
            fix=f"export {TOKEN}=$(openssl rand -hex 16), or listen at 127.0.0.1",
        )
    return token


def same_token(candidate: str, token: str) -> bool:
    """Return whether a token is the right one, in a time that does not depend on it."""
    return hmac.compare_digest(candidate.encode(), token.encode())
