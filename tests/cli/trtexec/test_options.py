import pytest

from headrace.cli.trtexec.options import OPTIONS, CommandLineError, help_text, parse, parse_shapes


def test_defaults_are_those_of_trtexec():
    options = parse(["--onnx=m.onnx"])
    assert (options.iterations, options.warm_up_ms, options.duration_s) == (10, 200, 3)
    assert (options.avg_runs, options.percentiles, options.streams) == (10, ("90", "95", "99"), 1)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--nosuch=1"], "Unknown option: --nosuch 1"),
        (["--fp61"], "Unknown option: --fp61 "),
        (["--onnx=a", "b.onnx"], "Unknown option: b.onnx "),
        (["-fp16"], "Unknown option: -fp16 "),
        (["--onnx", "m.onnx"], "--onnx needs a value: --onnx=FILE"),
        (["--iterations=many"], "--iterations=many: expected a whole number"),
        (["--iterations=1.5"], "expected a whole number"),
        (["--avgRuns=0"], "from 1"),
        (["--percentile=90,101"], "expected 0 to 100"),
        (["--shapes=x:1xax3"], "expected NAME:1x3x640x640"),
        (["--loadInputs=x"], "expected NAME:FILE"),
        (["--duration=nan"], "expected a number"),
        (["--avgRuns=1_0"], "expected a whole number"),
        (["--avgRuns=١"], "expected a whole number"),
        (["--onnx=a", "--uff=b"], "--onnx and --uff are given: expected one model"),
        (["--onnx=a", "--loadEngine=b"], "--onnx and --loadEngine are given"),
    ],
)
def test_what_is_wrong_is_said(words, said):
    with pytest.raises(CommandLineError) as caught:
        parse(words)
    assert said in str(caught.value)


def test_shapes():
    assert parse_shapes("a:1x3x4,'b:0':2") == {"a": (1, 3, 4), "b:0": (2,)}
    assert parse_shapes("1x3x4") == {"": (1, 3, 4)}
    assert parse_shapes("a:scalar") == {"a": ()}


def test_plugins_may_be_repeated():
    options = parse(["--plugins=a.so", "--plugins=b.so", "--staticPlugins=c.so"])
    assert [str(p) for p in options.libraries] == ["a.so", "b.so", "c.so"]


def test_what_has_no_effect_is_told_with_the_reason():
    options = parse(["--useCudaGraph", "--useDLACore=0", "--fp16"])
    assert list(options.without_effect) == ["--useCudaGraph", "--useDLACore=0"]
    assert "DLA" in options.without_effect["--useDLACore=0"]
    of_11 = ["--continue", "--helpBuildRoute", "--tuningCacheFile=a.jsonl", "--refPair=0"]
    assert list(parse(of_11).without_effect) == of_11


def test_every_option_does_something_or_says_why_not():
    quiet = {"explicitBatch", "h"}
    for name, option in OPTIONS.items():
        assert bool(option.help) != bool(option.without_effect) or name in quiet, name
    assert "--useCudaGraph" not in help_text()
    assert "--onnx=FILE" in help_text()
