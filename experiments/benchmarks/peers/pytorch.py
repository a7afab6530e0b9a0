"""Plain PyTorch with Bahdanau attention, written by hand for speed.

The equations are those of this project's model. The following saves time:

* The encoder reads a batch in groups of similar lengths, which leaves most of the padding out.
  `pack_padded_sequence` would leave all of it out, but PyTorch's LSTM has its fast kernels (oneDNN)
  only for padded batches. Compared with whole padded batches, the encoder's CPU time in training
  (lengths of 1..50, batches of 128, one thread) was 1.2 to 1.4 times as long with packed batches
  and 0.64 times as long with groups of 32.
* Keys are computed once per source, and sources are not repeated for the hypotheses of a beam.
* A table holds what each token adds to the gates of the lower layer.
* Beam search stores parents instead of copying growing hypotheses.
* Finished sentences leave the batch.
* In a large vocabulary, the best tokens are found in two stages.
* `torch.compile` fuses the operations between the matrix products. The option `eager` turns this
  off.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from experiments.benchmarks.peers.protocol import (
    Batch,
    Decode,
    Setting,
    System,
    Update,
    run,
    until_end,
)
from experiments.benchmarks.peers.torch_update import make_update

PADDING, START, END = 0, 1, 2
NUM_SPECIAL = 3
NEVER = -1e9  # log-probability or energy of a choice that must not be made
BLOCK = 128  # columns per block, when the best columns are found in two stages
MANY_BLOCKS = 32  # two stages are used from this number of blocks on
GROUP = 32  # sentences that the encoder reads together; 16 are as fast, 64 are slower
STAYS = 0.9  # above this share of unfinished sentences, none is removed: removing copies data
ROWS = 16  # training drops finished rows in multiples of this: each drop costs a copy in backprop


class Source(NamedTuple):
    """The encoded sources.

    Fields:
        keys: float [sentences, source_length, units].
        rows: float [sentences, source_length, 2 * units].
        bias: float [sentences, 1, source_length]. 0 on tokens, `NEVER` on padding.
    """

    keys: Any
    rows: Any
    bias: Any


class State(NamedTuple):
    """The decoder's state.

    Fields:
        lower_output, lower_memory, upper_output, upper_memory: float [hypotheses, units].
        context: float [hypotheses, 2 * units].
    """

    lower_output: Any
    lower_memory: Any
    upper_output: Any
    upper_memory: Any
    context: Any


class Model(nn.Module):
    """A bidirectional two-layer encoder, and a two-layer decoder with additive attention.

    Args:
        size: int > 0. Size of the vocabulary.
        units: int > 0. Width of all layers.
    """

    def __init__(self, size: int, units: int) -> None:
        super().__init__()
        self.units = units
        self.source_embedding = nn.Embedding(size, units)
        self.target_embedding = nn.Embedding(size, units)
        self.forwards = nn.LSTM(units, units, num_layers=2, batch_first=True)
        self.backwards = nn.LSTM(units, units, num_layers=2, batch_first=True)
        self.key = nn.Linear(2 * units, units)
        self.query = nn.Linear(units, units)
        self.energy = nn.Parameter(torch.empty(units))
        self.gates_of_token = nn.Linear(units, 4 * units)
        self.gates_of_state = nn.Linear(3 * units, 4 * units, bias=False)
        self.upper_gates = nn.Linear(2 * units, 4 * units)
        self.mixing = nn.Linear(3 * units, units)
        self.logits = nn.Linear(units, size)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -0.1, 0.1)

    def encode(self, ids: Any, lengths: Any) -> Source:
        """Encodes sources, the longest first.

        Args:
            ids: int64 [sentences, source_length].
            lengths: int64 [sentences].
        """
        groups = zip(ids.split(GROUP), lengths.split(GROUP), strict=True)
        encoded = [self._encode_group(group[:, : int(sizes[0])], sizes) for group, sizes in groups]
        width = ids.shape[1]
        rows = [functional.pad(group, (0, 0, 0, width - group.shape[1])) for group in encoded]
        rows = torch.cat(rows)  # [sentences, source_length, 2 * units]
        is_token = torch.arange(width) < lengths[:, None]
        bias = torch.where(is_token, 0.0, NEVER)[:, None, :]
        return Source(self.key(rows), rows, bias)

    def _encode_group(self, ids: Any, lengths: Any) -> Any:
        """Returns encoder outputs [sentences, source_length, 2 * units].

        In both directions the padding comes after all tokens, so it does not change their outputs.
        """
        positions = torch.arange(ids.shape[1])
        last = lengths[:, None] - 1
        mirrored = torch.where(positions <= last, last - positions, positions)
        forward, _ = self.forwards(self.source_embedding(ids))
        backward, _ = self.backwards(self.source_embedding(ids.gather(1, mirrored)))
        backward = backward.gather(1, mirrored[:, :, None].expand(-1, -1, self.units))
        return torch.cat([forward, backward], 2)

    def first_state(self, num_hypotheses: int) -> State:
        """Returns the first state of a number of hypotheses: zeros."""
        widths = [self.units] * 4 + [2 * self.units]
        return State(*(torch.zeros(num_hypotheses, width) for width in widths))

    def step(self, gates_of_token: Any, state: State, source: Source) -> tuple[Any, State]:
        """Advances all hypotheses by one step.

        Args:
            gates_of_token: float [hypotheses, 4 * units]. What the token adds to the lower gates.
            state: the decoder's state.
            source: the sources; each has the same number of hypotheses.

        Returns:
            outputs: float [hypotheses, units].
            state: the next state.
        """
        both = torch.cat([state.context, state.lower_output], 1)
        gates = torch.addmm(gates_of_token, both, self.gates_of_state.weight.t())
        lower_output, lower_memory = lstm(gates, state.lower_memory)
        gates = self.upper_gates(torch.cat([lower_output, state.upper_output], 1))
        upper_output, upper_memory = lstm(gates, state.upper_memory)
        context = self.read(self.query(upper_output), source)
        outputs = torch.tanh(self.mixing(torch.cat([upper_output, context], 1)))
        return outputs, State(lower_output, lower_memory, upper_output, upper_memory, context)

    def read(self, queries: Any, source: Source) -> Any:
        """Returns contexts [hypotheses, 2 * units] for queries [hypotheses, units]."""
        sentences = source.keys.shape[0]
        queries = queries.view(sentences, -1, 1, self.units)  # [sentences, beam, 1, units]
        hidden = torch.tanh(source.keys[:, None] + queries)
        energies = (hidden * self.energy).sum(3)  # [sentences, beam, source_length]
        scores = functional.softmax(energies + source.bias, 2)
        return torch.bmm(scores, source.rows).view(-1, 2 * self.units)


def lstm(gates: Any, memory: Any) -> tuple[Any, Any]:
    """Returns an LSTM cell's output and memory; gates [rows, 4 * units] have no activation yet."""
    enter, forget, new, leave = gates.chunk(4, 1)
    memory = torch.sigmoid(forget) * memory + torch.sigmoid(enter) * torch.tanh(new)
    return torch.sigmoid(leave) * torch.tanh(memory), memory


def best(scores: Any, number: int) -> tuple[Any, Any]:
    """Returns the largest scores of each row in descending order, and their columns.

    Wide rows are split into blocks. The largest scores are in the blocks with the largest maxima.
    """
    rows, width = scores.shape
    if width % BLOCK or width < MANY_BLOCKS * BLOCK:
        return scores.topk(number, 1)
    blocks = scores.view(rows, -1, BLOCK)
    chosen = blocks.amax(2).topk(number, 1).indices
    candidates = blocks.gather(1, chosen[:, :, None].expand(-1, -1, BLOCK)).view(rows, -1)
    found, places = candidates.topk(number, 1)
    return found, chosen.gather(1, places // BLOCK) * BLOCK + places % BLOCK


class History:
    """The tokens chosen at each step, and the hypothesis that each token continues.

    Args:
        num_steps, num_sentences, beam: int > 0.
    """

    def __init__(self, num_steps: int, num_sentences: int, beam: int) -> None:
        shape = (num_steps, num_sentences, beam)
        self.tokens = torch.full(shape, END)
        self.parents = torch.arange(beam).expand(shape).clone()
        self.log_probs = torch.full(shape[1:], NEVER)

    def best(self) -> list[list[int]]:
        """Returns the ids of the best hypothesis of each sentence."""
        sentences = torch.arange(len(self.log_probs))
        place = self.log_probs.argmax(1)
        ids = []
        for tokens, parents in zip(self.tokens.flip(0), self.parents.flip(0), strict=True):
            ids.append(tokens[sentences, place])
            place = parents[sentences, place]
        return torch.stack(ids[::-1], 1).tolist()


class BeamSearch:
    """Beam search that forces every hypothesis to the length of its source.

    Args:
        model: the `Model`.
        beam: int > 0. Hypotheses per sentence.
        compiled: whether `torch.compile` compiles a step.
    """

    def __init__(self, model: Model, beam: int, compiled: bool) -> None:
        self.model, self.beam = model, beam
        with torch.inference_mode():
            self.table = model.gates_of_token(model.target_embedding.weight)  # [size, 4 * units]
        self._extend = _maybe_compiled(self._all_extensions, compiled)

    def _all_extensions(
        self,
        tokens: Any,
        origins: Any,
        log_probs: Any,
        is_finished: Any,
        is_due: Any,
        state: State,
        source: Source,
    ) -> tuple[Any, State]:
        """Scores each hypothesis with each next token; returns [hypotheses, size] and the state."""
        state = State(*(part[origins] for part in state))
        outputs, state = self.model.step(self.table[tokens], state, source)
        logits = self.model.logits(outputs)
        is_end = torch.arange(logits.shape[1]) == END
        forced = torch.where(is_due, -NEVER, NEVER)[:, None]
        step_log_probs = functional.log_softmax(torch.where(is_end, forced, logits), 1)
        unchanged = torch.where(is_end, 0.0, NEVER)
        step_log_probs = torch.where(is_finished[:, None], unchanged, step_log_probs)
        return log_probs[:, None] + step_log_probs, state

    @torch.inference_mode()
    def __call__(self, ids: Any, lengths: Any) -> list[list[int]]:
        """Returns the ids of the best hypothesis of each sentence, including the end token."""
        beam, sentences = self.beam, torch.arange(len(ids))  # sentences still in the batch
        history = History(int(lengths.max()) + 1, len(ids), beam)
        source, state = self.model.encode(ids, lengths), self.model.first_state(len(ids) * beam)
        limits = lengths.repeat_interleave(beam)
        tokens, origins = torch.full_like(limits, START), torch.arange(len(limits))
        is_finished = torch.zeros_like(limits, dtype=torch.bool)
        log_probs = torch.full((len(ids), beam), NEVER)
        log_probs[:, 0] = 0.0  # only one: at first, all hypotheses of a sentence are equal
        for step in range(len(history.tokens)):
            scores, state = self._extend(
                *(tokens, origins, log_probs.view(-1), is_finished, limits <= step, state, source)
            )
            size = scores.shape[1]
            log_probs, chosen = best(scores.view(len(sentences), -1), beam)
            parents, tokens = chosen // size, (chosen % size).view(-1)
            history.tokens[step, sentences] = tokens.view(-1, beam)
            history.parents[step, sentences] = parents
            origins = (parents + beam * torch.arange(len(sentences))[:, None]).view(-1)
            is_finished = is_finished[origins] | (tokens == END)
            is_alive = ~is_finished.view(-1, beam).all(1)
            num_alive = int(is_alive.sum())
            if num_alive > STAYS * len(sentences):
                continue
            history.log_probs[sentences] = log_probs
            if not num_alive:
                break
            kept = is_alive.repeat_interleave(beam)
            state = State(*(part[origins[kept]] for part in state))
            origins = torch.arange(beam * num_alive)
            tokens, is_finished, limits = tokens[kept], is_finished[kept], limits[kept]
            sentences, log_probs = sentences[is_alive], log_probs[is_alive]
            width = int(limits.max())
            source = Source(
                source.keys[is_alive, :width],
                source.rows[is_alive, :width],
                source.bias[is_alive, :, :width],
            )
        return history.best()


def make_model(setting: Setting) -> Model:
    """Builds the model of a setting. A large vocabulary is padded to whole blocks."""
    torch.manual_seed(0)
    torch.set_num_threads(setting.threads)
    size = setting.vocab + NUM_SPECIAL
    if size > MANY_BLOCKS * BLOCK:
        size = -(-size // BLOCK) * BLOCK
    return Model(size, setting.units)


def _maybe_compiled(function: Callable[..., Any], compiled: bool) -> Callable[..., Any]:
    return torch.compile(function, dynamic=True) if compiled else function


def _tensors(batch: Batch) -> tuple[Any, Any]:
    return torch.from_numpy(batch.ids(NUM_SPECIAL, PADDING)), torch.from_numpy(batch.lengths)


def make_decoder(setting: Setting) -> Decode:
    """Returns a function that decodes with `BeamSearch`."""
    search = BeamSearch(make_model(setting).eval(), setting.beam, "eager" not in setting.option)
    return lambda batch: until_end(search(*_tensors(batch)), END, NUM_SPECIAL)


def rows_of_steps(lengths: np.ndarray) -> list[int]:
    """Returns the number of rows to compute at each training step, in multiples of `ROWS`.

    Args:
        lengths: int [batch]. Lengths without the end token, in descending order; a row takes one
            step more than its length.
    """
    ends = np.bincount(lengths + 1)[:-1]  # how many rows end before each step
    unfinished = len(lengths) - np.cumsum(ends)
    return np.minimum(len(lengths), np.ceil(unfinished / ROWS) * ROWS).astype(int).tolist()


def make_trainer(setting: Setting) -> Update:
    """Returns a function that trains with Adam.

    Before the loop over steps, one matrix product computes what each target token adds to the
    gates. After the loop, another one computes the logits of all steps.
    """
    model = make_model(setting).train()
    advance = _maybe_compiled(model.step, "eager" not in setting.option)

    def loss_of(batch: Batch) -> Any:
        ids, lengths = _tensors(batch)
        inputs = functional.pad(ids, (1, 0), value=START)
        targets = functional.pad(ids, (0, 1), value=PADDING)
        targets[torch.arange(len(ids)), lengths] = END
        source, state = model.encode(ids, lengths), model.first_state(len(ids))
        gates = model.gates_of_token(model.target_embedding(inputs.t()))
        outputs, wanted = [], []
        steps = zip(gates.unbind(0), rows_of_steps(batch.lengths), strict=True)
        for step, (gates_of_token, rows) in enumerate(steps):
            if rows < len(source.keys):
                state = State(*(part[:rows] for part in state))
                source = Source(*(part[:rows] for part in source))
            output, state = advance(gates_of_token[:rows], state, source)
            outputs.append(output)
            wanted.append(targets[:rows, step])
        logits = model.logits(torch.cat(outputs))
        return functional.cross_entropy(logits, torch.cat(wanted), ignore_index=PADDING)

    return make_update(model, loss_of)


SYSTEM = System(
    "pytorch",
    {"torch": torch.__version__, "numpy": np.__version__},
    make_decoder,
    make_trainer,
    attentions=("bahdanau",),
    options=("eager",),
)

if __name__ == "__main__":
    run(SYSTEM)
