"""The data that trainings of the tests read."""

from tests.training.conftest import data_dir as data_dir
from tests.training.conftest import finished as finished
