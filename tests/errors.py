from typing import Any

import pytest


def refused(function: Any, *arguments: Any, **named: Any) -> str:
    """The message, a single line, of the ValueError that a call raises."""
    with pytest.raises(ValueError) as error:
        function(*arguments, **named)
    message = str(error.value)
    assert "\n" not in message
    return message
