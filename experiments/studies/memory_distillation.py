"""K-memory with and without a teacher.

Not in the papers, but named there as future work: how close does K-memory come to attention over
the source in translation, if it is trained for longer, uses more of its slots, or has a teacher?
"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from experiments.reproduction import significance
from experiments.reproduction.pages import (
    learning_curves,
    markdown_table,
    prose,
    trained_at,
    valid_curves,
)
from experiments.reproduction.results import Result, Results
from experiments.reproduction.rows import DataSource, Evaluation, Row, Scale
from experiments.reproduction.study import Study
from experiments.studies import table1, table2
from experiments.studies._curves import updates_to
from seq2seq_memattn.attention.registry import num_slots
from seq2seq_memattn.presets import small_text

UPDATES = 3600  # of the screening, as in Table 2
LONGER = 2 * UPDATES
BASELINES = ("att", "att_long")  # for rows trained for UPDATES, and for LONGER
FLICKR, MSCOCO = "flickr_lowercase", "mscoco_lowercase"
TESTS = (
    # No choice was based on this set.
    Evaluation(MSCOCO, "test_2017_mscoco", ("--lowercase",), keeps_lines=False),
    Evaluation(FLICKR, "test_2016_flickr", ("--lowercase",)),  # for the comparison with attention
)
TEACHER = "att"


class Trial(NamedTuple):
    """One way to train a model.

    Fields:
        label: name in tables.
        options: options that override the preset.
        init_from, teacher: see `Row`.
        is_translated: whether the model is trained on the teacher's translations (Kim and Rush,
            2016).
    """

    label: str
    options: dict[str, Any] = {}
    init_from: str = ""
    teacher: str = ""
    is_translated: bool = False


CONTEXTS = {"context_weight": 10.0}
ALIGNMENTS = {"alignment_weight": 0.5}
BOTH = {**CONTEXTS, **ALIGNMENTS}
HIDDEN, SPREAD = {"slot_hidden": small_text.UNITS}, {"slot_spread": 8.0}
BALANCE = {"balance_weight": 0.1}
TRIALS = {
    "": Trial("as it is"),
    "spread": Trial("spread", SPREAD),
    "balance": Trial("balanced use, weight 0.1", BALANCE),
    "balance_1": Trial("balanced use, weight 1", {"balance_weight": 1.0}),
    "slot_dropout": Trial("slot dropout, 0.1", {"slot_dropout": 0.1}),
    "hidden": Trial("hidden", HIDDEN),
    "hidden_spread": Trial("hidden, spread", {**HIDDEN, **SPREAD}),
    "start": Trial("teacher: weights", {}, TEACHER),
    "contexts": Trial("teacher: contexts", CONTEXTS, "", TEACHER),
    "alignments": Trial("teacher: alignments", ALIGNMENTS, "", TEACHER),
    "both": Trial("teacher: contexts, alignments", BOTH, "", TEACHER),
    "both_start": Trial("teacher: weights, contexts, alignments", BOTH, TEACHER, TEACHER),
    "balance_both_start": Trial(
        "balanced use, teacher: weights, contexts, alignments",
        {**BALANCE, **BOTH},
        TEACHER,
        TEACHER,
    ),
    "all": Trial(
        "hidden, spread, teacher: weights, contexts, alignments",
        {**HIDDEN, **SPREAD, **BOTH},
        TEACHER,
        TEACHER,
    ),
    "distilled": Trial("teacher: translations", is_translated=True),
}
TRIALS |= {
    f"{name}_distilled": TRIALS[name]._replace(
        label=f"{TRIALS[name].label}, translations", is_translated=True
    )
    for name in ("all", "balance_both_start")
}
# What trials consist of, in the order of the colours in figures.
PARTS = (
    *("slot dropout", "hidden", "spread", "balanced use"),
    *("teacher: weights", "teacher: contexts", "teacher: alignments", "teacher: translations"),
)
K32 = ("", "balance", "all")
# Of the copy task.
COPIES = ("", "balance", "hidden_spread", "start", "alignments", "both_start", "all")
ENOUGH = 99.0  # BLEU of the copy task, the score up to which updates are counted
# For each L, in symbols: the updates after which K = 32 had `ENOUGH` as it is. The other trials end
# there, since the question is whether they are sooner.
COPY_LENGTHS = {50: 2000, 100: 3500}
FIRST = 250  # updates with the teacher, if training goes on without it
THEN = "_then"  # ends the names of rows that go on
# For each figure: K, whether training is longer, whether there is a teacher (None: either).
FIGURES: dict[str, tuple[int, bool, bool | None]] = {
    "slots": (64, False, False),
    "teacher": (64, False, True),
    "longer": (64, True, None),
    "k32": (32, False, None),
    "k32_longer": (32, True, None),
}
COPY_TASK = (
    "As in [Table 1](table1.md). The teacher is attention, trained on the same data. With help, "
    f"K = 32 trains only until the update at which it reached {ENOUGH:g} BLEU as it is. In rows "
    f'with "{FIRST} updates", the teacher guides only these first updates; then training starts '
    "again, with the learning rate of the start, from the weights reached."
)
COPY_HEADER = ("L", "model", "how", f"updates to {ENOUGH:g} BLEU", "BLEU", "exact lines", "updates")
HEADER = (
    *("model", "how", "updates", "best", "seed", "valid", "test_2016", "against Att"),
    *("test_2017", "chrF", "slots in use", "dead"),
)
MEANS = (
    "The last two columns are differences on test_2016_flickr from the mean of attention with two "
    "seeds, as it is and with the teacher's translations, each with its 95 % confidence interval. "
    "Each resample of the bootstrap has the same captions of all four models. Like the other "
    "intervals, these cover the choice of the test set, but not the variation between seeds."
)
MEANS_HEADER = (
    *("model", "how", "updates", "valid", "test_2016", "test_2017", "chrF"),
    *("against Att", "against Att, translations"),
)


def introduction(scale: Scale) -> str:
    """The text of the page before its table."""
    text = (
        "What does it take for K-memory to be as good as attention over the source? The data, "
        "models and training are those of Multi30k, en-de, in [Table 2](table2.md). BLEU is of "
        "beam search (beam size 10) with the weights of the best validation, on tokenised text. "
        "Test BLEU ignores case; validation BLEU does not. Choices were made by validation BLEU. "
        "No choice was based on test_2017_mscoco, but its scores are shown for all rows, not for "
        "the final ones alone. chrF is of test_2016_flickr and ignores case, unlike in Table 2. "
        '"±" is half the width of the 95 % confidence interval from bootstrap resampling of the '
        'test set; it does not cover the variation between seeds. "Against Att" is the difference '
        "on test_2016_flickr from attention, trained for as many updates with its first seed."
    )
    if scale == "tiny":
        return text
    return (
        f"{text} The teacher in translation is attention with its first seed, trained for "
        f"{UPDATES:,} updates; its weights are those of its best validation. Training a row that "
        "has this teacher, or starts with its weights, therefore takes these updates too. "
        "test_2016 is test_2016_flickr (1,000 captions), test_2017 is test_2017_mscoco (461).\n\n"
        '"Hidden" is a hidden layer before the scores of the slots, with as many units as the '
        f'encoder ({HIDDEN["slot_hidden"]} in translation). With "spread", the weights of these '
        f"scores are orthogonal at the start, with gain {SPREAD['slot_spread']:g}. The loss on "
        f"contexts has weight {CONTEXTS['context_weight']:g}, that on alignments "
        f"{ALIGNMENTS['alignment_weight']:g}; the [guide](../docs/teachers.md) says what each "
        'computes. "Slots in use" is the effective number of slots: the perplexity of the reading '
        "weights over the first 100 validation references, in a sentence, and in a step, with the "
        "best weights. A slot is dead if it gets less than a tenth of an equal share of these "
        "weights."
    )


def rows(scale: Scale) -> list[Row]:
    """Attention, K-memory as it is, and what may improve it; "full" is the same as "small"."""
    scale = "small" if scale == "full" else scale
    trials = {
        **{("att", name): TRIALS[name] for name in ("", "distilled")},
        **{("k64", name): trial for name, trial in TRIALS.items()},
        **{("k32", name): TRIALS[name] for name in K32},
    }
    found = [
        row
        for (model, name), trial in trials.items()
        for row in _seeds_and_lengths(model, name, trial, scale)
    ]
    return [*found, *(row for length in COPY_LENGTHS for row in _copies(length, scale))]


def _copies(length: int, scale: Scale) -> list[Row]:
    """The copy task: attention, which is the teacher, and K = 32 with and without it."""
    teacher = f"copy_{length}_{TEACHER}"
    rows = [dataclasses.replace(table1.row(length, "bahdanau", scale), name=teacher)]
    rows += [_copy(length, scale, name, teacher, COPY_LENGTHS[length]) for name in COPIES]
    return [*rows, *(_in_two_parts(length, teacher) if scale == "small" else ())]


def _in_two_parts(length: int, teacher: str) -> list[Row]:
    """The copy task with the teacher for the `FIRST` updates, and without it for the rest."""
    name, rest = f"copy_{length}_k32_all_{FIRST}", COPY_LENGTHS[length] - FIRST
    first = _copy(length, "small", "all", teacher, FIRST)
    then = _copy(length, "small", "hidden_spread", teacher, rest)
    label, curve = (f"{text}, {FIRST} updates" for text in (first.label, first.curve))
    return [
        dataclasses.replace(first, name=name),
        dataclasses.replace(then, name=f"{name}{THEN}", label=label, curve=curve, init_from=name),
    ]


def _copy(length: int, scale: Scale, name: str, teacher: str, num_updates: int) -> Row:
    trial, row = TRIALS[name], table1.row(length, "k32", scale)
    options = dict(trial.options)
    if "slot_hidden" in options:
        options["slot_hidden"] = row.preset().model.encoder_units
    if name and scale == "small":
        options["num_updates"] = num_updates
    return dataclasses.replace(
        row,
        name=_joined(f"copy_{length}_k32", name),
        options={**row.options, **options},
        label=f"{row.label}, {trial.label}",
        curve=trial.label if name else row.curve,
        init_from=teacher if trial.init_from else "",
        teacher=teacher if trial.teacher else "",
    )


def _on_translations(row: Row) -> Row:
    """The row with targets that are the teacher's translations of the training sources."""
    data, raw = row.data, "{corpus}/raw"
    command = (
        "data_prep.parallel_text",
        f"--train_source={raw}/train.en.gz",
        "--train_target={translations}",
        f"--valid_source={raw}/val.en.gz",
        f"--valid_target={raw}/val.de.gz",
        f"--test_source={raw}/test_2016_flickr.en.gz,{raw}/test_2017_mscoco.en.gz",
        f"--test_target={raw}/test_2016_flickr.de.gz,{raw}/test_2017_mscoco.de.gz",
        "--source_language=en",
        "--target_language=de",
        f"--model_file={{data}}/{data.folder}/subwords.model",
    )
    translated = DataSource(f"{data.folder}_translated", command, data.corpus, TEACHER)
    return dataclasses.replace(row, data=translated)


def chosen(scale: Scale) -> list[str]:
    """The rows of the screening: one seed, not trained for longer."""
    return [row.name for row in rows(scale) if not row.name.endswith(("_long", "_seed1"))]


def _seeds_and_lengths(model: str, name: str, trial: Trial, scale: Scale) -> list[Row]:
    """A trial with two seeds, each also trained for longer."""
    found = []
    for updates in (UPDATES, LONGER):
        for seed in (0, 1):
            ending = "_long" * (updates == LONGER)
            seeded = f"_seed{seed}" if seed else ""
            full_name = f"{_joined(model, name)}{ending}{seeded}"
            row = _row(model, full_name, trial, updates, seed)
            row = table2.tiny(row) if scale == "tiny" else row
            found.append(_on_translations(row) if trial.is_translated else row)
    return found


def _joined(model: str, trial: str) -> str:
    return f"{model}_{trial}" if trial else model


def _row(model: str, name: str, trial: Trial, updates: int, seed: int) -> Row:
    config = {"att": "bahdanau"}.get(model, model)
    row = table2.text_row(f"multi30k_en_de_{config}", small_text.PIECES)
    options: dict[str, Any] = dict(trial.options)
    if updates == LONGER:
        # The learning rate falls as in the preset, over twice as many updates.
        training = row.preset().training
        options |= {
            "num_updates": LONGER,
            "decay_start": 2 * training.decay_start,
            "decay_every": 2 * training.decay_every,
            "patience": 2 * training.patience,
        }
    if seed:
        options["seed"] = seed
    if trial.label == TRIALS[""].label:
        curve = row.curve
    else:
        curve = f"{row.curve}, {trial.label}" if model == TEACHER else trial.label
    return dataclasses.replace(
        row,
        name=name,
        options=options,
        label=f"{row.label}, {trial.label}",
        curve=curve,
        tests=TESTS,
        init_from=trial.init_from,
        teacher=trial.teacher,
    )


def results(study: Study) -> list[Result]:
    """The finished results, each with a comparison with attention trained as long.

    Rows that go on without the teacher have all updates, from the beginning.
    """
    finished = _with_first_parts(study.finished())
    texts = _of_text(finished)
    for longer, baseline in enumerate(BASELINES):
        members = [one for one in texts if _is_longer(one) == longer]
        significance.compare_with(study, baseline, members)
    pairs = _pairs(texts)
    for name, pair in pairs.items():
        for baseline in _baselines_of_means(name):
            if baseline in pairs.keys() - {name}:
                significance.compare_means(study, pair, pairs[baseline], TEACHER)
            else:
                pair[-1].get(significance.MEANS_KEY, {}).pop(baseline, None)
    return finished


def _with_first_parts(found: Results) -> list[Result]:
    """The results; those that go on without the teacher also have the updates before."""
    by_name = {result["name"]: dict(result) for result in found}
    for name, result in by_name.items():
        if name.endswith(THEN):
            first = by_name.get(name.removesuffix(THEN), {"curve": []})
            later = [{**point, "update": FIRST + point["update"]} for point in result["curve"]]
            result["curve"] = [*first["curve"], *later]
            done = FIRST + result["training"]["update"]
            result["training"] = {**result["training"], "update": done}
    return list(by_name.values())


def tables(found: Results) -> str:
    """The scores."""
    parts = []
    texts = _of_text(found)
    if means := [_mean_cells(name, pair) for name, pair in _pairs(texts).items()]:
        parts += ["## Means of two seeds", prose(MEANS), markdown_table(MEANS_HEADER, means)]
    if texts:
        signatures = {
            f"* {split}: `{result['tests'][name]['signature']}`"
            for result in texts
            for split, name in (("test_2016", FLICKR), ("test_2017", MSCOCO))
        } | {f"* valid: `{result['evaluation']['signature']}`" for result in texts}
        table = markdown_table(HEADER, (_cells(one, _half_width(one, texts)) for one in texts))
        parts += ["## Translation: Multi30k, en-de", table, "\n".join(sorted(signatures))]
        if not any(map(_is_longer, texts)):
            parts.append(
                f"Rows whose names end in `_long` train for {LONGER:,} updates; none was trained "
                "yet. Names of second seeds end in `_seed1`."
            )
    if copies := _of_copies(found):
        table = markdown_table(COPY_HEADER, map(_copy_cells, copies))
        parts += ["## Copying", prose(COPY_TASK), table]
    return "\n\n".join([*parts, prose(trained_at(found))]) + "\n"


def _pairs(texts: Results) -> dict[str, list[Result]]:
    """The results of both seeds, by the name of the first, where both are there."""
    by_name = {result["name"]: result for result in texts}
    seconds = {name: by_name.get(f"{name}_seed1") for name in by_name}
    return {name: [by_name[name], second] for name, second in seconds.items() if second}


def _baselines_of_means(name: str) -> list[str]:
    """Attention that was trained as long, on the references and on the teacher's translations."""
    ending = "_long" * name.endswith("_long")
    return [f"{TEACHER}{ending}", f"{TEACHER}_distilled{ending}"]


def _of_text(found: Results) -> list[Result]:
    return [result for result in found if not result["length"]]


def _of_copies(found: Results) -> list[Result]:
    return [one for one in found if one["length"] and not one["name"].endswith(f"_{FIRST}")]


def _copy_cells(result: Result) -> list[str]:
    model, _, how = result["label"].partition(", ")
    reached = updates_to(result["curve"], ENOUGH)
    return [
        str(result["length"]),
        model,
        how or TRIALS[""].label,
        f"{reached:,}" if reached else "-",
        f"{result['bleu']:.2f}",
        f"{100 * result['evaluation']['exact']:.1f} %",
        f"{result['training']['update']:,}",
    ]


def _half_width(result: Result, texts: Results) -> float | None:
    """Half the width of the 95 % interval of the score on test_2016_flickr, where it is known."""
    if found := significance.compared(result):
        return float(found["ci"])
    if result["name"] not in BASELINES:
        return None
    for other in texts:
        # Rows compared with a baseline also store the baseline's interval.
        found = significance.compared(other)
        if found and _is_longer(other) == _is_longer(result):
            return float(found["baseline_ci"])
    return None


def _cells(result: Result, half_width: float | None) -> list[str]:
    model, _, how = result["label"].partition(", ")
    return [
        model,
        how,
        f"{result['configuration']['training']['num_updates']:,}",
        f"{result['evaluation']['update']:,}",
        str(result["configuration"]["training"]["seed"]),
        f"{result['bleu']:.2f}",
        f"{result['tests'][FLICKR]['bleu']:.2f}"
        + ("" if half_width is None else f" ± {half_width:.1f}"),
        significance.difference(result),
        f"{result['tests'][MSCOCO]['bleu']:.2f}",
        f"{result['tests'][FLICKR]['chrf']:.1f}",
        *_slots(result),
    ]


def _mean_cells(name: str, pair: Sequence[Result]) -> list[str]:
    """The means of two seeds, and their differences from attention's on test_2016_flickr."""
    model, _, how = pair[0]["label"].partition(", ")
    means = [fmean(one["bleu"] for one in pair)]
    means += [fmean(one["tests"][name]["bleu"] for one in pair) for name in (FLICKR, MSCOCO)]
    chrf = fmean(one["tests"][FLICKR]["chrf"] for one in pair)
    kept = pair[-1].get(significance.MEANS_KEY, {})
    differences = [kept.get(baseline) for baseline in _baselines_of_means(name)]
    return [
        model,
        how,
        f"{pair[0]['configuration']['training']['num_updates']:,}",
        *(f"{mean:.2f}" for mean in means),
        f"{chrf:.1f}",
        *(
            "{difference:+.1f} ({low:+.1f}, {high:+.1f})".format(**one) if one else "-"
            for one in differences
        ),
    ]


def _slots(result: Result) -> tuple[str, str]:
    """Slots in use, and dead ones, at the best validation."""
    best = result["evaluation"]["update"]
    for point in result["curve"]:
        if point["kind"] == "valid" and point["update"] == best and "slots_corpus" in point:
            used = [point[f"slots_{of}"] for of in ("corpus", "sentence", "step")]
            return "/".join(f"{number:.0f}" for number in used), f"{point['slots_dead']:.0f}"
    return "-", "-"


def draw(study: Study, found: Results, stem: Path) -> dict[str, str]:
    """Draws learning curves, and the use of slots during training."""
    titles = _learning_curves(study, found, stem)
    from seq2seq_memattn import plots

    for name, members in _groups(found).items():
        read = [one for one in members if any("slots_corpus" in p for p in one["curve"])]
        if read:
            slots = _slots_of(read[0]) or 0
            title = f"Slots in use during training, {_title(name)}"
            figure = plots.slot_use_curves(valid_curves(read), slots, title, PARTS)
            plots.save(figure, stem.with_name(f"{stem.name}_{name}_use"))
            titles[f"{name}_use"] = title
    return titles


def _groups(found: Results) -> dict[str, list[Result]]:
    """Results by figure. Attention is in each figure of models with as many updates as it has."""
    groups: dict[str, list[Result]] = {}
    for result in _of_text(found):
        is_plain = result["label"].endswith(TRIALS[""].label)
        slots = _slots_of(result)
        for name, (of_slots, longer, taught) in FIGURES.items():
            is_one = _is_longer(result) == longer and (
                is_plain or taught in (None, _is_taught(result))
            )
            if is_one and slots in (of_slots, None):
                groups.setdefault(name, []).append(result)
    groups = {
        name: members
        for name, members in groups.items()
        if any(map(_is_taught if FIGURES[name][2] else _slots_of, members))
    }
    return groups | table1.by_length(_of_copies(found))


def _is_taught(result: Result) -> bool:
    """Whether a model has a teacher, began with its weights, or learned its translations."""
    is_translated = any("{translations}" in option for option in result["data"])
    has_teacher = bool(result["configuration"]["training"]["teacher"])
    return has_teacher or bool(result["init_from"]) or is_translated


def _is_longer(result: Result) -> bool:
    return bool(result["configuration"]["training"]["num_updates"] == LONGER)


def _slots_of(result: Result) -> int | None:
    return num_slots(result["configuration"]["model"]["attention"])


def _title(group: str) -> str:
    if group not in FIGURES:
        return table1.group_title(group)
    slots, is_longer, is_taught = FIGURES[group]
    updates = f"{LONGER if is_longer else UPDATES:,} updates"
    what = {True: ", with a teacher", False: ", without a teacher", None: ""}[is_taught]
    return f"Multi30k, en-de, K = {slots}, {updates}{what}"


_learning_curves = learning_curves(_groups, _title, PARTS)
