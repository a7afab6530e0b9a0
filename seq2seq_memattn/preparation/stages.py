"""The stages of preparing parallel text; a resumed preparation skips the finished ones."""

import contextlib
import dataclasses
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from seq2seq_memattn.data.manifest import Split, describe_file
from seq2seq_memattn.notes import print_note
from seq2seq_memattn.preparation.duplicates import DuplicateFinder
from seq2seq_memattn.preparation.line_pairs import iterate_pairs
from seq2seq_memattn.preparation.sample import LineSample
from seq2seq_memattn.preparation.shards import (
    Block,
    Limits,
    Shard,
    finished_shard,
    start_worker,
    write_shard,
)
from seq2seq_memattn.preparation.vocabulary import (
    FILE_NAMES,
    VocabularyOptions,
    make_vocabulary,
    write_vocabulary,
)
from seq2seq_memattn.preparation.workers import worker_pool
from seq2seq_memattn.preparation.write_once import WORK_NAME
from seq2seq_memattn.text.files import atomic_binary, open_output
from seq2seq_memattn.vocabulary import SubwordVocabulary

Spec = Mapping[str, Any]

SIDES = ("source", "target")


class EvaluationText(NamedTuple):
    """A validation or test split and its files."""

    name: str
    source: str
    target: str


@dataclasses.dataclass(frozen=True)
class TextPreparation:
    """Makes the files of a data directory, in stages.

    Args:
        directory: where the files are made; its folder `WORK_NAME` holds what resuming needs.
        train: pairs of source and target file, read one pair after the other.
        evaluation: the validation and test splits.
        unescape: whether to undo the escapes of the Moses scripts.
        vocabulary: options of the vocabularies.
        is_separate: whether each side has its own vocabulary.
        model_file: a SentencePiece model to use instead of training one, or "".
        vocab_sentences: most lines to make a vocabulary from.
        limits: length limits for training pairs.
        remove_duplicates: whether repeated training pairs are left out.
        shard_pairs: pairs read for each shard.
        processes: number of processes that encode.
        seed: seed of the sample.
    """

    directory: Path
    train: Sequence[tuple[str, str]]
    evaluation: Sequence[EvaluationText]
    unescape: bool
    vocabulary: VocabularyOptions
    is_separate: bool
    model_file: str
    vocab_sentences: int
    limits: Limits
    remove_duplicates: bool
    shard_pairs: int
    processes: int
    seed: int

    def run(self) -> tuple[Spec, Spec, dict[str, Split]]:
        """Runs the unfinished stages; returns the dicts of both vocabularies and the splits."""
        counts = self._once("counts", self._read)
        specs = self._once("vocabularies", self._make_vocabularies)
        splits = self._encode(counts, specs)
        for name in self._samples():
            (self._work / name).unlink(missing_ok=True)
        return specs["source"], specs["target"], splits

    @property
    def _work(self) -> Path:
        return self.directory / WORK_NAME

    def _once(self, name: str, stage: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
        """Runs a stage and stores its result; if a result is stored already, returns that one."""
        path = self._work / f"{name}.stage"
        if not path.exists():
            result = stage()
            with open_output(path) as stream:
                json.dump(result, stream)
        return json.loads(path.read_text(encoding="utf-8"))

    # Reading

    def _read(self) -> dict[str, int]:
        """Reads all text once; returns the number of pairs of each split, in manifest order."""
        evaluation = {text.name: self._copy(text) for text in self.evaluation}
        return {"train": self._scan(), **evaluation}

    def _copy(self, text: EvaluationText) -> int:
        """Copies the text of a split, uncompressed, for later scoring; returns its pairs."""
        paths = [self.directory / _text_name(text.name, side) for side in SIDES]
        count = 0
        with atomic_binary(paths[0]) as sources, atomic_binary(paths[1]) as targets:
            for source, target in iterate_pairs([(text.source, text.target)], self.unescape):
                sources.write(source + b"\n")
                targets.write(target + b"\n")
                count += 1
        return count

    def _scan(self) -> int:
        """Counts the training pairs, samples lines and finds duplicates; returns the count."""
        samples = {name: LineSample(self.vocab_sentences, self.seed) for name in self._samples()}
        by_side = list(samples.values()) * (2 // len(samples)) if samples else []
        count, size = 0, sum(Path(source).stat().st_size for source, _ in self.train)
        with (
            contextlib.closing(DuplicateFinder(self._work)) as finder,
            tqdm(total=size, desc="reading", unit="B", unit_scale=True) as bar,
        ):
            for pair in iterate_pairs(
                self.train, self.unescape, lambda position: bar.update(position - bar.n)
            ):
                count += 1
                if self.remove_duplicates:
                    finder.add(*pair)
                for line, sample in zip(pair, by_side, strict=False):
                    if line.strip(b" "):
                        sample.add(line)
            bar.update(size - bar.n)
            finder.find()
        for name, sample in samples.items():
            with atomic_binary(self._work / name) as stream:
                stream.writelines(line + b"\n" for line in sample.lines)
        return count

    def _samples(self) -> list[str]:
        """Returns the names of the sample files for the vocabularies, source side first."""
        if self.model_file:
            return []
        return [f"{side}.sample" for side in (SIDES if self.is_separate else ("both",))]

    # Vocabularies

    def _make_vocabularies(self) -> dict[str, Spec]:
        """Writes the vocabulary files; returns the dict of each side's vocabulary."""
        if self.model_file:
            return dict.fromkeys(SIDES, self._given_model())
        print_note(f"making a vocabulary of {self.vocabulary.size} {self.vocabulary.kind}")
        sides = SIDES if self.is_separate else ("",)
        # Each vocabulary is made in its own process, whose memory is freed when it ends.
        found = []
        for side, name in zip(sides, self._samples(), strict=True):
            with worker_pool(1) as pool:
                sample = self._work / name
                made = pool.submit(make_vocabulary, self.vocabulary, sample, self.directory, side)
                found.append(made.result())
        return dict(zip(SIDES, found * (2 // len(found)), strict=True))

    def _given_model(self) -> Spec:
        try:
            vocabulary = SubwordVocabulary(
                Path(self.model_file).read_bytes(), FILE_NAMES["subwords"]
            )
        except ValueError as error:
            raise ValueError(f"model_file: {self.model_file}: {error}") from None
        if not vocabulary.has_byte_fallback:
            print_note(
                f"{self.model_file}: has no byte fallback; unknown characters become its unknown "
                "token"
            )
        write_vocabulary(vocabulary, self.directory)
        return vocabulary.to_dict()

    # Encoding

    def _encode(self, counts: Mapping[str, int], specs: Mapping[str, Spec]) -> dict[str, Split]:
        """Writes the shards that do not exist yet; returns the splits."""
        shards: dict[str, Shard] = {}
        pending: set[Future[Shard]] = set()
        names: dict[Future[Shard], str] = {}
        writer = (self.directory, specs["source"], specs["target"])
        with (
            tqdm(total=sum(counts.values()), desc="encoding", unit=" pairs", smoothing=0) as bar,
            worker_pool(self.processes, start_worker, *writer) as pool,
        ):

            def collect(at_most: int) -> None:
                """Waits until at most `at_most` shards are unfinished."""
                while len(pending) > at_most:
                    done, _ = wait(pending, return_when=FIRST_COMPLETED)
                    for future in done:
                        pending.discard(future)
                        shards[names.pop(future)] = shard = future.result()
                        bar.update(shard.num_read)

            for block in self._blocks(counts):
                finished = finished_shard(self.directory, block.name)
                if finished:
                    shards[block.name] = finished
                    bar.initial += finished.num_read
                    bar.update(finished.num_read)
                    continue
                collect(2 * self.processes - 1)
                future = pool.submit(write_shard, block)
                names[future] = block.name
                pending.add(future)
            collect(0)
        return self._splits(counts, shards)

    def _blocks(self, counts: Mapping[str, int]) -> Iterator[Block]:
        """Yields the pairs of each shard, split by split."""
        for split in counts:
            if split == "train":
                pairs = iterate_pairs(self.train, self.unescape)
            else:  # the copied text, which is already unescaped
                source, target = (str(self.directory / _text_name(split, side)) for side in SIDES)
                pairs = iterate_pairs([(source, target)])
            number = 0
            while block := list(islice(pairs, self.shard_pairs)):
                sources, targets = zip(*block, strict=True)
                yield Block(
                    f"{split}-{number:05d}",
                    b"\n".join(sources),
                    b"\n".join(targets),
                    self._duplicates(split, number * self.shard_pairs, len(block)),
                    self.limits if split == "train" else None,
                )
                number += 1

    def _duplicates(self, split: str, start: int, count: int) -> bytes:
        """Returns one byte for each pair of a block, 1 if it occurred before."""
        if split != "train" or not self.remove_duplicates:
            return bytes(count)
        return np.fromfile(self._work / "duplicates", np.uint8, count, offset=start).tobytes()

    def _splits(self, counts: Mapping[str, int], shards: Mapping[str, Shard]) -> dict[str, Split]:
        """Returns the record of each split, from the counts of its shards."""
        splits = {}
        for split in counts:
            names = sorted(name for name in shards if name.rpartition("-")[0] == split)
            parts = [shards[name] for name in names]
            left_out: Counter[str] = Counter()
            for part in parts:
                left_out.update(part.left_out)
            files = [part.file for part in parts if part.file]
            if not files:
                raise ValueError(f"{split}: every pair was left out: {dict(left_out)}")
            if split == "train":
                print_note(
                    f"{counts[split]} training pairs; left out: "
                    f"{', '.join(f'{n} {name}' for name, n in left_out.items()) or 'none'}"
                )
            else:
                names = [_text_name(split, side) for side in SIDES]
                files += [
                    describe_file(self.directory, name, side)
                    for name, side in zip(names, SIDES, strict=True)
                ]
            splits[split] = Split(
                "tfrecord",
                tuple(files),
                sum(part.num_examples for part in parts),
                max(part.max_source_length for part in parts),
                max(part.max_target_length for part in parts),
                sum(part.num_target_tokens for part in parts),
                dict(left_out),
            )
        return splits


def _text_name(split: str, side: str) -> str:
    return f"{split}.{side}.txt"
