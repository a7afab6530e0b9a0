from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.image
import numpy as np
import numpy.typing as npt
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from seq2seq_memattn import metrics, plots
from seq2seq_memattn.plots import style
from tests.marks import quick
from tests.pictures import assert_drawn
from tests.running import run_python

SOURCE = ["4", "17", "0", "9", "</s>"]
TARGET = ["4", "17", "0", "0", "9", "9", "</s>"]
SLOTS = 11
NAMES = [
    "none",
    *(f"k_memory:{k}" for k in (1, 4, 16, 32, 64)),
    "bahdanau",
    *(f"luong_{score}" for score in ("dot", "general", "concat", "location")),
]


def scores(*shape: int, seed: int = 0) -> npt.NDArray[np.float64]:
    return np.random.default_rng(seed).random(shape)


def curve(speed: float) -> list[dict[str, Any]]:
    """The lines of a metrics.jsonl."""
    lines: list[dict[str, Any]] = []
    for update in range(100, 1100, 100):
        at = {"update": update, "seconds": 0.6 * update}
        lines.append({"kind": "train", **at, "loss": 3.0 * np.exp(-speed * update / 100.0)})
        lines.append(
            {"kind": "valid", **at, "bleu": 100.0 - 99.0 * np.exp(-speed * update / 100.0)}
        )
    return lines


def groups(num_wrong: int) -> list[dict[str, float]]:
    references = [" ".join(map(str, range(length))) for length in range(1, 21) for _ in range(3)]
    hypotheses = ["x"] * num_wrong + references[num_wrong:]
    exact = metrics.are_exact(hypotheses, references)
    return metrics.bleu_by_length(hypotheses, references, exact, num_groups=4)


def times(**seconds: list[float]) -> list[dict[str, Any]]:
    return [
        {"attention": attention, "length": length, "seconds": value, "mode": "exact"}
        for attention, values in seconds.items()
        for length, value in zip((20, 50, 100), values, strict=True)
    ]


def points(bleu: float) -> list[dict[str, Any]]:
    """BLEU and window by threshold."""
    return [
        {"threshold": threshold, "window": 4.0 + 3.0 * i, "bleu": bleu - 4.0 / (i + 1)}
        for i, threshold in enumerate((0.3, 1.2, None))
    ]


def surface(num_slots: int, max_source_length: int) -> npt.NDArray[np.float64]:
    """Equation 10 of the memory paper: [source_length, K]."""
    k = np.arange(1, num_slots + 1)[None, :] / num_slots
    s = np.arange(max_source_length)[:, None] / max_source_length
    return (1.0 - k) * (1.0 - s) + k * s


def line(axes: Axes, label: str) -> tuple[list[float], list[float]]:
    """The points of the line with this label."""
    (found,) = [line for line in axes.lines if line.get_label() == label]
    x, y = np.asarray(found.get_xdata(), float), np.asarray(found.get_ydata(), float)
    return x.tolist(), y.tolist()


def image(axes: Axes) -> npt.NDArray[np.float64]:
    return np.asarray(axes.images[0].get_array(), np.float64)


def legend(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def ticks(axes: Axes, which: str) -> list[str]:
    labels = axes.get_xticklabels() if which == "x" else axes.get_yticklabels()
    return [label.get_text() for label in labels]


EVERY_FIGURE: dict[str, Callable[[int], Figure]] = {
    "learning_curves": lambda i: plots.learning_curves({"none": curve(0.2 + i)}),
    "loss_curves": lambda i: plots.loss_curves({"none": curve(0.2 + i)}),
    "slot_use_curves": lambda i: plots.slot_use_curves({"k_memory:4": slot_use(0.2 + i)}, 4),
    "bleu_by_length": lambda i: plots.bleu_by_length({"none": groups(3 + 20 * i)}),
    "time_by_length": lambda i: plots.time_by_length(times(none=[1.0, 2.0, 3.0 + i])),
    "step_time_by_length": lambda i: plots.step_time_by_length(
        [{**row, "ms_per_step": row["seconds"]} for row in times(none=[1.0, 2.0, 3.0 + i])]
    ),
    "alignment": lambda i: plots.alignment(scores(7, 5, seed=i), SOURCE, TARGET, "K = 32"),
    "alignments": lambda i: plots.alignments(
        [plots.Panel(scores(7, 5, seed=i + j), SOURCE, TARGET, "none") for j in range(2)]
    ),
    "bleu_by_window": lambda i: plots.bleu_by_window({"valid": points(30.0 + i)}),
    "position_surface": lambda i: plots.position_surface(surface(7 + i, 30), 30, "K and S"),
    "slots": lambda i: plots.slots(scores(5, SLOTS, seed=i), scores(7, SLOTS), SOURCE, TARGET),
}


@pytest.mark.parametrize("name", EVERY_FIGURE)
def test_a_figure_becomes_a_picture_of_its_data(name: str, tmp_path: Path) -> None:
    pictures = []
    for i in range(2):
        (file,) = plots.save(EVERY_FIGURE[name](i), tmp_path / f"{i}.png")
        pictures.append(matplotlib.image.imread(file))
        assert_drawn(file)
    assert pictures[0].shape == pictures[1].shape
    assert pictures[0].shape[1] <= 900  # pixels, to fit a README
    assert (pictures[0] != pictures[1]).any(axis=-1).mean() > 1e-4


@pytest.mark.parametrize("name", quick(EVERY_FIGURE, "position_surface", "slots"))
def test_the_same_data_gives_the_same_files(name: str, tmp_path: Path) -> None:
    once = plots.save(EVERY_FIGURE[name](0), tmp_path / "once")
    again = plots.save(EVERY_FIGURE[name](0), tmp_path / "again")
    assert [file.name for file in once] == ["once.png", "once.svg"]
    assert [a.read_bytes() for a in once] == [b.read_bytes() for b in again]
    assert_drawn(*once)


def test_settings_of_matplotlib_stay_and_do_not_matter(tmp_path: Path) -> None:
    plain = plots.save(EVERY_FIGURE["slots"](0), tmp_path / "plain.svg")[0].read_bytes()
    with matplotlib.rc_context(
        {"font.size": 20.0, "axes.edgecolor": "red", "svg.hashsalt": "other"}
    ):
        before = dict(matplotlib.rcParams)
        styled = plots.save(EVERY_FIGURE["slots"](0), tmp_path / "styled.svg")[0].read_bytes()
        assert dict(matplotlib.rcParams) == before
    assert styled == plain


def test_the_fonts_are_the_users(tmp_path: Path) -> None:
    with matplotlib.rc_context({"font.family": ["DejaVu Serif"], "svg.fonttype": "path"}):
        (file,) = plots.save(EVERY_FIGURE["slots"](0), tmp_path / "figure.svg")
    assert "DejaVuSerif" in file.read_text() and "DejaVuSans" not in file.read_text()


def test_plots_do_without_pyplot() -> None:
    code = "import sys, seq2seq_memattn.plots; sys.exit('matplotlib.pyplot' in sys.modules)"
    process = run_python("-c", code)
    assert process.returncode == 0, process.stderr.decode()


def test_save_makes_the_directory_and_writes_the_format_of_the_suffix(tmp_path: Path) -> None:
    (file,) = plots.save(EVERY_FIGURE["alignment"](0), str(tmp_path / "new" / "picture.svg"))
    assert file.read_text(encoding="utf-8").startswith("<?xml")
    assert [path.name for path in file.parent.iterdir()] == ["picture.svg"]
    with pytest.raises(ValueError, match=r"suffix .png, .svg or none; got '.*a.pdf'"):
        plots.save(EVERY_FIGURE["alignment"](0), tmp_path / "a.pdf")


def test_attentions_look_different_and_always_the_same() -> None:
    together = plots.looks(NAMES)
    assert list(together) == NAMES
    assert len({look.colour for look in together.values()}) == len(NAMES)
    assert len({look.name for look in together.values()}) == len(NAMES)
    for name in NAMES:
        assert plots.looks(["another model", name])[name] == together[name]
    assert together["k_memory:32"].name == "K-memory, K = 32"


def test_other_labels_take_colours_that_no_attention_has() -> None:
    others = ["softmax / softmax", "sigmoid / softmax", "k_memory:0", "k_memory:x"]
    drawn = plots.looks([*others, "bahdanau"])
    assert list(drawn) == ["bahdanau", *others]
    assert [drawn[label].name for label in others] == others
    assert len({look.colour for look in drawn.values()}) == 5
    with_positions = plots.looks(["k_memory:32 + PE", "x + PE", "k_memory:32"])
    names = {label: look.name for label, look in with_positions.items()}
    assert names["k_memory:32 + PE"] == "K-memory, K = 32 + PE" and names["x + PE"] == "x + PE"
    slots, added = with_positions["k_memory:32"], with_positions["k_memory:32 + PE"]
    assert (added.colour, added.marker) == (slots.colour, slots.marker)
    assert (slots.line, added.line) == ("-", "--")
    assert with_positions["x + PE"].line == "-"  # there is no model "x"
    assert not {look.colour for look in plots.looks(NAMES).values()} & {*style.OTHER_COLOURS}
    many = plots.looks([str(i) for i in range(50)])
    assert len({(look.colour, look.marker) for look in many.values()}) == 50


def test_labels_of_an_order_have_the_same_colours_in_all_figures() -> None:
    order = ["a", "b", "c"]
    every = plots.looks(order, order)
    assert len({look.colour for look in every.values()}) == 3
    few = plots.looks(["c", "c, tied", "other", "c, more"], order)
    assert few["c"] == every["c"] and few["c, tied"].colour == every["c"].colour
    assert few["c, tied"].line != few["c, more"].line
    assert few["c, tied"].marker == few["c"].marker != few["c, more"].marker
    assert few["other"].colour not in {look.colour for look in every.values()}


def test_runs_of_a_model_are_drawn_as_their_mean_in_a_band() -> None:
    runs = [*curve(1.0), *curve(0.5)]
    (axes,) = plots.learning_curves({"bahdanau": runs, "none": curve(1.0)}).axes
    at, values = line(axes, "Bahdanau")
    assert at == list(range(100, 1100, 100))
    alone = [plots.learning_curves({"none": curve(speed)}).axes[0] for speed in (1.0, 0.5)]
    first, second = (line(one, "no attention")[1] for one in alone)
    assert values == pytest.approx([(a + b) / 2 for a, b in zip(first, second, strict=True)])
    (band,) = axes.collections
    low, high = band.get_paths()[0].get_extents().get_points()[:, 1]
    assert low == pytest.approx(min(*first, *second)) and high == pytest.approx(
        max(*first, *second)
    )


def test_learning_curves_show_bleu_against_updates_or_minutes() -> None:
    curves = {"bahdanau": curve(1.0), "k_memory:4": curve(0.5)}
    figure = plots.learning_curves(curves, title="Copy task, $L$")
    (axes,) = figure.axes
    assert figure.get_suptitle() == "Copy task, $L$"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("updates", "validation BLEU (0 to 100)")
    assert legend(figure) == ["K-memory, K = 4", "Bahdanau"]
    expected = [row["bleu"] for row in curves["bahdanau"] if row["kind"] == "valid"]
    assert line(axes, "Bahdanau") == (list(range(100, 1100, 100)), expected)
    assert to_hex(axes.lines[1].get_color()) == plots.looks(["bahdanau"])["bahdanau"].colour

    (axes,) = plots.learning_curves(curves, against="minutes").axes
    assert axes.get_xlabel() == "training time (minutes)"
    assert line(axes, "Bahdanau")[0] == pytest.approx(range(1, 11))


def test_a_band_of_several_seeds_is_explained() -> None:
    both = {"none": [*curve(1.0), *curve(0.5)]}
    for curves, note in ((both, "bands: lowest to highest seed"), ({"none": curve(1.0)}, "")):
        (axes,) = plots.learning_curves(curves).axes
        assert axes.get_title(loc="right") == note


def test_minutes_of_a_curve_never_decrease_where_a_run_ended_early() -> None:
    slow = [{**row, "seconds": 2 * row["seconds"]} for row in curve(1.0) if row["update"] <= 600]
    (axes,) = plots.learning_curves({"none": [*curve(1.0), *slow]}, against="minutes").axes
    assert line(axes, "no attention")[0] == pytest.approx([1.5 * n for n in range(1, 7)])


@pytest.mark.parametrize(
    ("bleu", "expected"),
    [((20.0, 99.0), (-2.0, 102.0)), ((20.0, 40.0), (19.0, 41.0)), ((38.0, 38.0), (37.95, 38.05))],
)
def test_the_axis_of_bleu_is_the_whole_scale_only_for_copies(
    bleu: tuple[float, float], expected: tuple[float, float]
) -> None:
    lines = [{"update": i, "seconds": i, "bleu": one} for i, one in enumerate(bleu, 1)]
    (axes,) = plots.learning_curves({"none": lines}).axes
    assert axes.get_ylim() == pytest.approx(expected)


def test_loss_curves_show_the_loss_on_a_logarithmic_axis() -> None:
    (axes,) = plots.loss_curves({"none": curve(1.0)}).axes
    assert axes.get_ylabel() == "loss (nats per target token)"
    assert axes.get_yscale() == "log"
    assert line(axes, "no attention")[1][0] == pytest.approx(3.0 * np.exp(-1.0))


def test_losses_of_validations_are_left_out() -> None:
    rows = [{**row, "kind": "train"} for row in curve(1.0)]
    valid = [{**row, "kind": "valid", "loss": 9.0} for row in rows]
    (axes,) = plots.loss_curves({"none": [*rows, *valid]}).axes
    (expected,) = plots.loss_curves({"none": rows}).axes
    assert line(axes, "no attention") == line(expected, "no attention")


def test_a_logarithmic_axis_has_more_than_one_number() -> None:
    rows = [{**row, "loss": loss} for row, loss in zip(curve(1.0), (8.3, 2.0, 0.2), strict=False)]
    (axes,) = plots.loss_curves({"none": rows}).axes
    axes.figure.draw_without_rendering()
    shown = [text.get_text() for text in axes.get_yticklabels(which="both")]
    assert len([text for text in shown if text]) > 2


def slot_use(rate: float) -> list[dict[str, Any]]:
    return [
        {"update": i, "seconds": i, "slots_corpus": 1.0 + 3.0 * np.exp(-rate * i), "slots_dead": 3}
        for i in range(1, 9)
    ]


def test_curves_of_slots_end_at_their_number() -> None:
    axes, dead = plots.slot_use_curves({"k_memory:4": slot_use(0.1)}, 4).axes
    assert axes.get_ylim()[1] == pytest.approx(4.4)
    assert line(axes, "K-memory, K = 4")[1][0] == pytest.approx(1.0 + 3.0 * np.exp(-0.1))
    assert list(axes.lines[-1].get_ydata()) == [4, 4]
    assert dead.get_ylabel() == "dead slots" and dead.get_ylim() == axes.get_ylim()
    assert list(dead.lines[0].get_ydata()) == [3] * 8


def test_a_figure_that_json_could_not_hold_is_left_out() -> None:
    lines = [*curve(1.0), {"kind": "valid", "update": 2000, "seconds": 9.0, "bleu": None}]
    (axes,) = plots.learning_curves({"none": lines}).axes
    assert len(line(axes, "no attention")[0]) == 10


def test_curves_refuse_what_they_cannot_draw() -> None:
    with pytest.raises(ValueError, match="`curves`: expected a model at least; got none"):
        plots.learning_curves({})
    with pytest.raises(ValueError, match=r"`curves\['none'\]`: .* record with 'bleu' at least"):
        plots.learning_curves({"bahdanau": curve(1.0), "none": curve(1.0)[::2]})
    with pytest.raises(ValueError, match="'updates' or 'minutes'; got 'hours'"):
        plots.loss_curves({"none": curve(1.0)}, against="hours")  # type: ignore[arg-type]


def test_bleu_and_exact_lines_stand_over_lengths() -> None:
    figure = plots.bleu_by_length({"none": groups(20), "bahdanau": groups(0)})
    bleu, exact = figure.axes
    assert (
        ticks(bleu, "x")
        == ticks(exact, "x")
        == ["1\u20135", "6\u201310", "11\u201315", "16\u201320"]
    )
    assert bleu.get_xlabel() == exact.get_xlabel() == "reference length (tokens)"
    assert bleu.get_ylabel() == "BLEU (0 to 100)"
    assert exact.get_ylabel() == "lines exactly right (%)"
    assert exact.get_title(loc="right") == "15 lines per group"
    assert legend(figure) == ["no attention", "Bahdanau"]
    assert line(bleu, "Bahdanau")[1] == pytest.approx([100.0] * 4)
    assert line(exact, "no attention")[1] == pytest.approx([0.0, 100.0 * 10 / 15, 100.0, 100.0])


def test_lines_without_4_grams_have_no_bleu() -> None:
    row = {"shortest": 0, "longest": 3, "lines": 9, "bleu": 0.0, "exact": 1.0}
    after = {"shortest": 4, "longest": 4, "lines": 8, "bleu": 97.0, "exact": 0.5}
    bleu, exact = plots.bleu_by_length({"none": [row, after]}).axes
    np.testing.assert_equal(line(bleu, "no attention")[1], [np.nan, 97.0])
    assert [text.get_text() for text in bleu.texts] == ["no 4-grams"]
    assert ticks(bleu, "x") == ["0\u20133", "4"]
    assert bleu.get_ylim()[0] > 85.0  # the 0, which is not drawn, does not stretch the axis
    assert exact.get_title(loc="right") == "8 to 9 lines per group"


def test_groups_must_be_those_of_one_reference() -> None:
    with pytest.raises(ValueError, match="`groups`: expected a model"):
        plots.bleu_by_length({})
    with pytest.raises(ValueError, match=r"`groups\['none'\]`: expected a group"):
        plots.bleu_by_length({"none": []})
    with pytest.raises(ValueError, match="same lengths and lines for all models; .* 'bahdanau'"):
        plots.bleu_by_length({"none": groups(0), "bahdanau": groups(0)[1:]})


def test_time_is_drawn_over_length_with_the_papers_ratios() -> None:
    ours = times(bahdanau=[1.0, 3.0, 10.0], none=[0.5, 1.0, 2.0])
    paper = times(bahdanau=[2.0, 4.0, 8.0], none=[1.0, 1.0, 1.0], other=[1.0, 1.0, 1.0])
    figure = plots.time_by_length(ours, paper)
    (axes,) = figure.axes
    assert axes.get_xlabel() == "source length (tokens), log scale"
    assert axes.get_ylabel() == "time (seconds)"
    assert ticks(axes, "x") == ["20", "50", "100"]
    assert line(axes, "Bahdanau") == ([20.0, 50.0, 100.0], [1.0, 3.0, 10.0])
    dashed = [drawn for drawn in axes.lines if drawn.get_linestyle() == "--"]
    assert [np.asarray(drawn.get_ydata()).tolist() for drawn in dashed] == [[0.5, 0.75, 1.25], []]
    assert dashed[0].get_color() == plots.looks(["none"])["none"].colour
    assert legend(figure) == ["no attention", "Bahdanau", "as in the paper, relative\nto Bahdanau"]
    assert legend(plots.time_by_length(ours)) == ["no attention", "Bahdanau"]


def test_the_time_of_a_step_is_drawn_over_length() -> None:
    rows = [
        {**row, "ms_per_step": 10.0 * row["seconds"]}
        for row in times(bahdanau=[1.0, 3.0, 10.0], none=[0.5, 0.5, 0.5])
    ]
    (axes,) = plots.step_time_by_length(rows).axes
    assert axes.get_ylabel() == "time per decoder step (ms)"
    assert line(axes, "Bahdanau") == ([20.0, 50.0, 100.0], [10.0, 30.0, 100.0])
    assert axes.get_ylim()[0] == 0.0


def test_lengths_too_close_for_their_labels_are_not_all_named() -> None:
    rows = [{"attention": "none", "length": n, "ms_per_step": 1.0} for n in (1, 10, 20, 500, 1000)]
    (axes,) = plots.step_time_by_length(rows).axes
    assert ticks(axes, "x") == ["20", "500", "1,000"]


def test_short_and_long_sources_have_equal_room() -> None:
    (axes,) = plots.time_by_length(times(none=[1.0, 2.0, 3.0])).axes
    assert axes.get_xscale() == "log"
    assert ticks(axes, "x") == ["20", "50", "100"]


def test_times_must_be_of_one_mode_and_have_the_reference() -> None:
    with pytest.raises(ValueError, match="`rows`: expected a row at least"):
        plots.time_by_length([])
    twice = times(none=[1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="`rows`: .* of one mode; got two for 'none' at 20"):
        plots.time_by_length([*twice, twice[0]])
    with pytest.raises(ValueError, match=r"expected times of bahdanau in both; got \['none'\]"):
        plots.time_by_length(twice, paper=times(bahdanau=[1.0, 2.0, 3.0]))


def test_bleu_stands_over_windows_with_their_thresholds() -> None:
    figure = plots.bleu_by_window({"valid": points(30.0), "test": points(29.0)}, "words")
    (axes,) = figure.axes
    assert legend(figure) == ["valid", "test"]
    assert line(axes, "test") == ([4.0, 7.0, 10.0], [25.0, 27.0, 29.0 - 4.0 / 3.0])
    assert [text.get_text() for text in axes.texts] == ["0.3", "1.2", "\u221e"]
    assert {text.xy[1] for text in axes.texts} == {one["bleu"] for one in points(30.0)}
    chosen = {
        name: [{**one, "is_chosen": one["threshold"] == 1.2} for one in points(bleu)]
        for name, bleu in (("valid", 30.0), ("test", 29.0))
    }
    figure = plots.bleu_by_window(chosen)
    (axes,) = figure.axes
    assert axes.texts[0].get_text() == "1.2" and "circled" in axes.get_title(loc="right")
    rings = [
        tuple(map(float, line.get_xydata()[0])) for line in axes.lines if len(line.get_xdata()) == 1
    ]
    assert rings == [(7.0, 28.0), (7.0, 27.0)]
    for empty, message in (({}, "a data set"), ({"valid": []}, "a point")):
        with pytest.raises(ValueError, match=f"expected {message} at least"):
            plots.bleu_by_window(empty)


def test_an_alignment_has_the_source_downwards_and_the_target_to_the_right() -> None:
    values = scores(7, 5)
    axes, bar = plots.alignment(values, SOURCE, TARGET, "Bahdanau").axes
    np.testing.assert_array_equal(image(axes), values.T)
    assert ticks(axes, "x") == TARGET
    assert ticks(axes, "y") == SOURCE
    assert axes.get_ylim() == (4.5, -0.5)
    assert axes.get_title() == "Bahdanau"
    assert axes.figure.get_supxlabel() == "target tokens"
    assert axes.figure.get_supylabel() == "source tokens"
    assert bar.get_ylabel() == "alignment"


def test_panels_share_one_scale_unless_relative() -> None:
    panels = [
        plots.Panel([[0.0, 0.5]], ["a", "b"], ["c"], "one"),
        plots.Panel([[0.25, 0.0]], ["a", "b"], ["c"], "two"),
    ]
    *axes, _ = plots.alignments(panels).axes
    assert [ax.images[0].get_clim() for ax in axes] == [(0.0, 0.5), (0.0, 0.5)]
    assert [ticks(ax, "y") for ax in axes] == [["a", "b"], []]  # labels only at the left

    *axes, bar = plots.alignments(panels, relative=True).axes
    assert [image(ax).max() for ax in axes] == [1.0, 1.0]
    assert [ax.get_title() for ax in axes] == [
        "one (highest:\u00a00.5)",
        "two (highest:\u00a00.25)",
    ]
    assert bar.get_ylabel() == "share of the panel's highest"


def test_what_was_not_scored_is_grey() -> None:
    values = np.triu(scores(7, 5))
    panel = plots.Panel(values, SOURCE, TARGET, "flexible", values > 0)
    (axes, bar) = plots.alignments([panel]).axes
    assert "grey where nothing was scored" in bar.get_ylabel()
    grey = np.ma.getmaskarray(axes.images[1].get_array())
    np.testing.assert_array_equal(grey, (values > 0).T)
    with pytest.raises(ValueError, match="`scored`: expected shape"):
        plots.alignments([panel._replace(scored=values[:3] > 0)])


def test_panels_of_other_sentences_name_their_own_tokens() -> None:
    panels = [plots.Panel([[1.0]], [name], [name.upper()]) for name in "aabc"]
    *axes, _ = plots.alignments(panels).axes
    assert [ticks(ax, "y") for ax in axes] == [["a"], [], ["b"], ["c"]]
    assert [ticks(ax, "x") for ax in axes] == [["A"], ["A"], ["B"], ["C"]]


@pytest.mark.parametrize("length", [50, 101, 1000])
def test_labels_of_long_sequences_are_thinned_out_and_do_not_overlap(length: int) -> None:
    tokens = [str(i % 20) for i in range(length)]
    figure = plots.alignment(np.eye(length), tokens, tokens)
    axes = figure.axes[0]
    figure.draw_without_rendering()
    assert 10 <= len(ticks(axes, "y")) <= 32
    assert f"one in {round(axes.get_yticks()[1])} is named" in figure.get_supylabel()
    for which, labels in (("x", axes.get_xticklabels()), ("y", axes.get_yticklabels())):
        boxes = [label.get_window_extent() for label in labels]
        edges = [(b.x0, b.x1) if which == "x" else (b.y0, b.y1) for b in boxes]
        edges.sort()
        assert all(a[1] <= b[0] for a, b in zip(edges, edges[1:], strict=False)), which


def test_labels_are_cut_and_taken_literally() -> None:
    tokens = ["$x$", "\n", "Donaudampfschifffahrt"]
    axes = plots.alignment(np.eye(3), tokens, tokens).axes[0]
    assert ticks(axes, "y") == ["$x$", "\\n", "Donaudampfs\u2026"]
    assert not axes.get_yticklabels()[0].get_parse_math()


def test_an_alignment_of_zeros_is_drawn(tmp_path: Path) -> None:
    figure = plots.alignment(np.zeros([7, 5]), SOURCE, TARGET)
    assert figure.axes[0].images[0].get_clim() == (0.0, 1.0)
    assert_drawn(*plots.save(figure, tmp_path / "a.png"))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (scores(5, 7), r"\[target_length, source_length\] = \[7, 5\], .*; got \[5, 7\]"),
        (scores(7), r"got \[7\]"),
        (np.full([7, 5], np.nan), "finite values"),
    ],
)
def test_an_alignment_must_fit_its_tokens(values: npt.NDArray[Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"`alignment`: expected .*{message}"):
        plots.alignment(values, SOURCE, TARGET)


def test_negative_values_of_linear_attention_have_colours_of_their_own(tmp_path: Path) -> None:
    values = scores(7, 5) - 0.75
    figure = plots.alignment(values, SOURCE, TARGET)
    drawn = figure.axes[0].images[0]
    assert drawn.get_clim() == (-np.abs(values).max(), np.abs(values).max())
    assert drawn.get_cmap().name == "RdBu"
    assert_drawn(*plots.save(figure, tmp_path / "a.png"))


def test_there_must_be_something_to_look_at() -> None:
    with pytest.raises(ValueError, match="`panels`: expected a panel"):
        plots.alignments([])
    with pytest.raises(ValueError, match=r"\[0, 5\], none of them 0"):
        plots.alignment(np.zeros([0, 5]), SOURCE, [])


def test_slots_show_the_most_used_and_count_the_others() -> None:
    alpha, beta = scores(5, SLOTS), scores(7, SLOTS, seed=1)
    alpha[:, 2] *= 20.0
    alpha[:, 9] *= 30.0
    figure = plots.slots(alpha, beta, SOURCE, TARGET, max_slots=2, title="K = 11")
    first, second, bar = figure.axes
    np.testing.assert_allclose(image(first), np.outer(alpha[:, 2], beta[:, 2]))
    np.testing.assert_allclose(image(second), np.outer(alpha[:, 9], beta[:, 9]))
    total = (beta @ alpha.T).sum()
    share = [beta[:, k].sum() * alpha[:, k].sum() / total for k in (2, 9)]
    assert first.get_title() == f"k = 3 ({share[0]:.1%})"
    assert second.get_title() == f"k = 10 ({share[1]:.1%})"
    assert figure.get_suptitle() == (
        f"K = 11: the 2 most used of 11 slots; 9 others: {1.0 - sum(share):.1%} of the weight"
    )
    assert bar.get_ylabel() == "\u03b2 \u00b7 \u03b1 of one slot"


def test_all_slots_are_shown_where_there_are_few_and_sum_to_the_alignment() -> None:
    alpha, beta = scores(5, 3), scores(7, 3)
    figure = plots.slots(alpha, beta, SOURCE, TARGET)
    assert figure.get_suptitle() == "all 3 slots"
    total = sum(image(axes) for axes in figure.axes[:-1])
    np.testing.assert_allclose(total, alpha @ beta.T)


def test_many_slots_are_drawn_smaller() -> None:
    widths = {}
    for num_slots in (8, 9, 16, 17):
        figure = plots.slots(scores(5, num_slots), scores(7, num_slots), SOURCE, TARGET, num_slots)
        assert figure.get_suptitle() == f"all {num_slots} slots"
        widths[num_slots] = figure.axes[0].get_position().width
    assert widths[17] < 0.6 * widths[16]
    assert widths[9] < 0.6 * widths[8]


def test_a_surface_has_positions_to_the_right_slots_upwards_and_its_middle_marked() -> None:
    values = surface(8, 20)
    axes, bar = plots.position_surface(values, 20, "K = 8, S = 20").axes
    np.testing.assert_allclose(np.asarray(axes.collections[0].get_array()), values.T)
    assert axes.collections[0].get_clim() == (0.0, 1.0)
    assert line(axes, "stationary point: 0.5") == ([10.0], [4.0])
    assert values[10, 3] == 0.5
    assert "stationary point: 0.5" in [text.get_text() for text in axes.texts]
    assert axes.get_xlabel() == "source position s (tokens, from 0)"
    assert axes.get_ylabel() == "slot k (from 1)"
    assert bar.get_ylabel() == "position encoding L (a factor)"


def test_a_surface_refuses_what_are_no_encodings() -> None:
    with pytest.raises(ValueError, match=r"expected shape \[source_length, K\].*got \[3, 1\]"):
        plots.position_surface(np.zeros([3, 1]), 3)
    with pytest.raises(ValueError, match="expected values from 0 to 1; got values from 0.0 to 2.0"):
        plots.position_surface([[0.0, 1.0], [2.0, 0.0]], 2)


def test_slots_must_fit_their_tokens() -> None:
    with pytest.raises(ValueError, match=r"`alpha`: .*\[source_length, K\] = \[5, 4\]"):
        plots.slots(scores(5, 3), scores(7, 4), SOURCE, TARGET)
    with pytest.raises(ValueError, match=r"`beta`: .*\[target_length, K\] = \[7, 3\]"):
        plots.slots(scores(5, 3), scores(5, 3), SOURCE, TARGET)
    with pytest.raises(ValueError, match="`max_slots`: expected a positive number; got 0"):
        plots.slots(scores(5, 3), scores(7, 3), SOURCE, TARGET, max_slots=0)
    with pytest.raises(ValueError, match="`alpha`: expected finite values, none below 0"):
        plots.slots(-scores(5, 3), scores(7, 3), SOURCE, TARGET)
    with pytest.raises(ValueError, match="`beta`: expected finite values, none below 0"):
        plots.slots(scores(5, 3), np.full([7, 3], np.nan), SOURCE, TARGET)


def test_slots_that_would_be_blank_are_left_out_and_counted() -> None:
    beta = np.array([[1.0, 1.0, 0.001], [1.0, 1.0, 0.001]])
    alpha = np.ones([5, 3])
    figure = plots.slots(alpha, beta, ["a"] * 5, ["b"] * 2)
    assert [axes.get_title() for axes in figure.axes[:-1]] == ["k = 1 (50.0%)", "k = 2 (50.0%)"]
    assert figure.get_suptitle() == "the 2 most used of 3 slots; 1 other: 0.0% of the weight"


def test_the_range_of_repeated_times_is_a_bar() -> None:
    rows = [
        {"attention": "none", "length": length, "seconds": 2.0, "all_seconds": [1.0, 2.0, 4.0]}
        for length in (20, 50)
    ]
    (axes,) = plots.time_by_length(rows).axes
    (bars,) = axes.collections
    ends = [path.get_extents().get_points().tolist() for path in bars.get_paths()]
    assert ends == [[[20.0, 1.0], [20.0, 4.0]], [[50.0, 1.0], [50.0, 4.0]]]
