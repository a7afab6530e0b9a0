"""Checks of arguments that several layers share."""


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raises ValueError if an argument is none of its choices."""
    if value not in choices:
        raise ValueError(f"`{name}` must be one of {', '.join(choices)}; got {value!r}.")
