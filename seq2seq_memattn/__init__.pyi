"""The public names; `__init__.py` imports each when it is first used."""

from . import data as data
from . import plots as plots
from . import vocabulary as vocabulary
from ._version import __version__ as __version__
from .attention.additive import BahdanauAttention as BahdanauAttention
from .attention.base import Attention as Attention
from .attention.constant import ConstantAttention as ConstantAttention
from .attention.flexible import FlexibleAttention as FlexibleAttention
from .attention.k_memory import KMemoryAttention as KMemoryAttention
from .attention.linear import LinearAttention as LinearAttention
from .attention.local import LocalAttention as LocalAttention
from .attention.multiplicative import LuongAttention as LuongAttention
from .attention.no_attention import NoAttention as NoAttention
from .config import ModelConfig as ModelConfig
from .config import TrainingConfig as TrainingConfig
from .layers.attention_cell import AttentionCell as AttentionCell
from .layers.attention_decoder import AttentionDecoder as AttentionDecoder
from .layers.bridge import Bridge as Bridge
from .layers.encoder import Encoder as Encoder
from .losses import TokenAccuracy as TokenAccuracy
from .losses import TokenCrossEntropy as TokenCrossEntropy
from .model import Seq2Seq as Seq2Seq
from .search.beam import beam_search as beam_search
from .search.ensemble import Ensemble as Ensemble
from .search.greedy import GreedyResult as GreedyResult
from .search.greedy import greedy_search as greedy_search
from .search.in_graph import BeamResult as BeamResult
from .search.protocol import AlignedModel as AlignedModel
from .search.protocol import SearchedModel as SearchedModel
from .search.sample import SampleResult as SampleResult
from .search.sample import sample as sample
from .search.searchable import Searchable as Searchable
from .serving.export.export_searchable import export_searchable as export_searchable

__all__ = [
    "AlignedModel",
    "Attention",
    "AttentionCell",
    "AttentionDecoder",
    "BahdanauAttention",
    "BeamResult",
    "Bridge",
    "ConstantAttention",
    "Encoder",
    "Ensemble",
    "FlexibleAttention",
    "GreedyResult",
    "KMemoryAttention",
    "LinearAttention",
    "LocalAttention",
    "LuongAttention",
    "ModelConfig",
    "NoAttention",
    "SampleResult",
    "Searchable",
    "SearchedModel",
    "Seq2Seq",
    "TokenAccuracy",
    "TokenCrossEntropy",
    "TrainingConfig",
    "__version__",
    "beam_search",
    "data",
    "export_searchable",
    "greedy_search",
    "plots",
    "sample",
    "vocabulary",
]
