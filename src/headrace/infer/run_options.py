"""The options of a run, each declared once: for the command line, for programs, and for both texts.

A field of `RunOptions` names the commands and the functions that take it. `cli/options.py` makes
click options of the fields; `scripts/run_options.py` writes arguments and their documentation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from headrace.config import ModelConfig
    from headrace.config.enums import Generation
    from headrace.config.overrides import GivenKey
    from headrace.config.profile import Profile
    from headrace.custom.guard import GuardMode

Abi = Literal["auto", "24", "28"]
Palette = Literal["auto", "config"]

_OPENING = "run serve batch eval explain compare record bench"  # commands that open models
_READING = "show lint"  # commands that check what would be opened
_PROGRAMS = "open_pipeline from_config batch evaluate compare"
_WITH_KEYS = "open_pipeline from_config batch"


class RunOption(NamedTuple):
    """Declaration of an option.

    Attributes:
        help: for the command line.
        text: for the documentation of a function's argument.
        commands, functions: names of those that take it.
        choices: all that it may be; empty where it is no choice.
        least, most: bounds of a number.
        metavar: what the command line shows for a text; empty where it is no text.
    """

    help: str
    text: str
    commands: frozenset[str]
    functions: frozenset[str]
    choices: tuple[str, ...] = ()
    least: int | None = None
    most: int | None = None
    metavar: str = ""


def _option(
    *, text: str, functions: str, help: str = "", commands: str = "", **rest: Any
) -> dict[str, RunOption]:
    """Declare the option of a field."""
    names = frozenset(commands.split()), frozenset(functions.split())
    return {"option": RunOption(help, text, *names, **rest)}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Options of a run beside those in its files; each field has its own text."""

    threads: int | None = field(
        default=None,
        metadata=_option(
            help="CPU threads of each engine.",
            commands=f"{_OPENING} repair build calibrate",
            text="CPU threads of each engine; None is one per core.",
            functions=_PROGRAMS,
            least=1,
            most=1024,
        ),
    )
    streams: int | None = field(
        default=None,
        metadata=_option(
            help="Batches run at once, sharing the threads. Default: one per thread, at most 4, or "
            "1 for live sources.",
            commands="run serve batch eval bench",
            text="batches that each engine runs at once, sharing its threads; None is what it was "
            "tuned for, else one per thread, at most 4, and 1 for live sources.",
            functions="open_pipeline from_config batch evaluate",
            least=1,
            most=64,
        ),
    )
    device: str = field(
        default="auto",
        metadata=_option(
            help="Where engines run and videos are decoded",
            commands=f"{_OPENING} repair build",
            text="where engines run and videos are decoded: `auto` takes an NVIDIA GPU that is "
            "there and that the runtime can use; `cpu`, `cuda`, `cuda:N`.",
            functions=_PROGRAMS,
        ),
    )
    limit: int | None = field(
        default=None,
        metadata=_option(
            help="Stop each source after this many frames.",
            commands="run batch",
            text="frames of each source.",
            functions="open_pipeline batch",
            least=1,
        ),
    )
    abi: Abi | None = field(
        default=None,
        metadata=_option(
            help="Bytes per box of a C++ parser (24: DeepStream 5 to 8, 28: 9). Default: detect.",
            commands=f"{_OPENING} {_READING}",
            text="bytes per box of a C++ parser, `24` (DeepStream 5 to 8), `28` (9) or `auto`, "
            "which detects it; None takes each config's `custom-lib-abi`.",
            functions=_PROGRAMS,
            choices=("auto", "24", "28"),
        ),
    )
    guard: GuardMode | None = field(
        default=None,
        metadata=_option(
            help="Run custom libraries in worker processes, so that their crashes are survived. "
            "auto: C++ libraries that are not trusted yet (headrace trust). Default: the config's "
            "custom-lib-guard, or auto.",
            commands=f"{_OPENING} {_READING} repair build calibrate",
            text="whether custom libraries run in worker processes, so that their crashes are "
            "survived: `auto` guards C++ libraries that are not trusted yet, `always` guards "
            "Python files, too, `never` guards none; None takes each config's `custom-lib-guard`.",
            functions=_PROGRAMS,
            choices=("auto", "always", "never"),
        ),
    )
    guard_env: str | None = field(
        default=None,
        metadata=_option(
            help="Variables of the environment, separated by commas: NAME gives worker processes "
            "what looks like a credential, -NAME holds another one back; * and ? stand for "
            "letters. Default: the config's custom-lib-guard-env.",
            commands=f"{_OPENING} {_READING} build calibrate",
            text="variables of the environment, separated by commas, for libraries in worker "
            "processes: `NAME` passes what looks like a credential, `-NAME` holds another one "
            "back, `*` and `?` stand for letters; None takes each config's "
            "`custom-lib-guard-env`.",
            functions=_PROGRAMS,
            metavar="NAMES",
        ),
    )
    profile: Profile | None = field(
        default=None,
        metadata=_option(
            help="Whose rules scale images and place boxes where the config's keys leave it open: "
            "those of the original, or those that models are trained with. Default: the config's "
            "profile, or nvinfer.",
            commands=f"{_OPENING} {_READING} calibrate",
            text="whose rules apply where the configs' keys leave them open: `nvinfer` for those "
            "of the original, `modern` for those that models are trained with; None takes each "
            "config's `profile`.",
            functions=_PROGRAMS,
            choices=("nvinfer", "modern"),
        ),
    )
    generation: Generation | None = field(
        default=None,
        metadata=_option(
            help="Whose rules apply where releases differ; a config without gie-unique-id is "
            "refused, as there. Default: 9.1's rules, and the first free number.",
            commands=f"{_OPENING} repair",
            text="whose rules apply where releases of the original differ, `9.1` or `6.2`; a "
            "config without `gie-unique-id` is refused, as there. None: those of `9.1`, and the "
            "first free number.",
            functions=_PROGRAMS,
            choices=("9.1", "6.2"),
        ),
    )
    palette: Palette = field(
        default="auto",
        metadata=_option(
            help="Box colours: one per class where the config sets none, or exactly the config's.",
            commands="run serve batch",
            text="box colours: `auto` gives each class its own where the config sets none, "
            "`config` takes exactly the config's; a `painter` has its own.",
            functions="open_pipeline batch",
            choices=("auto", "config"),
        ),
    )
    rebuild: bool = field(
        default=False,
        metadata=_option(
            help="Build engines even if valid ones are saved.",
            commands="run serve batch build",
            text="build engines even if valid ones are saved.",
            functions="open_pipeline from_config batch",
        ),
    )
    parser: Callable[..., Any] | None = field(
        default=None,
        metadata=_option(
            text="a function `(layers, network, params)` instead of the parser of the only config.",
            functions="open_pipeline from_config",
        ),
    )
    clip_to_roi: bool = field(
        default=True,
        metadata=_option(
            text="cut objects at the edges of the region that a caller's tensor shows.",
            functions="from_config",
        ),
    )
    sharing: int = field(
        default=1, metadata=_option(text="processes that share the GPU.", functions="")
    )

    @property
    def rules(self) -> Generation:
        """The asked release, or the newest; it decides where releases of the original disagree."""
        return self.generation or "9.1"

    @classmethod
    def of(
        cls, function: Callable[..., Any], values: Mapping[str, Any]
    ) -> tuple[RunOptions, list[GivenKey]]:
        """Read the arguments of a function that takes options.

        Args:
            function: one of those that the fields name.
            values: of its arguments, by their names: its `locals()` as it begins.

        Returns:
            The options, and the keys of a config.

        Raises:
            ConfigError: there is no such key, or a value is refused.
        """
        from headrace.config.overrides import given_keywords  # commands list options without it

        options = cls(**{name: values[name] for name in _names(function)})
        if function.__name__ not in KEY_OPTIONS["keys"].functions:
            return options, []
        named = {name: values[name] for name in ("conf", "labels") if values[name] is not None}
        others = [name for name in signature(function).parameters if name != "keys"]
        return options, given_keywords(named | dict(values["keys"]), others)

    def arguments(self, function: Callable[..., object]) -> dict[str, Any]:
        """Return the options that a function takes as its keyword arguments."""
        return {name: getattr(self, name) for name in _names(function)}

    def keys(self) -> list[GivenKey]:
        """Return those that stand for keys of a config, as lines over every config."""
        from headrace.config.overrides import EVERY, given_line

        names = {
            "profile": "profile",
            "abi": "custom-lib-abi",
            "guard": "custom-lib-guard",
            "guard_env": "custom-lib-guard-env",
        }
        values = {name: getattr(self, name) for name in names}
        values["guard_env"] = self.guard_env and self.guard_env.replace(",", ";")
        return [
            given_line(f"{names[name]}={value}", option_name(name))._replace(number=EVERY)
            for name, value in values.items()
            if value is not None
        ]

    def for_model(self, cfg: ModelConfig) -> ModelConfig:
        """Copy a config with the options that its model is opened with, and that are keys alone."""
        keys: dict[str, Any] = {}
        if self.profile is not None:
            keys["profile"] = self.profile
        if self.guard_env is not None:
            keys["custom_lib_guard_env"] = tuple(filter(None, self.guard_env.split(",")))
        return cfg.with_overrides(**keys) if keys else cfg

    def over(self, cfg: ModelConfig) -> ModelConfig:
        """Copy a config with the options that stand for keys of it."""
        from headrace.config.overrides import combined

        return combined(self.keys()).on(cfg)


def option_name(field: str) -> str:
    """Return the name that the command line has for a field."""
    return f"--{field.replace('_', '-')}"


def declared() -> dict[str, RunOption]:
    """Return the declaration of each field, by its name."""
    return {f.name: f.metadata["option"] for f in fields(RunOptions)}


def _names(function: Callable[..., object]) -> list[str]:
    """Names of the options that a function takes."""
    return [name for name, o in declared().items() if function.__name__ in o.functions]


KEY_OPTIONS = {
    "keys": RunOption(
        help="Set a key of the config, as batch-size=4, class-attrs-2.topk=5 or, to hide classes, "
        "'filter-out-class-ids=1;2'; repeatable. N says which of several configs, from 1.",
        commands=frozenset(
            f"{_OPENING} {_READING} build calibrate replay init trace-plugins check-plugin".split()
        ),
        text="keys that win over the only config's, with `_` for `-`, of `[class-attrs-all]` too; "
        'of a class: `**{"class-attrs-2.topk": 5}`. None leaves the config\'s. Paths are relative '
        "to the working directory. Of several configs, set them on each: "
        "`ModelConfig.load(path).with_overrides(conf=0.4)`.",
        functions=frozenset(_WITH_KEYS.split()),
    ),
    "conf": RunOption(
        help="Smallest confidence of what is found, 0 to 1: sets the threshold that decides.",
        commands=frozenset(f"{_OPENING} {_READING} calibrate replay".split()),
        text="smallest confidence, 0 to 1, of the only config: sets the threshold that decides for "
        "its network type.",
        functions=frozenset(_WITH_KEYS.split()),
    ),
    "labels": RunOption(
        help="Label file instead of the config's.",
        commands=frozenset(f"{_OPENING} {_READING} calibrate replay".split()),
        text="label file instead of the only config's.",
        functions=frozenset(_WITH_KEYS.split()),
    ),
}
"""What is set over a config's keys beside the options: every key, and two by names of their own."""
