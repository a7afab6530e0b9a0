"""The stages of preparing parallel text; a resumed preparation skips the finished ones."""

import contextlib
import dataclasses
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from seq2seq_memattn.compute.hardware import num_cores
from seq2seq_memattn.data.manifest import Split, describe_file
from seq2seq_memattn.notes import STANDARD_ERROR, print_note
from seq2seq_memattn.preparation.duplicates import DuplicateFinder
from seq2seq_memattn.preparation.line_pairs import iterate_pairs
from seq2seq_memattn.preparation.options import TextOptions
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
from seq2seq_memattn.text.form import TextForm
from seq2seq_memattn.vocabulary import SubwordVocabulary, vocabulary_from_dict

Spec = Mapping[str, Any]
FilePair = tuple[str, str]

SIDES = ("source", "target")
# The size of the sample is part of the unfinished work.
LESS_TEXT = "or, after removing {}, with a smaller --vocab_sentences,"


class TextFiles(NamedTuple):
    """The files to prepare; line N of a source file belongs to line N of its target file.

    Fields:
        train: pairs of source and target file, read one pair after the other.
        evaluation: source and target file of each other split, by name, "valid" first.
        form: `TextForm` of the text in the files.
    """

    train: tuple[FilePair, ...]
    evaluation: Mapping[str, FilePair]
    form: TextForm


@dataclasses.dataclass(frozen=True)
class TextPreparation:
    """Makes the files of a data directory, in stages.

    Args:
        directory: where the files are made; its folder `WORK_NAME` holds what is needed to resume.
        files: what to prepare.
        options: how to prepare them.
    """

    directory: Path
    files: TextFiles
    options: TextOptions

    def run(self) -> tuple[Spec, Spec, dict[str, Split]]:
        """Runs unfinished stages; returns both vocabularies as dicts, and the splits by name."""
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
        """Returns a stage's stored result; without one, runs the stage and stores its result."""
        path = self._work / f"{name}.stage"
        if not path.exists():
            result = stage()
            with open_output(path) as stream:
                json.dump(result, stream)
        return json.loads(path.read_text(encoding="utf-8"))

    # Reading

    def _read(self) -> dict[str, int]:
        """Reads all text once; returns the number of pairs of each split, in manifest order."""
        evaluation = {name: self._copy(name, pair) for name, pair in self.files.evaluation.items()}
        return {"train": self._scan(), **evaluation}

    def _copy(self, name: str, pair: FilePair) -> int:
        """Copies a split's text, uncompressed, for later scoring; returns the number of pairs."""
        paths = [self.directory / _text_name(name, side) for side in SIDES]
        count = 0
        with atomic_binary(paths[0]) as sources, atomic_binary(paths[1]) as targets:
            for source, target in iterate_pairs([pair], self.options.unescape):
                sources.write(source + b"\n")
                targets.write(target + b"\n")
                count += 1
        return count

    def _scan(self) -> int:
        """Counts the training pairs, samples lines and finds duplicates; returns the count."""
        options = self.options
        samples = {
            name: LineSample(options.vocab_sentences, options.seed) for name in self._samples()
        }
        by_side = list(samples.values()) * (2 // len(samples)) if samples else []
        count, size = 0, sum(Path(source).stat().st_size for source, _ in self.files.train)
        with (
            contextlib.closing(DuplicateFinder(self._work)) as finder,
            tqdm(total=size, desc="reading", unit="B", unit_scale=True, file=STANDARD_ERROR) as bar,
        ):
            for pair in iterate_pairs(
                self.files.train, options.unescape, lambda position: bar.update(position - bar.n)
            ):
                count += 1
                if options.remove_duplicates:
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
        if self.options.model_file:
            return []
        sides = SIDES if self.options.separate_vocabularies else ("both",)
        return [f"{side}.sample" for side in sides]

    # Vocabularies

    def _make_vocabularies(self) -> dict[str, Spec]:
        """Writes the vocabulary files; returns the dict of each side's vocabulary."""
        options = self.options
        if options.model_file:
            return dict.fromkeys(SIDES, self._given_model(options.model_file))
        wanted = VocabularyOptions(
            options.kind, options.vocab_size, options.normalisation, options.character_coverage
        )
        print_note(f"making a vocabulary of {wanted.size} {wanted.kind}")
        sides = SIDES if options.separate_vocabularies else ("",)
        # Each vocabulary is made in its own process, whose memory is freed when it ends.
        found = []
        for side, name in zip(sides, self._samples(), strict=True):
            with worker_pool(1, LESS_TEXT.format(self.directory)) as pool:
                sample = self._work / name
                made = pool.submit(make_vocabulary, wanted, sample, self.directory, side)
                found.append(made.result())
        return dict(zip(SIDES, found * (2 // len(found)), strict=True))

    def _given_model(self, path: str) -> Spec:
        try:
            vocabulary = SubwordVocabulary(Path(path).read_bytes(), FILE_NAMES["subwords"])
        except ValueError as error:
            raise ValueError(f"model_file: {path}: {error}") from None
        if not vocabulary.has_byte_fallback:
            print_note(f"{path}: has no byte fallback; unknown characters become its unknown token")
        write_vocabulary(vocabulary, self.directory)
        return vocabulary.to_dict()

    # Encoding

    def _encode(self, counts: Mapping[str, int], specs: Mapping[str, Spec]) -> dict[str, Split]:
        """Writes the shards that do not exist yet; returns the splits."""
        for spec in specs.values():  # a worker that cannot load one could not say why
            vocabulary_from_dict(spec, self.directory)
        shards: dict[str, Shard] = {}
        pending: set[Future[Shard]] = set()
        names: dict[Future[Shard], str] = {}
        writer = (self.directory, specs["source"], specs["target"])
        processes = self.options.processes or num_cores()
        with (
            tqdm(
                total=sum(counts.values()),
                desc="encoding",
                unit=" pairs",
                smoothing=0,
                file=STANDARD_ERROR,
            ) as bar,
            worker_pool(processes, "with fewer --processes", start_worker, *writer) as pool,
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
                    if not bar.disable:  # a disabled bar has no `initial`
                        bar.initial += finished.num_read
                    bar.update(finished.num_read)
                    continue
                collect(2 * processes - 1)
                future = pool.submit(write_shard, block)
                names[future] = block.name
                pending.add(future)
            collect(0)
        return self._splits(counts, shards)

    def _blocks(self, counts: Mapping[str, int]) -> Iterator[Block]:
        """Yields the pairs of each shard, split by split."""
        options = self.options
        limits = Limits(options.most_tokens, options.max_length_ratio)
        for split in counts:
            if split == "train":
                pairs = iterate_pairs(self.files.train, options.unescape)
            else:  # the copied text, which is already unescaped
                source, target = (str(self.directory / _text_name(split, side)) for side in SIDES)
                pairs = iterate_pairs([(source, target)])
            number = 0
            while block := list(islice(pairs, options.shard_pairs)):
                sources, targets = zip(*block, strict=True)
                yield Block(
                    f"{split}-{number:05d}",
                    b"\n".join(sources),
                    b"\n".join(targets),
                    self._duplicates(split, number * options.shard_pairs, len(block)),
                    limits if split == "train" else None,
                )
                number += 1

    def _duplicates(self, split: str, start: int, count: int) -> bytes:
        """Returns one byte for each pair of a block, 1 if it occurred before."""
        if split != "train" or not self.options.remove_duplicates:
            return bytes(count)
        return np.fromfile(self._work / "duplicates", np.uint8, count, offset=start).tobytes()

    def _splits(self, counts: Mapping[str, int], shards: Mapping[str, Shard]) -> dict[str, Split]:
        """Returns the record of each split, from the counts of its shards."""
        splits = {}
        for split in counts:
            names = [name for name in shards if name.rpartition("-")[0] == split]
            names.sort(key=lambda name: int(name.rpartition("-")[2]))
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
                "npy",
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
