"""Building the engine of a config, and saving it where no other engine is lost."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

from headrace._core.errors import EngineError
from headrace._core.files import locked, os_reason
from headrace._core.findings import Finding
from headrace._core.text import printable
from headrace.engine.builder import BuildOptions, build
from headrace.engine.plan import Plan, is_plan_file
from headrace.infer.model import engine_files
from headrace.infer.model.engine_search import EngineSearch
from headrace.infer.model.image_input import image_range, network_dims
from headrace.infer.model.network_source import no_model
from headrace.infer.model.requirement import Mismatch
from headrace.network.network import Network
from headrace.plugins.lookup import UnknownOperatorsError

_log = logging.getLogger("headrace.engine")


class EngineBuilding:
    """Builds and saves the engine that a search did not find.

    Args:
        search: finds the engine that another process built meanwhile; its notices are appended to.
        options: threads, streams and progress of the build.
        save: False keeps the engine in memory.
    """

    def __init__(self, search: EngineSearch, options: BuildOptions, *, save: bool = True) -> None:
        self.cfg = search.cfg
        self.requirement = search.requirement
        self.notices = search.notices
        self._search = search
        self._options = options
        self._save = save

    def build_and_save(self, *, rebuild: bool) -> Plan:
        """Build the engine and save it beside the model; keep it in memory where that fails.

        Args:
            rebuild: True builds even if another process saved a valid engine meanwhile.

        Raises:
            ModelError, EngineError, ConfigError, CustomLibraryError: as `load_or_build`.
        """
        source = self.requirement.source
        if source is None:
            raise no_model(self.cfg)
        with self._target_held() as (target, held):
            if held and not rebuild:
                # another process may have built it while this one waited
                candidate = self._search.try_file(target) if target and target.exists() else None
                if isinstance(candidate, Plan):
                    if not self.cfg.input_tensor_from_meta:
                        network_dims(candidate.inputs[0], self.cfg)
                    self._search.note_found(candidate)
                    return candidate
            network = source.network()
            self.notices += source.notices
            if not self.cfg.input_tensor_from_meta:
                network_dims(network.inputs[0], self.cfg)
            plan = self._build(network)
            if target is None:
                self.notices.append(
                    Finding("engine-built", "info", "built, kept in memory", str(source.model))
                )
                return plan
            kept = self._make_room(target)
            aside = f"; the engine before is kept as {kept.name}" if kept else ""
            try:
                plan.write(target)
            except EngineError as error:
                text = f"{error:brief}; built at each start and kept in memory{aside}"
                self.notices.append(Finding("engine-not-saved", "warning", text, str(target)))
            else:
                text = f"built from {source.model.name}{aside}"
                named = re.findall(r"_(gpu\d+)_", target.name)
                if named and self.requirement.choice.device != "cuda":
                    text += f"; it runs on the CPU: {named[-1]} in its name is no GPU, but the "
                    text += "key gpu-id, as the original names engines"
                self.notices.append(Finding("engine-built", "info", text, str(target)))
        return plan

    def _build(self, network: Network) -> Plan:
        requirement, choice = self.requirement, self.requirement.choice
        options = replace(
            self._options,
            max_batch=requirement.batch,
            precision=requirement.precision,
            exact=True,
            rules=requirement.decision.rules,
            dynamic_batch=choice.dynamic_batch,
            infer_dims=requirement.infer_dims,
            input_order=requirement.order,
            runtime=choice.built_for if choice.device == "cuda" else choice.runtime,
            tactic=choice.tactic,
            tuning=choice.tuning,
            time_int8=True,
            image_range=image_range(self.cfg),
        )
        try:
            return build(network, options)
        except UnknownOperatorsError as error:
            # only a failed build pays for reading the custom library once more
            from headrace.custom.plugin_library import plugin_hints

            raise error.with_hints(plugin_hints(self.cfg.custom_lib_path)) from error.__cause__

    @contextmanager
    def _target_held(self) -> Iterator[tuple[Path | None, bool]]:
        """Lock the free target; another one if it is taken by the time the lock is held.

        Yields:
            See `_free_target`, and True if the lock is held.
        """
        target = self._free_target(self.notices)
        while True:

            def on_wait(target: Path | None = target) -> None:
                text = "waited for another process that was building it"
                self.notices.append(Finding("engine-waited", "info", text, str(target)))
                _log.warning(
                    "%s: another process is building this engine: waiting for it",
                    printable(str(target)),
                )

            with locked(target, on_wait=on_wait) if target else nullcontext(False) as held:
                still = self._free_target([]) if held else target
                if still == target:
                    yield target, held
                    return
            target = still

    def _free_target(self, notices: list[Finding]) -> Path | None:
        """Choose where to save; None keeps the engine in memory.

        Never a file that headrace did not write, nor one that serves another config.
        """
        if not self._save:
            return None
        usual, beside = self._search.targets(self.requirement.decision.kind)
        for target, instead in ((usual, f"saved as {beside.name}"), (beside, "kept in memory")):
            try:
                free = not (target.exists() or target.is_symlink())
            except OSError as error:  # the name of the engine is too long where the model's is not
                text = f"{os_reason(error)}: headrace's engine is {instead}"
                notices.append(Finding("engine-not-saved", "warning", text, str(target)))
                continue
            if free:
                return target
            if is_plan_file(target):
                candidate = self._search.try_file(target)
                if isinstance(candidate, Mismatch) and candidate.kind == "content":
                    return engine_files.keyed(target, self.requirement.content)
                return target
            try:
                Plan.load(target)
            except EngineError as error:
                text = f"{error:brief}: not overwritten, headrace's engine is {instead}"
                notices.append(Finding("engine-not-saved", "warning", text, str(target)))
        return None

    def _make_room(self, target: Path) -> Path | None:
        """Set aside an engine at `target` that is as good, only run another way; return where."""
        candidate = self._search.try_file(target) if is_plan_file(target) else None
        if isinstance(candidate, Mismatch) and candidate.kind == "choice":
            return engine_files.set_aside(target)
        return None
