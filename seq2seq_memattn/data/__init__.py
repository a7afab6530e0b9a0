"""Reads prepared data directories and makes batches."""

from seq2seq_memattn.data.batching import BucketBatches as BucketBatches
from seq2seq_memattn.data.batching import Position as Position
from seq2seq_memattn.data.batching import pad_batch as pad_batch
from seq2seq_memattn.data.manifest import Manifest as Manifest
from seq2seq_memattn.data.manifest import read_manifest as read_manifest
from seq2seq_memattn.data.splits import SplitData as SplitData
