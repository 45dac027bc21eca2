"""`headrace eval`: how good configs are on images with truth, side by side."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.options import run_options
from headrace.cli.output import (
    FiniteRange,
    echo,
    print_error,
    print_json,
    print_notices,
    print_table,
    stdout_is_for_results,
)
from headrace.cli.progress import RunProgress

if TYPE_CHECKING:
    from headrace.config.overrides import GivenKey
    from headrace.diagnose.evaluate import DetectionScores, EvaluationReport
    from headrace.diagnose.evaluate.datasets import Dataset
    from headrace.infer.run_options import RunOptions

EXIT_BELOW = 8
_SHOWN_CLASSES = 40
_GATES = {"map50": "mAP50", "map": "mAP50-95", "accuracy": "top-1", "miou": "mIoU"}

EPILOG = """\b
Examples:
  headrace eval config_infer_primary.txt --coco val.json --images val/
  headrace eval fp32.txt int8.txt --yolo data.yaml -o report.html
  headrace eval config_infer_primary.txt --voc VOC2012 --split val --map "car=vehicle"
  headrace eval classifier.txt --folders val/ --min-accuracy 0.9
  headrace eval segmentation.txt --masks masks/ --images images/ --json
  headrace eval out.jsonl other.txt --tracks gt.txt
"""


def _gate(name: str, text: str) -> Callable[..., Any]:
    return click.option(
        f"--min-{name}",
        type=FiniteRange(0, 1),
        help=f"Exit with {EXIT_BELOW} if {text} of any config is below this.",
    )


@click.command(epilog=EPILOG)
@click.argument("configs", nargs=-1, required=True, type=click.Path(path_type=Path),
                metavar="CONFIG…")  # fmt: skip
@click.option("--coco", type=click.Path(path_type=Path), metavar="JSON",
              help="Truth in COCO's JSON: boxes, masks, crowds.")  # fmt: skip
@click.option("--yolo", type=click.Path(path_type=Path), metavar="YAML",
              help="A data.yaml in YOLO's layout.")  # fmt: skip
@click.option("--voc", type=click.Path(path_type=Path), metavar="DIR",
              help="A folder of Pascal VOC: Annotations, JPEGImages.")  # fmt: skip
@click.option("--folders", type=click.Path(path_type=Path), metavar="DIR",
              help="For classifiers: a folder of images for each class.")  # fmt: skip
@click.option("--masks", type=click.Path(path_type=Path), metavar="DIR",
              help="For segmentations: PNG files whose values are the classes.")  # fmt: skip
@click.option("--tracks", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="True tracks; then CONFIGs are results: MOTChallenge's text or "
              "JSON Lines.")  # fmt: skip
@click.option("--images", multiple=True, type=click.Path(path_type=Path), metavar="DIR",
              help="Where the images are; repeatable. With --coco also one video, whose frames "
              "the JSON describes.")  # fmt: skip
@click.option("--split", metavar="NAME",
              help="Part of the data set. Default: val of --yolo, all of --voc.")  # fmt: skip
@click.option("--names", type=click.Path(path_type=Path), metavar="FILE",
              help="Names of the masks' classes, one a line. Default: the model's.")  # fmt: skip
@click.option("--map", "pairs", multiple=True, metavar="LABEL=CLASS",
              help="A label of the model and the data set's class it is; repeatable.")  # fmt: skip
@click.option("--as-configured", is_flag=True,
              help="Average precision of the boxes that the config's own thresholds leave. "
              "Default: of all from a confidence of 0.001 on.")  # fmt: skip
@click.option("--limit", type=click.IntRange(1), metavar="N",
              help="Use N images, spread evenly.")  # fmt: skip
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False),
              metavar="HTML", help="Write a report with curves and worst images.")  # fmt: skip
@_gate("map50", "mAP50")
@_gate("map", "mAP50-95")
@_gate("accuracy", "the top-1 accuracy")
@_gate("miou", "the mIoU")
@click.option("--strict", is_flag=True, help="Treat every warning as an error.")
@click.option("-q", "--quiet", is_flag=True, help="Only results, warnings and errors.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@run_options("eval", device="Where engines run")
def eval(
    configs: tuple[Path, ...],
    tracks: Path | None,
    images: tuple[Path, ...],
    split: str | None,
    names: Path | None,
    pairs: tuple[str, ...],
    as_configured: bool,
    limit: int | None,
    output: Path | None,
    strict: bool,
    quiet: bool,
    as_json: bool,
    run: RunOptions,
    settings: list[GivenKey],
    **options: Any,
) -> int:
    """Measure how good CONFIGs are on images with truth, side by side.

    Detectors get mAP as COCO defines it, and precision, recall and F1 at their own thresholds
    beside the threshold with the best F1; classifiers top-1 and top-5, segmentations mIoU.
    """
    from headrace._core.errors import MediaError
    from headrace._core.notices import refuse_warnings
    from headrace.config import ModelConfig
    from headrace.config.overrides import distributed
    from headrace.diagnose.evaluate import evaluate

    if tracks is not None:
        return _eval_tracks(tracks, configs, as_json=as_json)
    chosen = _chosen_map(pairs)
    if output is not None and not output.parent.is_dir():  # said before hours of work
        raise MediaError("there is no such folder", where=str(output.parent))
    dataset = _dataset(options, images, split, names)
    overrides = distributed(settings, [path.name for path in configs])
    loaded = [ModelConfig.load(p, o) for p, o in zip(configs, overrides, strict=True)]
    refuse_warnings([*dataset.notices, *(n for cfg in loaded for n in cfg.notices)], strict=strict)
    with stdout_is_for_results(), RunProgress(enabled=not quiet, unit="images") as progress:
        report = evaluate(
            loaded,
            dataset,
            class_map=chosen,
            as_configured=as_configured,
            limit=limit,
            on_stage=progress.stage,
            on_frame=progress.step,
            **run.arguments(evaluate),
        )
        if output is not None:
            report.write_html(output)
    print_notices(report.notices, quiet=quiet or as_json)
    refuse_warnings(report.notices, strict=strict)
    if as_json:
        print_json(report.to_dict())
    else:
        _print(report)
        if output is not None and not quiet:
            echo(f"report: {output}", err=True)
    bounds = {_GATES[k]: v for k in _GATES if (v := options[f"min_{k}"]) is not None}
    below = report.below(bounds)
    for text in below:
        print_error(text)
    return EXIT_BELOW if below else 0


def _eval_tracks(truth: Path, results: tuple[Path, ...], *, as_json: bool) -> int:
    """Score files of tracks, side by side."""
    from headrace.diagnose.evaluate.tracks import read_tracks, score_tracks

    true = read_tracks(truth)
    scores = {path: score_tracks(true, read_tracks(path)) for path in results}
    if as_json:
        print_json({str(path): s.to_dict() for path, s in scores.items()})
        return 0
    heads = ["HOTA", "DetA", "AssA", "IDF1", "MOTA", "switches"]
    rows = [
        [
            str(path),
            *(f"{v:.4f}" for v in (s.hota, s.deta, s.assa, s.idf1, s.mota)),
            str(s.switches),
        ]
        for path, s in scores.items()
    ]
    print_table(["tracks", *heads], rows, right=heads)
    return 0


def _dataset(
    options: dict[str, Any], images: tuple[Path, ...], split: str | None, names: Path | None
) -> Dataset:
    from headrace.diagnose.evaluate import load_dataset
    from headrace.diagnose.evaluate.datasets.opening import FORMATS

    paths = {kind: options[kind] for kind in FORMATS if options[kind] is not None}
    if len(paths) != 1:
        listed = ", ".join(f"--{kind}" for kind in FORMATS)
        raise click.UsageError(f"name one data set with {listed}; {len(paths)} are given")
    ((kind, path),) = paths.items()
    if images and kind not in ("coco", "voc", "masks"):
        raise click.UsageError(f"--images is not for --{kind}: it names its images itself")
    if split is not None and kind not in ("yolo", "voc"):
        raise click.UsageError(f"--split is not for --{kind}")
    if names is not None and kind != "masks":
        raise click.UsageError(f"--names is not for --{kind}: it has names of its own")
    return load_dataset(path, kind, images=images, split=split, names=names)


def _chosen_map(pairs: tuple[str, ...]) -> dict[str, str]:
    mapping = {}
    for text in pairs:
        label, sign, name = text.partition("=")
        if not (label.strip() and sign and name.strip()):
            raise click.BadParameter(f"{text!r} is no LABEL=CLASS", param_hint="--map")
        mapping[label.strip()] = name.strip()
    return mapping


def _print(report: EvaluationReport) -> None:
    from headrace.diagnose.evaluate import DetectionScores
    from headrace.diagnose.evaluate.figures import class_rows

    names = [r.name for r in report.results]
    print_table(["", *names], report.rows(), right=names)
    echo()
    first = report.results[0].scores
    if len(report.results) == 1 and isinstance(first, DetectionScores):
        _print_detection(first)
    else:
        heads, rows = class_rows(report.results)
        print_table(heads, rows[:_SHOWN_CLASSES], right=heads[1:])
        _print_rest(len(rows))
    for result in report.results:
        for text in result.scores.confusion.mistakes(3):
            echo(f"{result.name}: {text}")


def _print_detection(scores: DetectionScores) -> None:
    from headrace.diagnose.evaluate.figures import figure_text

    heads = ["class", "objects", "AP50-95", "AP50", "threshold", "precision", "recall", "F1"]
    heads += ["best threshold", "best F1"]
    rows = []
    for one in scores.seen[:_SHOWN_CLASSES]:
        at, best = one.at_config, one.best
        figures = [one.ap, one.ap50, at.threshold, at.precision, at.recall, at.f1]
        figures += [best.threshold, best.f1] if best else [None, None]
        rows.append([one.name, f"{one.objects:,}", *map(figure_text, figures)])
    print_table(heads, rows, right=heads[1:])
    _print_rest(len(scores.seen))
    if unseen := len(scores.classes) - len(scores.seen):
        echo(f"{unseen} classes neither occur nor are found")


def _print_rest(count: int) -> None:
    if count > _SHOWN_CLASSES:
        echo(f"and {count - _SHOWN_CLASSES} more classes: --json or -o has them all")
