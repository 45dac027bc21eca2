"""`headrace show` of a config, and of a pipeline file with all of its models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace._core.errors import HeadraceError
from headrace.cli.output import echo, notice_rows, print_error, print_json, print_notices
from headrace.cli.tables import counted_layers, layers_of_network, print_layers
from headrace.config.enums import NetworkType
from headrace.diagnose.lint.dry_run import DryRun, dry_run
from headrace.infer.parsers import suggest

if TYPE_CHECKING:
    from headrace.config import ModelConfig
    from headrace.config.overrides import GivenKey

Row = Sequence[str]
"""Group, key, value, origin."""


@dataclass(frozen=True, slots=True)
class ConfigView:
    """Options of the view of a config.

    Attributes:
        set_only: values that nothing sets are left out.
        layers: every layer is listed.
        as_json: nothing is printed: the data is the output.
    """

    set_only: bool = False
    layers: bool = False
    as_json: bool = False

    def show(self, cfg: ModelConfig) -> tuple[dict[str, Any], int]:
        """Check a config without a run and print it.

        Returns:
            The same as JSON data, and the exit code of a run that would be refused, else 0.
        """
        rows = [r for r in cfg.effective() if not self.set_only or r[3] != "default"]
        checked = dry_run(cfg)
        facts = _facts(cfg, checked)
        network = checked.network
        listed = layers_of_network(network) if self.layers or checked.maker else []
        if not self.as_json:
            self._print(cfg, checked, rows, facts, listed)
        code = checked.problems[0].exit_code if checked.problems else 0
        data: dict[str, Any] = {"config": str(cfg.path), "values": _row_data(rows), "model": facts}
        data |= _found(checked.problems, checked.notices)
        if checked.maker is not None:
            failed = checked.not_made
            data["made by"] = {
                **asdict(checked.maker),
                "library": str(checked.maker.library),
                "not_made": None if failed is None else str(failed),
            }
        if listed:
            data["layers"] = listed
        return data, code

    def _print(
        self,
        cfg: ModelConfig,
        checked: DryRun,
        rows: Sequence[Row],
        facts: dict[str, list[str]],
        listed: list[dict[str, object]],
    ) -> None:
        _print_values(rows, str(cfg.path))
        for name, values in facts.items():
            echo(f"{name}: {', '.join(values) or 'none'}")
        if listed:
            echo(f"layers: {counted_layers(listed, shown=self.layers)}")
            if self.layers:
                print_layers(listed)
        print_notices(checked.notices)
        _print_problems(checked.problems)


def show_pipeline(path: Path, settings: Sequence[GivenKey], view: ConfigView) -> int:
    """Show a pipeline file or a deepstream-app config: its own values, then each model.

    Returns:
        The exit code of a run that would be refused, else 0.

    Raises:
        ConfigError: the file is refused.
    """
    from headrace.config import load_pipeline
    from headrace.diagnose.lint.checks.together import pipeline_checks

    spec = load_pipeline(path).with_models_overridden(settings)
    rows = [r for r in spec.effective() if not view.set_only or r[3] != "default"]
    if not view.as_json:
        _print_values(rows, str(path))
    models, codes, configs, problems = [], [], [], list[HeadraceError]()
    for model in spec.models:
        try:
            cfg = model.load()
        except HeadraceError as error:
            problems.append(error)
            continue
        if not view.as_json:
            echo()
        data, code = view.show(cfg)
        models.append(data)
        codes.append(code)
        configs.append(cfg)
    notices = list(pipeline_checks(spec, configs, problems))
    codes += [problem.exit_code for problem in problems]
    if view.as_json:
        findings = _found(problems, notices)
        print_json({"pipeline": str(path), "values": _row_data(rows), "models": models, **findings})
    else:
        print_notices(notices)
        _print_problems(problems)
    return next((code for code in codes if code), 0)


def _row_data(rows: Sequence[Row]) -> list[dict[str, str]]:
    return [dict(zip(("group", "key", "value", "origin"), row, strict=True)) for row in rows]


def _found(problems: Sequence[HeadraceError], notices: Sequence[Any]) -> dict[str, Any]:
    return {"problems": [str(p) for p in problems], "notices": notice_rows(notices)}


def _print_problems(problems: Sequence[HeadraceError]) -> None:
    for problem in problems:
        print_error(str(problem), "headrace run would refuse: ")


def _facts(cfg: ModelConfig, checked: DryRun) -> dict[str, list[str]]:
    """The model's inputs and outputs, the parsers that fit, the one that decodes."""
    facts = _maker_facts(checked)
    if checked.inputs:
        facts["inputs"] = [str(s) for s in checked.inputs]
        facts["outputs"] = [str(s) for s in checked.outputs]
        if cfg.network_type is NetworkType.DETECTOR:
            fits = suggest(checked.outputs, checked.image, cfg.num_detected_classes)
            facts["built-in parsers that fit"] = fits
    facts["parser"] = [checked.parser] if checked.parser else []
    return facts


def _maker_facts(checked: DryRun) -> dict[str, list[str]]:
    """The network that a function of the custom library makes: its origin and its contents."""
    maker = checked.maker
    if maker is None:
        return {}
    there = "makes the network" if maker.there else "is not there"
    from_code = f"{maker.function} of {maker.library.name} ({maker.kind}) {there}"
    if maker.there and not maker.callable_here:
        from_code = f"{maker.function} of {maker.library.name} ({maker.kind}) cannot be called here"
    facts = {"network": [from_code], "signature": [f"{maker.signature} ({maker.reason})"]}
    if maker.evidence:
        facts["library"] = list(maker.evidence)
    if checked.not_made is not None:
        # as a problem it is shown whole
        failed = checked.not_made
        facts["not made"] = [f"{failed.where}: {failed:brief}" if failed in checked.problems
                             else str(failed)]  # fmt: skip
    elif maker.there and checked.network is not None:
        counts = checked.network.summary().operators.items()
        facts["operators"] = [f"{count} {name}" for name, count in counts]
    return facts


def _print_values(rows: Sequence[Row], path: str) -> None:
    """Values in three columns; an origin in the config itself is its line only."""
    own = f"{Path(path).name}:"
    texts = [
        (g, key, value, origin.replace(origin[: origin.rfind(own) + len(own)], "line "))
        if own in origin
        else (g, key, value, origin)
        for g, key, value, origin in rows
    ]
    wide = max((len(key) for _, key, _, _ in texts), default=0)
    values = min(40, max((len(value) for _, _, value, _ in texts), default=0))
    echo(path)
    group = None
    for g, key, value, origin in texts:
        if g != group:
            echo(f"[{g}]")
            group = g
        echo(f"  {key:<{wide}}  {value:<{values}}  {origin}".rstrip())
