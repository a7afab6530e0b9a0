"""What the figures of learning curves share, Figures 3 to 5 of the memory paper."""

from experiments.reproduction.pages import Groups, short_name
from experiments.reproduction.results import Result, Results
from experiments.studies import table2

OF_CURVES = "BLEU of the validation set during training, by beam search."


def by_scores(groups: Groups) -> Groups:
    """Groups of one K each, whose curves are called by their pairs of scores."""

    def renamed(results: Results) -> dict[str, list[Result]]:
        found: dict[str, list[Result]] = {}
        for name, members in groups(results).items():
            for result in members:
                model = result["configuration"]["model"]
                encoder = model["encoder_score"]
                if encoder == "softmax" and model["normalise_over"] == "slots":
                    encoder = "softmax over slots"
                pair = f"{encoder} / {model['decoder_score']}"
                group = f"{name}_{short_name(model['attention'])}"
                found.setdefault(group, []).append({**result, "curve_name": pair})
        return found

    return renamed


def copy_title(group: str) -> str:
    """The title of a group: L = 20, K = 32 for l20_k32."""
    sizes = (f"{part[0].upper()} = {part[1:]}" for part in group.split("_"))
    return f"Copy task, {', '.join(sizes)}"


def translation_title(group: str) -> str:
    """The title of a group: Multi30k, en-de, K = 32 for multi30k_en_de_k32."""
    _, _, slots = group.partition("_k")
    return ", ".join([table2.group_title(group), *([f"K = {slots}"] if slots else [])])
