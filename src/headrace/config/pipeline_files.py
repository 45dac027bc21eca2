"""`load_pipeline`: a Headrace pipeline file or a deepstream-app config."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from headrace._core.errors import ConfigError
from headrace._core.text import quoted
from headrace.config.document import Document, report
from headrace.config.file_kinds import kind_of
from headrace.config.neighbours import refuse_sibling
from headrace.config.reading import is_yaml, read_bytes

if TYPE_CHECKING:
    from headrace.config.enums import Generation
    from headrace.config.pipeline_spec import PipelineSpec


def load_pipeline(path: str | Path, *, generation: Generation | None = None) -> PipelineSpec:
    """Read a Headrace pipeline file or a deepstream-app config, INI or YAML.

    The files it names need not exist.

    Args:
        path: of the file.
        generation: release that a deepstream-app config is read as; None applies the keys of all
            releases.

    Returns:
        The pipeline; `notices` say what of the file is not applied, and why.

    Raises:
        ConfigError: the file cannot be read, is no pipeline, or something in it is refused (all of
            it is reported at once).
        ModelError: it is a model, or a file that stands in the place of one.
    """
    from headrace.config.pipeline_spec import build_spec
    from headrace.config.pipeline_yaml import parse_pipeline

    path = Path(path)
    data = read_bytes(path)
    kind = kind_of(data, path)
    if kind == "model":
        raise ConfigError(
            "this is one model's config, not a pipeline.",
            where=quoted(str(path), limit=None),
            expected="a file with sources, or a deepstream-app config",
            fix=quoted(f"run it with a source: headrace run {path} SOURCE", limit=None),
            code="wrong-file",
        )
    if kind != "pipeline":
        refuse_sibling(data, path)
    document = Document(path, "yaml" if is_yaml(path) else "ini")
    if kind == "app":
        from headrace.config.app.file import parse_app

        parts, document = parse_app(data, path, generation)
    elif is_yaml(path):
        parts = parse_pipeline(data, document)
    else:
        raise ConfigError(
            "this is no pipeline file.",
            where=quoted(str(path), limit=None),
            expected="a deepstream-app config with groups such as [source0] and [primary-gie], "
            "or a Headrace pipeline file, whose name ends in .yml or .yaml",
            code="wrong-file",
        )
    report(path, document.problems)
    return build_spec(parts, document)
