"""A data directory for the trainings of the tests."""

from tests.training.conftest import data_dir as data_dir
from tests.training.conftest import finished as finished
