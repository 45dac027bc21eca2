"""The Ray cluster of a batch: whether it answers, takes this process, and has a node that fits."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from headrace._core.gpu.cuda import gpu_count
from headrace._core.lazy import import_extra
from headrace._core.text import error_text
from headrace.errors import HeadraceError

_ANSWER_S = 5.0  # of the port of a cluster; Ray itself waits for minutes
# a call that the client server answers, and one of a head node
_CALLS = ("/ray.rpc.RayletDriver/ClusterInfo", "/ray.rpc.InternalKVGcsService/InternalKVGet")


def this_node() -> dict[str, Any]:
    """This machine as `ray.nodes()` would give it, without the seconds that Ray takes to start."""
    return {"Alive": True, "Resources": {"CPU": os.cpu_count() or 1, "GPU": gpu_count()}}


def require_node(
    nodes: Sequence[Mapping[str, Any]], cores: int, gpus: bool, *, grows: bool = True
) -> None:
    """Refuse a cluster without a node that has the cores and GPU of an actor, which would wait.

    Args:
        nodes: as `ray.nodes()` gives them.
        cores, gpus: of an actor: its CPU cores, and whether it takes a GPU.
        grows: nodes may come: the cluster is not one of this machine alone.

    Raises:
        HeadraceError: there is no such node, and what the largest ones have.
    """
    alive = [node.get("Resources", {}) for node in nodes if node.get("Alive")]
    if any(n.get("CPU", 0) >= cores and n.get("GPU", 0) >= int(gpus) for n in alive):
        return
    most = {kind: max((node.get(kind, 0) for node in alive), default=0) for kind in ("CPU", "GPU")}
    raise HeadraceError(
        f"no node of the Ray cluster has {cores} CPU core(s){' and a GPU' if gpus else ''} for a "
        "worker",
        where="--on",
        expected=f"nodes have at most {most['CPU']:g} core(s) and {most['GPU']:g} GPU(s)",
        fix=[
            "--threads asks for fewer cores",
            *["--device cpu asks for no GPU"] * gpus,
            *["--workers N waits for nodes, where the cluster starts some when they are asked for"]
            * grows,
        ],
        code="ray-no-node",
    )


def check_cluster(on: str, cores: int, gpus: bool) -> None:
    """Refuse a cluster that a batch would wait for in vain, before models are opened.

    Args:
        on: `ray` or `ray://HOST:PORT`.
        cores, gpus: of an actor, as far as they are known.

    Raises:
        HeadraceError: nothing listens at the cluster's address; the cluster asks for a token; or
            it would be started on this machine, which does not have what an actor needs.
    """
    ray = import_extra("ray", "ray")
    if ray.is_initialized():
        return
    address = os.environ.get("RAY_ADDRESS", "") if on == "ray" else on
    if not address:
        require_node([this_node()], cores, gpus, grows=False)
        return
    where = urlsplit(address if "://" in address else f"//{address}")
    try:
        host, port = where.hostname, where.port
    except ValueError:
        host, port = None, None
    if host is None or port is None:  # auto: Ray looks for it
        return
    try:
        socket.create_connection((host, port), _ANSWER_S).close()
    except OSError as error:
        raise HeadraceError(
            f"the Ray cluster does not answer: {error_text(error)}",
            where=address,
            expected="the address of a head node that runs: HOST:6379 in RAY_ADDRESS, "
            "ray://HOST:10001 of its client server",
            fix="ray status on the head node shows whether it runs",
            code="ray-away",
        ) from error
    if os.environ.get("RAY_AUTH_MODE") != "token" and _asks_for_token(
        where.netloc, client=where.scheme == "ray"
    ):
        raise HeadraceError(
            "the Ray cluster asks for a token",
            where=address,
            expected="a token of the cluster, and RAY_AUTH_MODE=token, with which Ray sends it",
            fix="RAY_AUTH_TOKEN=TOKEN, or the cluster's ~/.ray/auth_token in that file here; "
            "ray get-auth-token on the head node prints it",
            code="ray-token",
        )


def _asks_for_token(address: str, *, client: bool) -> bool:
    """Return whether a cluster refuses a call without a token, which Ray would repeat for 30 s.

    Args:
        address: HOST:PORT of it.
        client: that is its client server; else a head node.
    """
    grpc = import_extra("grpc", "ray")
    here = [("grpc.enable_http_proxy", 0)]  # as Ray has it
    with grpc.insecure_channel(address, options=here) as channel:
        try:
            channel.unary_unary(_CALLS[0] if client else _CALLS[1])(b"", timeout=_ANSWER_S)
        except grpc.RpcError as error:
            return bool(error.code() is grpc.StatusCode.UNAUTHENTICATED)
    return False


@contextmanager
def joined_cluster(on: str, cores: int, gpus: bool, *, waits: bool) -> Iterator[None]:
    """Join a cluster that runs already for the time of the block, unless the program has joined it.

    So a cluster without a node that fits is refused before models are opened, which may take
    minutes. One that would be started on this machine is only looked at.

    Args:
        on, cores, gpus: as `check_cluster` takes them.
        waits: nodes that fit may come later.

    Raises:
        HeadraceError: as `check_cluster`; or none of its nodes has what an actor needs.
    """
    ray = import_extra("ray", "ray")
    check_cluster(on, cores, gpus)
    joins = not ray.is_initialized() and (on != "ray" or bool(os.environ.get("RAY_ADDRESS")))
    if not joins:
        yield
        return
    join(on)
    try:
        if not waits:
            require_node(ray.nodes(), cores, gpus)
        yield
    finally:
        ray.shutdown()


def join(address: str) -> None:
    """Connect this process to a cluster, or start one.

    Raises:
        HeadraceError: it does not answer.
    """
    ray = import_extra("ray", "ray")
    try:
        ray.init(
            # never one that a stopped cluster has left the address of on this machine
            address=os.environ.get("RAY_ADDRESS", "local") if address == "ray" else address,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
    except Exception as error:  # ray has many, of several packages
        raise HeadraceError(
            f"the Ray cluster does not answer: {error_text(error)}",
            where=address,
            fix="RAY_AUTH_MODE=token connects to a cluster that asks for a token",
            code="ray-away",
        ) from error
