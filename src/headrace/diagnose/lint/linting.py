"""Linting of files: each is read as a run would read it, and everything found is a finding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from headrace._core.errors import ConfigError, HeadraceError
from headrace._core.findings import Finding
from headrace._core.formats.archives import is_bare_model, model_file
from headrace.config import ModelConfig, load_pipeline
from headrace.config.dewarper_file import load_dewarper
from headrace.config.enums import ProcessMode
from headrace.config.file_kinds import file_kind
from headrace.config.overrides import GivenKey, distributed
from headrace.diagnose.lint.catalogue import Severity
from headrace.diagnose.lint.checks.model import model_checks, weight_checks
from headrace.diagnose.lint.checks.target import target_checks
from headrace.diagnose.lint.checks.together import pipeline_checks, together_checks
from headrace.diagnose.lint.checks.values import value_checks
from headrace.diagnose.lint.dry_run import DryRun, dry_run
from headrace.diagnose.lint.findings import LintFinding, forget_lines, of_error, of_notices, tidy
from headrace.diagnose.lint.frames import frame_findings
from headrace.diagnose.lint.subject import CheckedConfig, files_to_check, is_something_else
from headrace.diagnose.lint.targets import Target
from headrace.engine.backends import DEFAULT_BACKEND
from headrace.infer.recognise.recognise import recognise
from headrace.infer.record import was_tried
from headrace.infer.run_options import RunOptions
from headrace.infer.trial import tried_changes
from headrace.network import network_from_onnx
from headrace.pipeline.analytics import load_rules
from headrace.plugins.lookup import unknown_error
from headrace.plugins.registry import known_plugins

if TYPE_CHECKING:
    from headrace.config.dewarper_file import DewarperConfig
    from headrace.pipeline.analytics import AnalyticsRules


def _of_values(
    found: Sequence[LintFinding], refused: Sequence[ConfigError], path: Path
) -> list[LintFinding]:
    """The refusals of a config's values, and the findings about its other lines.

    Those without a line may come from the default that a refused value left in its place.
    """
    refusals = [finding for error in refused for finding in of_error(error, path)]
    lines = {(finding.place.path, finding.place.line) for finding in refusals}
    rest = [f for f in found if f.place.line and (f.place.path, f.place.line) not in lines]
    return refusals + rest


def _alone(path: Path) -> Iterator[Finding]:
    """Warn of a model that does not run on images without a config."""
    try:
        recognise(path, save=False)
    except HeadraceError as error:
        prefix = "without a config headrace run refuses it: "
        yield error.finding.changed(code="bare-refused", level="warning", prefix=prefix)


@dataclass
class LintReport:
    """The outcome of a linting.

    Attributes:
        files: the configs, pipeline files and models that were checked.
        left_out: files among several that are no configs, such as labels beside them.
        findings: sorted by file and line.
    """

    files: list[Path] = field(default_factory=list)
    left_out: list[Path] = field(default_factory=list)
    findings: list[LintFinding] = field(default_factory=list)

    def count(self, severity: Severity) -> int:
        """Count the findings of one severity."""
        return sum(finding.severity == severity for finding in self.findings)

    def chosen(self, select: Sequence[str] = (), ignore: Sequence[str] = ()) -> LintReport:
        """A report with the findings of some rules; `select` without any takes all."""
        kept = [
            f for f in self.findings if (not select or f.code in select) and f.code not in ignore
        ]
        return LintReport(self.files, self.left_out, kept)


class Linter:
    """Lints files one after the other.

    Args:
        target: the generation of the original that configs are checked for, too; None for none.
        given: keys of the command line, set over the configs as `headrace run` does.
        source: a video, image or folder of images that the models run on; None runs nothing.
        options: of that run.
    """

    def __init__(
        self,
        target: Target | None = None,
        given: Sequence[GivenKey] = (),
        *,
        source: Path | None = None,
        options: RunOptions | None = None,
    ) -> None:
        self.target = target
        self.given = given
        self.source, self.options = source, options or RunOptions()
        self.report = LintReport()
        self._found: list[LintFinding] = []

    def lint(self, paths: Sequence[Path], *, together: bool = False) -> LintReport:
        """Lint files, and all configs and pipeline files in folders.

        Without a source nothing is built, saved or fetched. Custom libraries are loaded as a run
        loads them.

        Args:
            paths: configs, pipeline files, deepstream-app configs, rules of `nvdsanalytics`, ONNX
                models, folders.
            together: the configs are the models of one pipeline, in this order.

        Raises:
            ConfigError: a folder has no config; a key of the command line is refused.
        """
        forget_lines()
        single: list[Path] = []
        for path in files_to_check(paths, self._left if len(paths) > 1 else None):
            kind = file_kind(path)
            if kind is None and len(paths) > 1 and path.is_file() and is_something_else(path):
                self.report.left_out.append(path)
                continue
            self.report.files.append(path)
            if is_bare_model(path) and kind != "model":
                self._model(path)
            elif kind in ("pipeline", "app"):
                self._pipeline(path)
            elif kind == "analytics":
                self._analytics(path)
            else:
                single.append(path)
        configs = list(self._configs(single))
        if together:
            self._add(together_checks(configs, None), paths[0])
            self._run(configs)
        else:
            for cfg in configs:
                self._run([cfg])
        self.report.findings = tidy(self._found)
        return self.report

    def _add(self, notices: Iterable[Finding], config: Path) -> None:
        self._found += of_notices(notices, config)

    def _left(self, error: HeadraceError, path: Path) -> None:
        """Count a path that cannot be checked, and report its error."""
        self.report.files.append(path)
        self._refused(error, path)

    def _refused(self, error: HeadraceError, config: Path) -> None:
        self._add(error.notices, config)
        self._found += of_error(error, config)

    def _run(self, configs: Sequence[ModelConfig]) -> None:
        """Run models on the source; findings that were tried on it go before those of files."""
        first = configs[0] if configs else None
        if self.source is None or first is None:
            return
        if first.process_mode is not ProcessMode.PRIMARY:  # a run infers on nothing, and says so
            self._add(together_checks(configs, None), first.path)
            return
        guesses = [
            [
                f.finding for f in self._found
                if f.config == cfg.path and tried_changes(f.finding) and not was_tried(f.data)
            ]
            for cfg in configs
        ]  # fmt: skip
        notices, error = frame_findings(configs, self.source, self.options, guesses)
        findings = of_notices(notices, first.path)
        if error is not None:
            findings += of_error(error, first.path)
        self._found = [*sorted(findings, key=lambda f: not was_tried(f.data)), *self._found]

    def _configs(self, paths: Sequence[Path]) -> Iterator[ModelConfig]:
        overrides = distributed(self.given, [path.name for path in paths]) if paths else []
        for path, lines in zip(paths, overrides, strict=True):
            refused: list[ConfigError] = []
            try:
                cfg = ModelConfig.load(path, lines, refused=refused)
            except HeadraceError as error:
                self._refused(error, path)
                continue
            before = self._found
            self._found = []
            self._config(cfg)
            if refused:
                self._found = _of_values(self._found, refused, path)
            self._found = before + self._found
            if not refused:
                yield cfg

    def _config(self, cfg: ModelConfig) -> None:
        checked = CheckedConfig(cfg, dry_run(cfg))
        notices = list(checked.dry.notices)
        notices += value_checks(checked)
        notices += model_checks(checked)
        if self.target is not None:
            notices += target_checks(checked, self.target)
            if any(n.code == "target-unique-id" for n in notices):
                notices = [n for n in notices if n.code != "unique-id-absent"]
        self._add(notices, cfg.path)
        for error in (*checked.dry.problems, *checked.problems):
            self._refused(error, cfg.path)
        checked.dry.close()

    def _pipeline(self, path: Path) -> None:
        configs, problems = [], list[HeadraceError]()
        try:
            spec = load_pipeline(path).with_models_overridden(self.given)
        except HeadraceError as error:
            self._refused(error, path)
            return
        if spec.analytics is not None:
            self._analytics(spec.analytics)
        for dewarper in dict.fromkeys(source.dewarper for source in spec.sources):
            if dewarper is not None:
                self._dewarper(dewarper)
        for model in spec.models:
            try:
                cfg = model.load()
            except HeadraceError as error:
                self._refused(error, path)
                continue
            self._config(cfg)
            configs.append(cfg)
        self._add(pipeline_checks(spec, configs, problems), path)
        self._run(configs)
        for problem in problems:
            self._refused(problem, path)

    def _analytics(self, path: Path) -> None:
        self._settings(load_rules, path)

    def _dewarper(self, path: Path) -> None:
        self._settings(load_dewarper, path)

    def _settings(
        self, load: Callable[[Path], AnalyticsRules | DewarperConfig], path: Path
    ) -> None:
        try:
            self._add(load(path).notices, path)
        except HeadraceError as error:
            self._refused(error, path)

    def _model(self, path: Path) -> None:
        """Check a model without a config: its file, its inputs, its operators, its weights."""
        try:
            network = network_from_onnx(model_file(path), of_images=True)
        except HeadraceError as error:
            self._refused(error, path)
            return
        unknown = unknown_error(network, DEFAULT_BACKEND, known_plugins(), str(path))
        if unknown is not None:
            self._refused(unknown, path)
        elif self.source is None:
            self._add(_alone(path), path)
        cfg = ModelConfig().of_model(path, ())
        self._add(weight_checks(CheckedConfig(cfg, DryRun(network=network))), path)
        if self.source is not None:
            try:
                self._run([ModelConfig.load(path)])
            except HeadraceError as error:
                self._refused(error, path)
