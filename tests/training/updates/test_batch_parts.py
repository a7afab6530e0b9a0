import numpy as np

from seq2seq_memattn.data.batching import BATCH_KEYS, make_batch
from seq2seq_memattn.training.updates.batch_parts import cut
from seq2seq_memattn.vocabulary import END_ID, PAD_ID

SENTENCES = [np.full([length], 5, np.int32) for length in (3, 1, 0, 4, 2)]
BATCH = make_batch(SENTENCES, SENTENCES)


def test_one_part_is_the_batch() -> None:
    assert cut(BATCH, 1) == [BATCH]


def test_parts_have_each_row_once_and_equal_sizes() -> None:
    for num_parts in (2, 3, 5, 8):
        parts = cut(BATCH, num_parts)
        assert len(parts) == num_parts
        (size,) = {len(part["source"]) for part in parts}
        assert size == -(-5 // num_parts)
        for name in BATCH_KEYS:
            joined = np.stack([part[name] for part in parts], axis=1).reshape(size * num_parts, -1)
            np.testing.assert_array_equal(joined[:5], BATCH[name])
            added = joined[5:]
            if name == "target_outputs":
                assert (added == PAD_ID).all()  # nothing that counts
            if name == "source":
                assert (added[:, 0] == END_ID).all()
                assert (added[:, 1:] == PAD_ID).all()


def test_tensors_are_cut_as_arrays_are() -> None:
    import tensorflow as tf

    tensors = {name: tf.constant(ids) for name, ids in BATCH.items()}
    for ours, theirs in zip(cut(tensors, 2), cut(BATCH, 2), strict=True):
        for name in BATCH_KEYS:
            np.testing.assert_array_equal(ours[name], theirs[name])
