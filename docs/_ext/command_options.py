"""The end of each page of docs/cli: usage, and options that the page does not describe."""

from __future__ import annotations

import re
import textwrap

import click

from headrace import cli

BEGIN = "<!-- options: written by make schema -->"


def command_page(name: str, text: str) -> str:
    """Return a page of a command with its end written anew."""
    group = cli.main
    assert isinstance(group, click.Group)
    context = click.Context(group, info_name="headrace")
    command = group.get_command(context, name)
    assert command is not None
    settings = command.context_settings
    inner = click.Context(command, info_name=name, parent=context, **settings)
    own = text.partition(BEGIN)[0].rstrip()
    described = _described(own)
    options = [p for p in command.params if isinstance(p, click.Option) and not p.hidden]
    rest = [o for o in options if not (set(o.opts) & described)]
    heading = "Other options" if described else "Options"
    usage = " ".join(["headrace", name, *command.collect_usage_pieces(inner)])
    lines = [own, "", BEGIN, "", f"## {heading}", "", f"    {usage}", ""]
    for option in rest:
        record = option.get_help_record(inner)
        if record is None:
            continue
        term, meaning = record
        lines += [f"`{term}`", *_definition(meaning), ""]
    names = inner.help_option_names  # click keeps the option of the first context that asked
    if names and not set(names) & described:
        lines += [f"`{', '.join(names)}`", ": Show this message and exit.", ""]
    return "\n".join(lines)


def _described(text: str) -> set[str]:
    """Return the options that have an entry of their own on a page."""
    terms = re.findall(r"(?m)^(`-[^\n]*)\n: ", text)
    return {name for term in terms for name in re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", term)}


def _definition(meaning: str) -> list[str]:
    text = re.sub(r"\s+", " ", meaning).replace("*", "\\*").replace("<", "\\<")
    text = text.replace("{", "\\{").replace("[", "\\[")
    wrapper = textwrap.TextWrapper(98, ": ", "  ", break_on_hyphens=False)
    return wrapper.wrap(text or "…")
