"""Searches of one batch, with steps compiled by XLA."""

from typing import Any

import keras
import numpy as np
from keras import ops

from seq2seq_memattn.search.aligned_models import check_coverage
from seq2seq_memattn.search.compiled_search import CompiledSearch
from seq2seq_memattn.search.draw import row_seeds
from seq2seq_memattn.search.eager import Inputs, kept_search
from seq2seq_memattn.search.in_graph import BeamResult
from seq2seq_memattn.search.options import SearchOptions
from seq2seq_memattn.search.rules import step_limits


def search_with_xla(
    model: Any,
    inputs: Inputs,
    options: SearchOptions,
    return_alignments: bool = False,
) -> BeamResult:
    """Runs `beam_search` or `sample` with steps that XLA compiles.

    Args:
        model: `Seq2Seq`, `Searchable` or `Ensemble`.
        inputs: `Inputs`, checked, with at least one source.
        options, return_alignments: see `CompiledSearch`.
    """
    if options.coverage_penalty:
        check_coverage(model, inputs.source)
    source = np.asarray(inputs.source)
    # A power of two: few different sizes, so few compilations.
    batch_size = 1 << (len(source) - 1).bit_length()
    search = kept_search(
        model,
        (options, return_alignments, len(source) == 1),
        lambda: CompiledSearch(model, options, batch_size, return_alignments, jit_compile=True),
    )
    search.update_weights()
    prefix, least, seeds = inputs.prefix, inputs.min_length, None
    limits, _ = step_limits(inputs.source, inputs.max_length, model.pad_id, prefix)
    if least is not None:
        least = ops.zeros_like(limits) + least
    if options.sampling is not None:
        seeds = row_seeds(inputs.seed, ops.arange(len(source), dtype="int32"))
    rules = [
        () if one is None or isinstance(one, tuple) else np.asarray(one)
        for one in (least, prefix, seeds)
    ]
    found = search(source, np.asarray(limits), *rules)
    return keras.tree.map_structure(ops.convert_to_tensor, found)
