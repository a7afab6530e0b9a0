"""From prepared data directories to batches."""

from .batching import BucketBatches as BucketBatches
from .batching import Position as Position
from .batching import pad_batch as pad_batch
from .copy_task import CopyTaskData as CopyTaskData
from .manifest import Manifest as Manifest
from .manifest import read_manifest as read_manifest
from .splits import open_split as open_split
from .text import TextData as TextData
