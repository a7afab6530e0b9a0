"""`TokenCrossEntropy` gives the losses of TensorFlow Addons."""

from seq2seq_memattn.losses import TokenCrossEntropy
from tests.addons.recorded import recorded
from tests.inputs import tensor
from tests.tolerances import as_array, assert_close

ARRAYS = recorded("functions")
TARGETS, LOGITS = tensor(ARRAYS["targets"], "int32"), tensor(ARRAYS["logits"])


def test_the_mean_is_that_of_sequence_loss() -> None:
    assert_close(TokenCrossEntropy()(TARGETS, LOGITS), ARRAYS["mean_loss"])


def test_sums_and_losses_of_tokens_are_those_of_sequence_loss() -> None:
    of_tokens = TokenCrossEntropy(reduction=None)(TARGETS, LOGITS)
    assert_close(of_tokens, ARRAYS["loss_of_each_token"])
    lengths = ARRAYS["real"].sum(axis=1)
    assert_close(as_array(of_tokens).sum(axis=1) / lengths, ARRAYS["loss_of_each_sentence"])
    summed = TokenCrossEntropy(reduction="sum")(TARGETS, LOGITS)
    assert_close(summed, ARRAYS["loss_of_each_token"].sum())


def test_a_weighted_loss_is_that_of_the_class_sequence_loss() -> None:
    loss = TokenCrossEntropy()(TARGETS, LOGITS, sample_weight=ARRAYS["weights"])
    assert_close(loss, ARRAYS["summed_weighted_loss"])
