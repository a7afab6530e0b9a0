"""What all commands share: flags from option records, one-line errors, a JSON line at the end."""

import dataclasses
import json
import logging as stdlib_logging
import os
import signal
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal, NoReturn, TypeVar, get_args, get_origin, get_type_hints

from absl import app, flags, logging
from tqdm import tqdm

# TensorFlow's start would fill standard error, where a user looks for the command's own lines.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

# A graph for each shape of a batch is what is wanted; TensorFlow warns of it.
_tensorflow_log = stdlib_logging.getLogger("tensorflow")
_tensorflow_log.addFilter(lambda record: "tf.function retracing" not in record.getMessage())
_tensorflow_log.setLevel(stdlib_logging.WARNING)  # or it tells of each sum over processes

flags.disclaim_key_flags()  # --help lists a command's flags as the command's, not as this module's

EXIT_ERROR = 1
# What schedulers know, from sendmail, as a failure that may pass (EX_TEMPFAIL).
EXIT_TRY_AGAIN = 75
# What a shell reports of a program that a signal ended.
EXIT_INTERRUPTED = 128 + signal.SIGINT
EXIT_TERMINATED = 128 + signal.SIGTERM

T = TypeVar("T")


class Terminated(BaseException):
    """SIGTERM came: unwinds the command, so that nothing half-written is left."""


def run(main: Callable[[list[str]], None], accepts_arguments: bool = False) -> NoReturn:
    """Parses the flags, calls `main`, and exits; bad input ends in one line on standard error.

    ValueError, OSError and a wrong flag give that line and exit status 1; `--verbosity=1` adds the
    traceback. SIGTERM and SIGINT end in one line too, wherever the command does not see to them
    itself. Other exceptions are mistakes in the program and keep their traceback.

    Args:
        main: called with the arguments that are no flags, the program's name left out.
        accepts_arguments: whether there may be such arguments.

    Raises:
        SystemExit: always.
    """

    def guarded(argv: list[str]) -> None:
        try:
            if len(argv) > 1 and not accepts_arguments:
                raise ValueError(f"expected only flags, got the argument {argv[1]!r}")
            signal.signal(signal.SIGTERM, _terminate)
            main(argv[1:])
        except (ValueError, OSError) as error:  # UnicodeDecodeError is a ValueError
            logging.debug("The error's traceback:", exc_info=True)
            _fail(_one_line(error))
        except KeyboardInterrupt as interrupt:
            _fail(str(interrupt) or "interrupted", EXIT_INTERRUPTED)
        except Terminated:
            _fail("terminated", EXIT_TERMINATED)

    app.run(guarded, flags_parser=_parse_flags)
    raise SystemExit(0)


def define_flags(options: type) -> None:
    """Defines a flag for each field of an option record; one without default must be given.

    Call it before `run`, in the command's own file only: flags are global to a process.

    Args:
        options: a dataclass whose fields are int, float, bool, str or Literal, each with its
            meaning in `metadata["help"]`.
    """
    kinds = get_type_hints(options)
    for field in dataclasses.fields(options):
        is_required = field.default is dataclasses.MISSING
        default: Any = None if is_required else field.default
        kind, meaning = kinds[field.name], field.metadata["help"]
        if get_origin(kind) is Literal:
            choices = list(get_args(kind))
            flags.DEFINE_enum(field.name, default, choices, meaning, required=is_required)
        else:
            _DEFINERS[kind](field.name, default, meaning, required=is_required)


def define_override_flags(options: type, leave_out: Collection[str] = ()) -> None:
    """Defines flags without defaults, each of which replaces what a configuration says.

    Fields of a name that is a flag already, such as `seed`, share that flag. The help names the
    default of the option record, which holds where neither flag nor configuration says otherwise.

    Args:
        options: a dataclass as for `define_flags`, each of whose fields has a default.
        leave_out: names of fields that are no flags.
    """
    kinds = get_type_hints(options)
    for field in dataclasses.fields(options):
        if field.name in flags.FLAGS or field.name in leave_out:
            continue
        kind = kinds[field.name]
        default = f"(default: {json.dumps(field.default)}; a configuration may set another)"
        meaning = f"{field.metadata['help']} {default}"
        if get_origin(kind) is Literal:
            flags.DEFINE_enum(field.name, None, list(get_args(kind)), meaning)
        else:
            _DEFINERS[kind](field.name, None, meaning)


def overridden(options: T) -> T:
    """Replaces the fields of an option record whose override flags were given."""
    given = {
        field.name: flags.FLAGS[field.name].value
        for field in dataclasses.fields(options)  # type: ignore[arg-type]
        if field.name in flags.FLAGS and flags.FLAGS[field.name].value is not None
    }
    return dataclasses.replace(options, **given)  # type: ignore[type-var]


def options_from_flags(options: type[T]) -> T:
    """Makes the option record from the flags that `define_flags` defined."""
    names = [field.name for field in dataclasses.fields(options)]  # type: ignore[arg-type]
    return options(**{name: flags.FLAGS[name].value for name in names})


def positive_numbers(flag: str, values: Sequence[str]) -> list[int]:
    """The numbers that a list flag has; ValueError for what is none, or not above 0."""
    for value in values:
        if not (value.isascii() and value.isdigit() and int(value)):
            raise ValueError(f"--{flag}: expected whole numbers above 0; got {value!r}")
    if not values:
        raise ValueError(f"--{flag}: expected whole numbers above 0; got none")
    return [int(value) for value in values]


def print_result(result: Mapping[str, Any], to_stderr: bool = False) -> None:
    """Prints a command's figures as one JSON line; the last thing that a command prints.

    Args:
        result: figures by name; NumPy scalars and paths are allowed, NaN and infinity are not.
        to_stderr: True where standard output carries the command's text.

    Raises:
        ValueError: if a value is NaN or infinite, which JSON cannot say.
    """
    line = json.dumps(result, allow_nan=False, default=_json_value)
    print(line, file=sys.stderr if to_stderr else sys.stdout, flush=True)


def print_note(message: str) -> None:
    """Prints a line for the person who waits, on standard error, above bars of progress."""
    tqdm.write(message, file=sys.stderr)


_DEFINERS: dict[Any, Callable[..., Any]] = {
    int: flags.DEFINE_integer,
    float: flags.DEFINE_float,
    bool: flags.DEFINE_bool,
    str: flags.DEFINE_string,
}


def _terminate(number: int, frame: Any) -> NoReturn:
    del number, frame
    raise Terminated


def _parse_flags(argv: list[str]) -> list[str]:
    """Parses the flags as absl does, but says in one line what is wrong with them."""
    try:
        return flags.FLAGS(argv)
    except flags.Error as error:
        _fail(f"{_one_line(error)} (--help lists the flags)")


def _fail(message: str, status: int = EXIT_ERROR) -> NoReturn:
    print(f"error: {message}", file=sys.stderr, flush=True)
    _forget_closed_output()
    sys.exit(status)


def _forget_closed_output() -> None:
    """Keeps Python from reporting at its exit that the reader of standard output has gone."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _one_line(error: BaseException) -> str:
    """Returns an error's message without line breaks, and without the number of an OSError."""
    message = str(error)
    if isinstance(error, OSError) and error.strerror:
        names = [str(name) for name in (error.filename, error.filename2) if name is not None]
        message = ": ".join([*names, error.strerror])
    return " ".join(message.split()) or type(error).__name__


def _json_value(value: Any) -> Any:
    """Returns a NumPy scalar's Python value, or the name of a path."""
    return value.item() if hasattr(value, "item") else os.fspath(value)
