import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import numpy as np
import pytest

from seq2seq_memattn.serving.errors import RequestError, invalid
from seq2seq_memattn.serving.models.batch_items import Answer
from seq2seq_memattn.serving.models.batcher import Batcher
from seq2seq_memattn.serving.models.signatures import Signature, TensorSpec

TEXT = TensorSpec(np.dtype(object), (None,))
UPPER = Signature("upper", {"text": TEXT}, {"text": TEXT})
PIECES = TensorSpec(np.dtype(object), (None, None))
SPELL = Signature("spell", {"text": TEXT}, {"pieces": PIECES})


class Model:
    """A model that writes texts in capitals, waits while it is closed, and records its batches."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.is_open = threading.Event()
        self.is_open.set()

    def run(self, signature: str, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        texts = [text.decode() for text in inputs["text"]]
        self.batches.append(texts)
        assert self.is_open.wait(10)
        bad = [text for text in texts if "bad" in text]
        if bad:
            raise invalid(f"no symbol for {bad[0]}")
        if "broken" in texts:
            raise ZeroDivisionError
        if "short" in texts:
            return {"text": inputs["text"][:1]}
        if signature == "spell":
            length = max(map(len, texts))
            rows = [[*map(str.encode, text), *[b""] * (length - len(text))] for text in texts]
            return {"pieces": np.array(rows, object)}
        return {"text": np.array([text.upper().encode() for text in texts], object)}


class Asker:
    """A client that asks a batcher for a model's answers.

    Args:
        batcher: the batcher to ask.
        model: the model that answers.
    """

    def __init__(self, batcher: Batcher, model: Model) -> None:
        self.batcher = batcher
        self.model = model

    async def answer(self, *texts: str, signature: Signature = UPPER) -> Answer:
        inputs = {"text": np.array([text.encode() for text in texts], object)}
        return await self.batcher.submit(self.model, signature, inputs)

    async def ask(self, *texts: str) -> list[str]:
        outputs = (await self.answer(*texts)).outputs
        return [text.decode() for text in outputs["text"]]

    @contextlib.asynccontextmanager
    async def model_is_busy(self) -> AsyncIterator[None]:
        """A block in which the model is busy with another text, so that other requests wait."""
        self.model.is_open.clear()
        other = asyncio.create_task(self.ask("first"))
        while ["first"] not in self.model.batches:
            await asyncio.sleep(0.001)
        yield
        self.model.is_open.set()
        assert await other == ["FIRST"]

    async def together(self, *requests: Any) -> list[Any]:
        """The answers, or errors, of several requests that wait at the same time."""
        async with self.model_is_busy():
            tasks = [asyncio.create_task(self.ask(*texts)) for texts in requests]
            await asyncio.sleep(0.01)
        return await asyncio.gather(*tasks, return_exceptions=True)


def check(
    test: Callable[[Asker], Awaitable[None]],
    max_batch: int = 4,
    max_wait: float = 0.0,
    max_queue: int = 20,
) -> Model:
    """Runs a test with a batcher; asserts that no thread is left; returns the model."""
    before = set(threading.enumerate())
    model = Model()

    async def run() -> None:
        batcher = Batcher(max_batch, max_wait, max_queue)
        try:
            await test(Asker(batcher, model))
            assert batcher.num_waiting == 0
        finally:
            model.is_open.set()
            batcher.close()

    asyncio.run(run())
    assert not set(threading.enumerate()) - before
    return model


def test_requests_that_wait_share_a_batch() -> None:
    async def test(asker: Asker) -> None:
        assert await asker.together(["a"], ["b"], ["c"]) == [["A"], ["B"], ["C"]]

    assert check(test).batches == [["first"], ["a", "b", "c"]]


def test_what_comes_right_after_an_answer_is_answered_too() -> None:
    async def test(asker: Asker) -> None:
        async with asyncio.timeout(20):
            for number in range(50):
                assert await asker.ask(f"a{number}") == [f"A{number}"]

    check(test)


def test_a_mistake_in_the_batcher_leaves_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(batcher: Batcher) -> None:
        raise ZeroDivisionError

    async def test(asker: Asker) -> None:
        async with asyncio.timeout(20):
            with monkeypatch.context() as patch, pytest.raises(ZeroDivisionError):
                patch.setattr(Batcher, "_next_batch", fail)
                await asker.ask("a")
            assert await asker.ask("b") == ["B"]

    check(test)


def test_the_oldest_goes_with_those_of_nearest_length() -> None:
    async def test(asker: Asker) -> None:
        texts = ["x" * length for length in (9, 1, 2, 8, 3, 7)]
        answers = await asker.together(*([text] for text in texts))
        assert answers == [[text.upper()] for text in texts]

    batches = check(test, max_batch=3).batches
    assert [[len(text) for text in batch] for batch in batches[1:]] == [[9, 8, 7], [1, 2, 3]]


def test_a_large_request_is_cut_and_keeps_its_order() -> None:
    texts = [chr(97 + index) * (1 + index * 7 % 10) for index in range(10)]

    async def test(asker: Asker) -> None:
        answers = await asker.together(["z"], texts)
        assert answers == [["Z"], [text.upper() for text in texts]]
        assert (await asker.answer(*texts)).model_seconds > 0

    assert max(map(len, check(test).batches)) == 4


def test_a_lone_client_does_not_wait_and_several_do() -> None:
    async def test(asker: Asker) -> None:
        async with asyncio.timeout(20):
            await asker.ask("alone")
            await asker.together(["a"], ["b"])
        # There have been two clients, so a free model waits for the second one.
        first = asyncio.create_task(asker.ask("c"))
        await asyncio.sleep(0.05)
        await asyncio.gather(first, asker.ask("d"))

    assert check(test, max_wait=60.0).batches[-1] == ["c", "d"]


def test_a_lone_client_does_not_wait_for_the_rest_of_its_own_request() -> None:
    async def test(asker: Asker) -> None:
        async with asyncio.timeout(20):
            assert await asker.ask(*"abcdef") == [*"ABCDEF"]
            assert await asker.ask("g") == ["G"]

    batches = check(test, max_batch=4, max_wait=60.0).batches
    assert list(map(len, batches)) == [4, 2, 1]


def test_the_wait_ends() -> None:
    async def test(asker: Asker) -> None:
        await asker.together(["a"], ["b"])
        assert await asker.ask("c") == ["C"]

    check(test, max_wait=0.02)


def test_what_is_refused_hurts_only_the_request_that_it_is_in() -> None:
    async def test(asker: Asker) -> None:
        good, bad, other = await asker.together(["a"], ["b", "bad one"], ["c"])
        assert good == ["A"] and other == ["C"]
        assert isinstance(bad, RequestError) and bad.status == 400
        assert bad.message == "no symbol for bad one"
        assert await asker.ask("d") == ["D"]

    check(test)


def test_a_model_that_fails_otherwise_fails_the_whole_batch_and_no_other() -> None:
    async def test(asker: Asker) -> None:
        errors = await asker.together(["a"], ["broken"])
        assert [type(error) for error in errors] == [ZeroDivisionError] * 2
        assert await asker.ask("d") == ["D"]

    check(test)


def test_too_few_rows_are_never_taken_for_others() -> None:
    async def test(asker: Asker) -> None:
        good, bad = await asker.together(["a"], ["short", "b"])
        assert good == ["A"]
        assert isinstance(bad, RequestError) and bad.status == 500

    check(test)


def test_a_full_queue_refuses_and_says_when_to_come_again() -> None:
    async def test(asker: Asker) -> None:
        async with asker.model_is_busy():
            waiting = asyncio.create_task(asker.ask(*"abc"))
            await asyncio.sleep(0.01)
            with pytest.raises(RequestError, match="3 of 3 rows wait") as raised:
                await asker.ask("d")
            assert raised.value.status == 503
            assert int(raised.value.headers["Retry-After"]) > 0
        assert await waiting == ["A", "B", "C"]
        with pytest.raises(RequestError, match="at most 3 rows") as raised:
            await asker.ask(*"abcd")
        assert raised.value.status == 400

    check(test, max_queue=3)


def test_rows_of_a_client_that_has_gone_are_not_computed() -> None:
    async def test(asker: Asker) -> None:
        async with asker.model_is_busy():
            gone = asyncio.create_task(asker.ask("gone", "away"))
            waiting = asyncio.create_task(asker.ask("b"))
            await asyncio.sleep(0.01)
            gone.cancel()
            await asyncio.sleep(0.01)
            assert asker.batcher.num_waiting == 1
        assert await waiting == ["B"]

    assert check(test).batches == [["first"], ["b"]]


def test_a_client_that_goes_while_its_rows_are_computed_disturbs_nobody() -> None:
    async def test(asker: Asker) -> None:
        asker.model.is_open.clear()
        gone = asyncio.create_task(asker.ask("gone"))
        while ["gone"] not in asker.model.batches:
            await asyncio.sleep(0.001)
        gone.cancel()
        waiting = asyncio.create_task(asker.ask("b"))
        await asyncio.sleep(0.01)
        asker.model.is_open.set()
        assert await waiting == ["B"]

    check(test)


def test_answers_that_would_be_padded_to_others_are_computed_alone() -> None:
    async def test(asker: Asker) -> None:
        async with asker.model_is_busy():
            tasks = [
                asyncio.create_task(asker.answer(*texts, signature=SPELL))
                for texts in (["ab", "c"], ["defg"])
            ]
            await asyncio.sleep(0.01)
        pieces = [(await task).outputs["pieces"].tolist() for task in tasks]
        assert pieces == [[[b"a", b"b"], [b"c", b""]], [[b"d", b"e", b"f", b"g"]]]
        with pytest.raises(RequestError, match="at most 4 rows .* 'spell', got 5"):
            await asker.answer(*"abcde", signature=SPELL)

    assert check(test).batches[1:] == [["ab", "c"], ["defg"]]


def test_other_models_and_shapes_share_no_batch() -> None:
    numbers = Signature(
        "upper",
        {"text": TEXT, "x": TensorSpec(np.dtype("f4"), (None, None))},
        {"text": TEXT},
    )

    async def test(asker: Asker) -> None:
        other = Asker(asker.batcher, Model())
        async with asker.model_is_busy():
            tasks = [asyncio.create_task(one.answer("a")) for one in (asker, other, asker)]
            for width in (2, 3):
                inputs = {"text": np.array([b"b"], object), "x": np.zeros([1, width], np.float32)}
                submitted = asker.batcher.submit(asker.model, numbers, inputs)
                tasks.append(asyncio.create_task(submitted))
            await asyncio.sleep(0.01)
        await asyncio.gather(*tasks)
        assert other.model.batches == [["a"]]

    assert check(test).batches == [["first"], ["a", "a"], ["b"], ["b"]]


def test_one_large_request_uses_all_parallel_batches() -> None:
    both = threading.Barrier(2)

    class Meeting(Model):
        """A model that computes nothing until two batches are computed at the same time."""

        def run(self, signature: str, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
            both.wait(10)
            return super().run(signature, inputs)

    async def run() -> None:
        batcher = Batcher(max_batch=2, max_wait=0.0, max_queue=8, parallel_batches=2)
        try:
            assert await Asker(batcher, Meeting()).ask(*"abcd") == list("ABCD")
        finally:
            batcher.close()

    asyncio.run(run())
