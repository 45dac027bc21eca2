"""Bring the generated pages and the JSON schema of pipeline files up to date: `make schema`."""

from __future__ import annotations

from pathlib import Path

from docs._ext import (
    api_pages,
    app_keys,
    command_options,
    conformance,
    elements,
    key_tables,
    lint_rules,
    pipeline_schema,
    plugin_clauses,
    pyds_names,
    rooms,
    standard_plugins,
    tensorrt_names,
    tracker_keys,
)

DOCS = Path(__file__).parents[1]


def main() -> None:
    """Write every generated text where it belongs."""
    texts = {
        pipeline_schema.SCHEMA_FILE: pipeline_schema.schema_text(),
        DOCS / "app-keys.md": app_keys.page(),
        DOCS / "elements.md": elements.page(),
        DOCS / "conformance.md": conformance.page(),
        DOCS / "lint-rules.md": lint_rules.page(),
        DOCS / "pyds-names.md": pyds_names.page(),
        DOCS / "standard-plugins.md": standard_plugins.page(),
        DOCS / "tracker-files.md": tracker_keys.page(),
    }
    for name, tables in (
        ("configuration.md", key_tables.model_tables()),
        ("pipeline-files.md", key_tables.pipeline_tables()),
    ):
        texts[DOCS / name] = key_tables.rewritten((DOCS / name).read_text("utf-8"), tables)
    texts[DOCS / "architecture.md"] = rooms.rewritten((DOCS / "architecture.md").read_text("utf-8"))
    texts[DOCS / "trt.md"] = tensorrt_names.rewritten((DOCS / "trt.md").read_text("utf-8"))
    texts |= {DOCS / "api" / name: text for name, text in api_pages.pages().items()}
    for path in (DOCS / "cli").glob("*.md"):
        if path.stem != "index":
            text = plugin_clauses.rewritten(path.read_text("utf-8"))
            texts[path] = command_options.command_page(path.stem, text)
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
