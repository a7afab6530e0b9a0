"""What all commands share: flags, one-line errors and a JSON line at the end.

A command is a module with two functions: `define(flags)` adds the command's flags to a `Flags`, and
`main(arguments)` runs the command with their values. The help begins with the module's docstring.
`run` parses the flags and calls `main`.
"""

import argparse
import dataclasses
import json
import logging
import os
import signal
import sys
import textwrap
import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from types import ModuleType
from typing import Any, Literal, NoReturn, TextIO, TypeVar, get_args, get_origin, get_type_hints

from absl import flags as absl_flags

from seq2seq_memattn import packages
from seq2seq_memattn.notes import STANDARD_ERROR
from seq2seq_memattn.text.files import naming_errors

# TensorFlow's start-up log would hide the command's own lines on standard error.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

# TensorFlow warns about retracing, but one graph for each shape of a batch is intended.
_tensorflow_log = logging.getLogger("tensorflow")
_tensorflow_log.addFilter(lambda record: "tf.function retracing" not in record.getMessage())
_tensorflow_log.setLevel(logging.WARNING)  # INFO would report every sum over processes

EXIT_ERROR = 1
# sendmail's EX_TEMPFAIL, which schedulers know as a temporary failure.
EXIT_TRY_AGAIN = 75
# The statuses that a shell reports for a program ended by a signal.
EXIT_INTERRUPTED = 128 + signal.SIGINT
EXIT_TERMINATED = 128 + signal.SIGTERM

HELP_WIDTH = 100
OTHER_FLAGS = "Other"

T = TypeVar("T")

Arguments = argparse.Namespace


class Terminated(BaseException):
    """Raised on SIGTERM: the command unwinds and leaves nothing half-written."""


class Flags:
    """The flags of one command, in groups for its help.

    Each method defines one flag. With the default None, a flag that is not given stays unset. If
    `required` is true, the command fails without the flag.
    """

    def __init__(self) -> None:
        self._flags = absl_flags.FlagValues()
        self._groups: dict[str, list[str]] = {}
        self._required: list[str] = []
        self._positional = ""
        self.group("")

    def group(self, title: str) -> None:
        """Begins a group: the help lists the flags defined after this call under its title."""
        self._title = title
        self._members = self._groups.setdefault(title, [])

    def positional(self, what: str) -> None:
        """Allows arguments that are not flags; the help calls them `what`."""
        self._positional = what

    def string(
        self, name: str, default: str | None, meaning: str, *, required: bool = False
    ) -> None:
        """Defines a flag that takes text."""
        absl_flags.DEFINE_string(name, default, meaning, flag_values=self._flags)
        self._add(name, required)

    def integer(
        self, name: str, default: int | None, meaning: str, *, lower_bound: int | None = None
    ) -> None:
        """Defines a flag that takes a whole number."""
        absl_flags.DEFINE_integer(
            name, default, meaning, lower_bound=lower_bound, flag_values=self._flags
        )
        self._members.append(name)

    def number(
        self, name: str, default: float | None, meaning: str, *, lower_bound: float | None = None
    ) -> None:
        """Defines a flag that takes a number."""
        absl_flags.DEFINE_float(
            name, default, meaning, lower_bound=lower_bound, flag_values=self._flags
        )
        self._members.append(name)

    def boolean(self, name: str, default: bool | None, meaning: str) -> None:
        """Defines a switch: `--NAME` sets it, `--noNAME` unsets it."""
        absl_flags.DEFINE_bool(name, default, meaning, flag_values=self._flags)
        self._members.append(name)

    def choice(self, name: str, default: str | None, choices: Sequence[str], meaning: str) -> None:
        """Defines a flag that takes one of several fixed values."""
        absl_flags.DEFINE_enum(name, default, list(choices), meaning, flag_values=self._flags)
        self._members.append(name)

    def items(
        self, name: str, default: Sequence[str] | None, meaning: str, *, required: bool = False
    ) -> None:
        """Defines a flag that takes a list of strings separated by commas."""
        absl_flags.DEFINE_list(name, default, meaning, flag_values=self._flags)
        self._add(name, required)

    def repeated(self, name: str, meaning: str) -> None:
        """Defines a required flag that takes text and may be given several times."""
        absl_flags.DEFINE_multi_string(name, None, meaning, flag_values=self._flags)
        self._add(name, True)

    def options(self, kind: type) -> None:
        """Defines a flag for each field of an option record; fields without a default are required.

        Args:
            kind: a dataclass whose fields are int, float, bool, str or Literal, each with its
                meaning in `metadata["help"]`. A field with a `metadata["group"]` is listed in that
                group, the others in the current group.
        """
        title = self._title
        for field in dataclasses.fields(kind):
            self.group(field.metadata.get("group") or title)
            is_required = field.default is dataclasses.MISSING
            default = None if is_required else field.default
            self._field(kind, field, default, field.metadata["help"], is_required)
        self.group(title)

    def replacements(
        self, kind: type, leave_out: Collection[str] = (), more: Mapping[str, str] | None = None
    ) -> None:
        """Defines flags that override the values of a configuration; the flags have no defaults.

        A field whose name is already a flag, such as `seed`, shares that flag. The help names the
        default of the option record, which applies if neither the flag nor the configuration gives
        a value.

        Args:
            kind: a dataclass as for `options`, each of whose fields has a default.
            leave_out: names of fields that get no flag.
            more: text to append to the help of a field, by field name.
        """
        for field in dataclasses.fields(kind):
            if field.name in self._flags or field.name in leave_out:
                continue
            default = f"(default: {json.dumps(field.default)}; a configuration may set another)"
            meaning = field.metadata["help"] + (more or {}).get(field.name, "")
            self._field(kind, field, None, f"{meaning} {default}", False)

    def change_default(self, name: str, default: Any) -> None:
        """Changes the default of a flag that is already defined."""
        self._flags.set_default(name, default)

    def parse(self, words: Sequence[str]) -> Arguments:
        """Parses a command line; returns the values of all flags by name.

        The result has two more fields: `rest`, the arguments that are not flags, and `given`, the
        names of the flags on the command line.

        Args:
            words: the command line after the command's name.

        Raises:
            absl.flags.Error: for a wrong flag, or a missing required flag.
            ValueError: for an argument that is not a flag, if the command allows none.
        """
        rest = self._flags(["", *words])[1:]
        if rest and not self._positional:
            raise ValueError(f"expected only flags, got the argument {rest[0]!r}")
        for name in self._required:
            if self._flags[name].value is None:
                raise absl_flags.IllegalFlagValueError(f"--{name} must be given")
        values = {name: self._flags[name].value for name in self._flags}
        given = {name for name in self._flags if self._flags[name].present}
        return Arguments(rest=rest, given=given, **values)

    def help(self, usage: str, about: str) -> str:
        """The text of `--help`: usage, description, flags by group."""
        words = [usage, *(f"--{name}=..." for name in self._required), "[flags]", self._positional]
        parts = [f"usage: {' '.join(words).strip()}", about.strip()]
        for title, flags in self.described().items():
            lines = [f"{title or 'Flags'}:"]
            for shown, meaning in flags:
                lines += textwrap.wrap(
                    f"{shown}: {meaning}",
                    HELP_WIDTH,
                    initial_indent="  ",
                    subsequent_indent="      ",
                )
            parts.append("\n".join(lines))
        return "\n\n".join(parts) + "\n"

    def described(self) -> dict[str, list[tuple[str, str]]]:
        """For each group, its flags as `--help` shows them: name, and meaning with default."""
        return {
            title: [self._described(name) for name in names]
            for title, names in self._groups.items()
            if names
        }

    def _add(self, name: str, required: bool) -> None:
        self._members.append(name)
        if required:
            self._required.append(name)

    def _field(
        self, kind: type, field: dataclasses.Field, default: Any, meaning: str, required: bool
    ) -> None:
        """Defines the flag of a field, according to the field's type."""
        declared = get_type_hints(kind)[field.name]
        define: dict[Any, Callable[..., None]] = {
            int: self.integer,
            float: self.number,
            bool: self.boolean,
            str: self.string,
        }
        if get_origin(declared) is Literal:
            self.choice(field.name, default, get_args(declared), meaning)
        else:
            define[declared](field.name, default, meaning)
        if required:
            self._required.append(field.name)

    def _described(self, name: str) -> tuple[str, str]:
        flag = self._flags[name]
        shown = f"--[no]{name}" if flag.boolean else f"--{name}"
        meaning = " ".join(str(flag.help).split())
        default = flag.default
        if name in self._required:
            meaning += " (required)"
        elif default not in (None, "", []):
            default = ",".join(default) if isinstance(default, list) else default
            meaning += f" (default: {str(default).lower() if flag.boolean else default})"
        return shown, meaning


def flags_of(command: ModuleType) -> Flags:
    """All flags of a command, including those that every command has."""
    flags = Flags()
    command.define(flags)
    flags.group(OTHER_FLAGS)
    flags.integer("verbosity", 0, "1: also print the traceback of an error")
    flags.boolean("help", None, "show this help")
    return flags


def run(command: ModuleType, words: Sequence[str], usage: str) -> NoReturn:
    """Parses the flags, calls the command's `main`, and exits.

    A ValueError (including UnicodeDecodeError), an OSError, a wrong flag or a missing package gives
    one line on standard error and exit status 1; `--verbosity=1` adds the traceback. SIGTERM and
    SIGINT also give one line, unless the command handles them itself, and so does a GPU without
    enough memory. Other exceptions are bugs and keep their traceback.

    Args:
        command: the command's module.
        words: the command line after the command's name.
        usage: how the command is called, for its help.

    Raises:
        SystemExit: always.
    """
    packages.choose_backend()
    flags = flags_of(command)
    if _asks_for_help(words):
        print_text(flags.help(usage, command.__doc__ or ""))
        sys.exit(0)
    try:
        arguments = flags.parse(words)
    except (absl_flags.Error, ValueError) as error:
        fail(f"{_one_line(error)} (--help lists the flags)")
    try:
        signal.signal(signal.SIGTERM, _terminate)
        command.main(arguments)
    except Exception as error:
        if _is_bug(error):
            raise
        if arguments.verbosity > 0:
            traceback.print_exc(file=STANDARD_ERROR)
        fail(_one_line(error))
    except KeyboardInterrupt as interrupt:
        fail(str(interrupt) or "interrupted", EXIT_INTERRUPTED)
    except Terminated:
        fail("terminated", EXIT_TERMINATED)
    finally:
        _forget_unwritten(sys.stderr)
    sys.exit(0)


def launch(command: ModuleType) -> NoReturn:
    """Runs a command that was started with `python -m`, with the flags of this process.

    Args:
        command: the command's module.

    Raises:
        SystemExit: always.
    """
    spec = sys.modules["__main__"].__spec__
    run(command, sys.argv[1:], f"python -m {spec.name if spec else command.__name__}")


def replaced(options: T, arguments: Arguments) -> T:
    """Overrides the fields of an option record with the flags of `Flags.replacements`."""
    given = {
        field.name: getattr(arguments, field.name)
        for field in dataclasses.fields(options)  # type: ignore[arg-type]
        if getattr(arguments, field.name, None) is not None
    }
    return dataclasses.replace(options, **given)  # type: ignore[type-var]


def options_from(arguments: Arguments, kind: type[T]) -> T:
    """Makes an option record from the flags that `Flags.options` defined."""
    names = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
    return kind(**{name: getattr(arguments, name) for name in names})


def positive_numbers(flag: str, values: Sequence[str]) -> list[int]:
    """The numbers of a list flag; raises ValueError unless all are whole numbers above 0."""
    for value in values:
        if not (value.isascii() and value.isdigit() and int(value)):
            raise ValueError(f"--{flag}: expected whole numbers above 0; got {value!r}")
    if not values:
        raise ValueError(f"--{flag}: expected whole numbers above 0; got none")
    return [int(value) for value in values]


def print_result(result: Mapping[str, Any], to_stderr: bool = False) -> None:
    """Prints a command's figures as one JSON line, the last line of its output.

    Args:
        result: figures by name; NumPy scalars and paths are allowed, NaN and infinity are not.
        to_stderr: True if standard output carries the command's text.

    Raises:
        ValueError: if a value is NaN or infinite, which JSON cannot represent.
    """
    line = json.dumps(result, allow_nan=False, default=_json_value)
    if to_stderr:
        print(line, file=STANDARD_ERROR, flush=True)
        return
    with naming_errors("standard output"):
        print(line, flush=True)


def print_text(text: str) -> None:
    """Prints text; if that fails, ends the command with one line on standard error."""
    try:
        with naming_errors("standard output"):
            print(text, end="", flush=True)
    except OSError as error:
        fail(_one_line(error))


def fail(message: str, status: int = EXIT_ERROR) -> NoReturn:
    """Ends the command with one line on standard error."""
    print(f"error: {message}", file=STANDARD_ERROR, flush=True)
    _forget_unwritten(sys.stdout)
    _forget_unwritten(sys.stderr)
    sys.exit(status)


def _asks_for_help(words: Sequence[str]) -> bool:
    before_the_rest = list(words)[: list(words).index("--")] if "--" in words else words
    return bool({"--help", "-help", "-h", "--helpfull"} & set(before_the_rest))


def _terminate(number: int, frame: Any) -> NoReturn:
    del number, frame
    raise Terminated


def _forget_unwritten(stream: TextIO | None) -> None:
    """Keeps Python from reporting, when it exits, that a stream cannot be written."""
    if stream is None:  # it was closed before the start
        return
    try:
        stream.flush()
    except OSError:  # such as a closed pipe or a full disk
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _is_bug(error: Exception) -> bool:
    if isinstance(error, ModuleNotFoundError):
        return not packages.is_extra(error.name)
    return not (isinstance(error, (ValueError, OSError)) or _is_out_of_memory(error))


def _one_line(error: BaseException) -> str:
    """Returns an error's message on one line, without the number of an OSError."""
    message = str(error)
    if isinstance(error, ModuleNotFoundError):
        message = packages.what_to_install(error.name)
    elif isinstance(error, OSError) and error.strerror:
        names = [str(name) for name in (error.filename, error.filename2) if name is not None]
        message = ": ".join([*names, error.strerror])
    elif _is_out_of_memory(error):
        message = "the memory of the device is full; smaller batches need less"
    return " ".join(message.split()) or type(error).__name__


def _is_out_of_memory(error: BaseException) -> bool:
    """Whether TensorFlow or JAX could not allocate memory."""
    if isinstance(error, (ValueError, OSError)):
        return False
    return type(error).__name__ == "ResourceExhaustedError" or "RESOURCE_EXHAUSTED" in str(error)


def _json_value(value: Any) -> Any:
    """Returns the Python value of a NumPy scalar, or a path as text."""
    return value.item() if hasattr(value, "item") else os.fspath(value)
