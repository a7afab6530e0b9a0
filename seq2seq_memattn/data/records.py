"""Pairs of token ids as TFRecords, written and read without TensorFlow.

A record is one pair: the source's ids, END_ID, the target's ids, END_ID. The ids are little-endian
integers of the narrowest type that fits both vocabularies. No vocabulary encodes text as END_ID, so
the end tokens alone separate the sequences. `tf.data.TFRecordDataset` and `tf.io.decode_raw` can
read the files.

Source: TFRecord framing as TensorFlow documents it: length (uint64), masked CRC-32C of the length,
    data, masked CRC-32C of the data; CRC-32C as in RFC 3720, section 12.1.
"""

import functools
import struct

import numpy as np
import numpy.typing as npt

from seq2seq_memattn.vocabulary import END_ID

Ids = npt.NDArray[np.integer]
Words = npt.NDArray[np.uint16]  # records are handled in units of two bytes

_POLYNOMIAL = 0x82F63B78  # CRC-32C, bits reversed
_MASK_DELTA = 0xA282EAD8
_HEADER_BYTES, _FOOTER_BYTES = 12, 4
_HEADER_WORDS, _FOOTER_WORDS = _HEADER_BYTES // 2, _FOOTER_BYTES // 2


def id_dtype(*vocabulary_sizes: int) -> np.dtype[np.integer]:
    """Returns the dtype of ids in records, for vocabularies of these sizes."""
    return np.dtype("<u2" if max(vocabulary_sizes) <= 1 << 16 else "<i4")


def pack_records(tokens: Ids) -> bytes:
    """Writes pairs as TFRecords.

    Args:
        tokens: [num_tokens], of the dtype that `id_dtype` returns. The pairs one after the other.
            Each pair is a source and a target, and each of the two ends with END_ID.

    Returns:
        The bytes of the file.
    """
    if not len(tokens):
        return b""
    ends = np.flatnonzero(tokens == END_ID)[1::2] + 1  # ends of the records, in tokens
    words = np.ascontiguousarray(tokens).view("<u2")
    ends *= tokens.itemsize // 2
    starts = np.concatenate([[0], ends[:-1]]).astype(np.int64)
    lengths = ends - starts
    count = len(ends)
    header = (2 * lengths).astype("<u8").view("<u2").reshape(count, 4)
    framed = np.empty(len(words) + count * (_HEADER_WORDS + _FOOTER_WORDS), "<u2")
    first = starts + np.arange(count) * (_HEADER_WORDS + _FOOTER_WORDS)
    columns = first[:, None] + np.arange(_HEADER_WORDS)
    framed[columns[:, :4]] = header
    framed[columns[:, 4:]] = _masked_crc(header.ravel(), 4 * np.arange(count), np.full(count, 4))
    data_first = first + _HEADER_WORDS
    framed[np.arange(len(words)) + np.repeat(data_first - starts, lengths)] = words
    footer = (data_first + lengths)[:, None] + np.arange(_FOOTER_WORDS)
    framed[footer] = _masked_crc(words, starts, lengths)
    return framed.tobytes()


def unpack_records(content: bytes, dtype: np.dtype[np.integer]) -> Ids:
    """Reads the bytes that `pack_records` wrote; CRCs are not checked (files have a SHA-256).

    Args:
        content: the bytes of a file.
        dtype: type of the ids, from `id_dtype`.

    Returns:
        The tokens, as `pack_records` takes them.

    Raises:
        ValueError: if the bytes are not records of pairs.
    """
    parts = []
    view, offset, size = memoryview(content), 0, len(content)
    while offset + _HEADER_BYTES <= size:
        (length,) = struct.unpack_from("<Q", content, offset)
        start = offset + _HEADER_BYTES
        parts.append(view[start : start + length])
        offset = start + length + _FOOTER_BYTES
    joined = b"".join(parts)
    if offset != size or len(joined) % dtype.itemsize:
        raise ValueError(f"expected whole records of {dtype.name} ids, got {size} bytes")
    tokens = np.frombuffer(joined, dtype)
    if np.count_nonzero(tokens == END_ID) != 2 * len(parts):
        raise ValueError(f"expected two end tokens in each of {len(parts)} records")
    return tokens


def _masked_crc(
    words: Words, starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]
) -> Words:
    """Returns the masked CRC-32C of stretches of an array, as two words per stretch.

    Each step processes the next two bytes of all stretches at once in NumPy.

    Args:
        words: [num_words].
        starts, lengths: [num_stretches]. In words.

    Returns:
        [num_stretches, 2].
    """
    table = _crc_table()
    order = np.argsort(-lengths, kind="stable")
    starts, falling = starts[order], -lengths[order]
    crc: npt.NDArray[np.uint32] = np.full(len(starts), 0xFFFFFFFF, np.uint32)
    for step in range(int(lengths.max(initial=0))):
        active = int(np.searchsorted(falling, -step))  # number of stretches longer than `step`
        head = crc[:active]
        crc[:active] = table[(head ^ words[starts[:active] + step]) & 0xFFFF] ^ (head >> 16)
    crc = ~crc
    crc = ((crc >> np.uint32(15)) | (crc << np.uint32(17))) + np.uint32(_MASK_DELTA)  # modulo 2^32
    result = np.empty(len(crc), "<u4")
    result[order] = crc
    return result.view("<u2").reshape(-1, 2)


@functools.cache
def _crc_table() -> npt.NDArray[np.uint32]:
    """Returns the CRC-32C table for steps of 16 bits: uint32 [65536]."""
    table: npt.NDArray[np.uint32] = np.arange(1 << 16, dtype=np.uint32)
    for _ in range(16):
        table = (table >> np.uint32(1)) ^ (table & np.uint32(1)) * np.uint32(_POLYNOMIAL)
    return table
