"""What tests of full and read-only disks share."""

import pytest


def small_disk_of(size: int) -> pytest.MarkDecorator:
    """For tests with the fixture `small_disk`; bytes."""
    return pytest.mark.parametrize("small_disk", [size], indirect=True)
