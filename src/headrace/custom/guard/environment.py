"""The environment of a worker: the application's, without credentials."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from headrace._core.errors import ConfigError

_PARTS = frozenset(["AUTH", "DSN", "JWT", "KEY", "LOGIN", "PASS", "PAT", "PWD", "SAS"])
"""Words between underscores of a name that holds a credential."""

_NAME = re.compile(
    "(?<!TIK)TOKEN(?!IZ)|SECRET|PASSW|PASSPHRASE|CREDENTIAL|APIKEY|ACCESSKEY|PRIVATEKEY|COOKIE|"
    "CONNECTION_?STRING|^(KUBECONFIG|KRB5CCNAME|XAUTHORITY|DATABASE_URL)$"
)
_VALUE = re.compile(
    r"://[^/\s@]*:[^/\s@]*@|-----BEGIN |\b(AKIA|ASIA)[0-9A-Z]{16}\b|\bgh[pousr]_\w{20}|"
    r"\bgithub_pat_|\bglpat-|\bxox[abprs]-|\bsk-[\w-]{20}|\bhf_\w{20}|\bAIza[\w-]{35}|"
    r"\beyJ[\w-]+\.eyJ[\w-]+\.|(?i:\b(password|pwd|accountkey|secret|token)=|\bbearer )"
)
_HARMLESS = frozenset(["PWD", "OLDPWD"])
_RULE = re.compile(r"-?[A-Za-z_*?][A-Za-z0-9_*?]*")

_KEEPER = re.compile(
    "(PATH|HOME|LANG|TZ|TMPDIR|TEMP|TMP|GLIBC_TUNABLES|VIRTUAL_ENV|CONDA_PREFIX)$|"
    "(LD|LC|PYTHON|MALLOC|ASAN|LSAN|TSAN|UBSAN|MSAN|COVERAGE|COV_CORE|HEADRACE)_?"
)


def is_credential(name: str, value: str) -> bool:
    """Return whether a variable of the environment looks like a credential."""
    upper = name.upper()
    if upper in _HARMLESS:
        return False
    parts = upper.split("_")
    return bool(_PARTS.intersection(parts) or _NAME.search(upper) or _VALUE.search(value))


def checked_rules(rules: Sequence[str], where: str = "") -> tuple[str, ...]:
    """Return rules for `passed`.

    Raises:
        ConfigError: one is no name.
    """
    for rule in rules:
        if not _RULE.fullmatch(rule):
            raise ConfigError(
                f"{rule!r} is no variable of the environment",
                where=where,
                expected="NAME to pass it to the worker, -NAME to hold it back; * and ? stand for "
                "letters",
            )
    return tuple(rules)


def passed(
    environment: Mapping[str, str], rules: Sequence[str] = ()
) -> tuple[dict[str, str], list[str]]:
    """Split an environment into the part for a worker, and the names of the rest.

    Args:
        environment: the application's.
        rules: `NAME` passes what looks like a credential, `-NAME` holds back what does not; the
            last one that fits decides.

    Returns:
        Its environment, and the names that are held back.
    """
    kept, held = {}, []
    for name, value in environment.items():
        goes = not is_credential(name, value)
        for rule in rules:
            if fnmatchcase(name, rule.removeprefix("-")):
                goes = not rule.startswith("-")
        if goes:
            kept[name] = value
        else:
            held.append(name)
    return kept, sorted(held)


def keeper_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Keep the variables that an interpreter starts with: a worker sees those of its parent."""
    kept, _ = passed({n: v for n, v in environment.items() if _KEEPER.match(n)})
    return kept
