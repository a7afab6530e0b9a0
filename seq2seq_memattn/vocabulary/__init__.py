"""Vocabularies: from a line of text to token ids and back. Needs neither TensorFlow nor Keras."""

from seq2seq_memattn.vocabulary.base import END_ID as END_ID
from seq2seq_memattn.vocabulary.base import NUM_SPECIAL_IDS as NUM_SPECIAL_IDS
from seq2seq_memattn.vocabulary.base import PAD_ID as PAD_ID
from seq2seq_memattn.vocabulary.base import START_ID as START_ID
from seq2seq_memattn.vocabulary.base import UNKNOWN_ID as UNKNOWN_ID
from seq2seq_memattn.vocabulary.base import Vocabulary as Vocabulary
from seq2seq_memattn.vocabulary.files import FileVocabulary as FileVocabulary
from seq2seq_memattn.vocabulary.kinds import have_same_ids as have_same_ids
from seq2seq_memattn.vocabulary.kinds import vocabulary_files as vocabulary_files
from seq2seq_memattn.vocabulary.kinds import vocabulary_from_dict as vocabulary_from_dict
from seq2seq_memattn.vocabulary.listed import CharacterVocabulary as CharacterVocabulary
from seq2seq_memattn.vocabulary.listed import WordVocabulary as WordVocabulary
from seq2seq_memattn.vocabulary.subwords import SubwordVocabulary as SubwordVocabulary
from seq2seq_memattn.vocabulary.symbols import SymbolVocabulary as SymbolVocabulary
