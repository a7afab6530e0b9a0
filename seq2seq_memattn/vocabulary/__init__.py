"""Vocabularies: from a line of text to token ids and back. Needs neither TensorFlow nor Keras."""

from .base import END_ID as END_ID
from .base import NUM_SPECIAL_IDS as NUM_SPECIAL_IDS
from .base import PAD_ID as PAD_ID
from .base import START_ID as START_ID
from .base import UNKNOWN_ID as UNKNOWN_ID
from .base import Vocabulary as Vocabulary
from .files import FileVocabulary as FileVocabulary
from .kinds import vocabulary_files as vocabulary_files
from .kinds import vocabulary_from_dict as vocabulary_from_dict
from .listed import CharacterVocabulary as CharacterVocabulary
from .listed import WordVocabulary as WordVocabulary
from .subwords import SubwordVocabulary as SubwordVocabulary
from .symbols import SymbolVocabulary as SymbolVocabulary
