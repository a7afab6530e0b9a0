"""What all commands share: their flags, one-line errors, a JSON line at the end.

A command is a module with a docstring, which its help begins with, and two functions:
`define(flags)` says which flags it has, on a `Flags`; `main(arguments)` does the work with their
values. `run` joins the two.
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
from typing import Any, Literal, NoReturn, TypeVar, get_args, get_origin, get_type_hints

from absl import flags as absl_flags

from seq2seq_memattn import packages

# TensorFlow's start would fill standard error, where a user looks for the command's own lines.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

# A graph for each shape of a batch is what is wanted; TensorFlow warns of it.
_tensorflow_log = logging.getLogger("tensorflow")
_tensorflow_log.addFilter(lambda record: "tf.function retracing" not in record.getMessage())
_tensorflow_log.setLevel(logging.WARNING)  # or it tells of each sum over processes

EXIT_ERROR = 1
# What schedulers know, from sendmail, as a failure that may pass (EX_TEMPFAIL).
EXIT_TRY_AGAIN = 75
# What a shell reports of a program that a signal ended.
EXIT_INTERRUPTED = 128 + signal.SIGINT
EXIT_TERMINATED = 128 + signal.SIGTERM

HELP_WIDTH = 100
OTHER_FLAGS = "Other"

T = TypeVar("T")

Arguments = argparse.Namespace


class Terminated(BaseException):
    """SIGTERM came: unwinds the command, so that nothing half-written is left."""


class Flags:
    """The flags of one command, in groups for its help.

    Each method defines a flag by name and meaning; `None` as default leaves it unset, and
    `required` means that there is no command without it.
    """

    def __init__(self) -> None:
        self._flags = absl_flags.FlagValues()
        self._groups: dict[str, list[str]] = {}
        self._required: list[str] = []
        self._positional = ""
        self.group("")

    def group(self, title: str) -> None:
        """Begins a group: flags defined from now on are listed under this title."""
        self._title = title
        self._members = self._groups.setdefault(title, [])

    def positional(self, what: str) -> None:
        """Lets the command take arguments that are no flags; the help calls them `what`."""
        self._positional = what

    def string(
        self, name: str, default: str | None, meaning: str, *, required: bool = False
    ) -> None:
        """A text."""
        absl_flags.DEFINE_string(name, default, meaning, flag_values=self._flags)
        self._add(name, required)

    def integer(
        self,
        name: str,
        default: int | None,
        meaning: str,
        *,
        required: bool = False,
        lower_bound: int | None = None,
    ) -> None:
        """A whole number."""
        absl_flags.DEFINE_integer(
            name, default, meaning, lower_bound=lower_bound, flag_values=self._flags
        )
        self._add(name, required)

    def number(
        self,
        name: str,
        default: float | None,
        meaning: str,
        *,
        required: bool = False,
        lower_bound: float | None = None,
    ) -> None:
        """A number."""
        absl_flags.DEFINE_float(
            name, default, meaning, lower_bound=lower_bound, flag_values=self._flags
        )
        self._add(name, required)

    def boolean(
        self, name: str, default: bool | None, meaning: str, *, required: bool = False
    ) -> None:
        """A flag to be set, or unset by `--noNAME`."""
        absl_flags.DEFINE_bool(name, default, meaning, flag_values=self._flags)
        self._add(name, required)

    def choice(
        self,
        name: str,
        default: str | None,
        choices: Sequence[str],
        meaning: str,
        *,
        required: bool = False,
    ) -> None:
        """One of some texts."""
        absl_flags.DEFINE_enum(name, default, list(choices), meaning, flag_values=self._flags)
        self._add(name, required)

    def items(
        self, name: str, default: Sequence[str] | None, meaning: str, *, required: bool = False
    ) -> None:
        """Texts separated by commas."""
        absl_flags.DEFINE_list(name, default, meaning, flag_values=self._flags)
        self._add(name, required)

    def repeated(self, name: str, meaning: str) -> None:
        """A text that is required, and may be given several times."""
        absl_flags.DEFINE_multi_string(name, None, meaning, flag_values=self._flags)
        self._add(name, True)

    def options(self, kind: type, leave_out: Collection[str] = ()) -> None:
        """A flag for each field of an option record; one without default must be given.

        Args:
            kind: a dataclass whose fields are int, float, bool, str or Literal, each with its
                meaning in `metadata["help"]`. Those with a `metadata["group"]` are listed there,
                the others in the group that was begun.
            leave_out: names of fields that are no flags.
        """
        title = self._title
        for field in dataclasses.fields(kind):
            if field.name not in leave_out:
                self.group(field.metadata.get("group") or title)
                is_required = field.default is dataclasses.MISSING
                default = None if is_required else field.default
                self._field(kind, field, default, field.metadata["help"], is_required)
        self.group(title)

    def replacements(
        self, kind: type, leave_out: Collection[str] = (), more: Mapping[str, str] | None = None
    ) -> None:
        """Flags without defaults, each of which replaces what a configuration says.

        Fields of a name that is a flag already, such as `seed`, share that flag. The help names the
        default of the option record, which holds where neither flag nor configuration says
        otherwise.

        Args:
            kind: a dataclass as for `options`, each of whose fields has a default.
            leave_out: names of fields that are no flags.
            more: what the help of a field says beside its meaning.
        """
        for field in dataclasses.fields(kind):
            if field.name in self._flags or field.name in leave_out:
                continue
            default = f"(default: {json.dumps(field.default)}; a configuration may set another)"
            meaning = field.metadata["help"] + (more or {}).get(field.name, "")
            self._field(kind, field, None, f"{meaning} {default}", False)

    def change_default(self, name: str, default: Any) -> None:
        """Gives a flag that is defined already another default."""
        self._flags.set_default(name, default)

    def parse(self, words: Sequence[str]) -> Arguments:
        """The values of all flags by name; arguments that are no flags are in `rest`.

        The names of flags that the command line has are in `given`.

        Args:
            words: the command line behind the command's name.

        Raises:
            absl.flags.Error: for a wrong flag, or a required one that is missing.
            ValueError: for an argument that is no flag, if the command takes none.
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
        """What `--help` prints: usage, what the command does, its flags by group."""
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
        """By group, each flag as `--help` shows it, and its meaning with its default."""
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
        """A flag of a field, by the field's type."""
        declared = get_type_hints(kind)[field.name]
        if get_origin(declared) is Literal:
            self.choice(field.name, default, get_args(declared), meaning, required=required)
            return
        define: dict[Any, Callable[..., None]] = {
            int: self.integer,
            float: self.number,
            bool: self.boolean,
            str: self.string,
        }
        define[declared](field.name, default, meaning, required=required)

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
    """All flags of a command, those that every command has included."""
    flags = Flags()
    command.define(flags)
    flags.group(OTHER_FLAGS)
    flags.integer("verbosity", 0, "1: an error's traceback too")
    flags.boolean("help", None, "show this help")
    return flags


def run(command: ModuleType, words: Sequence[str], usage: str) -> NoReturn:
    """Parses the flags, calls the command's `main`, and exits.

    ValueError (UnicodeDecodeError too), OSError, a wrong flag and a package that is not installed
    give one line on standard error and exit status 1; `--verbosity=1` adds the traceback. SIGTERM
    and SIGINT end in one line too, wherever the command does not see to them itself. Other
    exceptions are mistakes in the program and keep their traceback.

    Args:
        command: the command's module.
        words: the command line behind the command's name.
        usage: how the command is called, for its help.

    Raises:
        SystemExit: always.
    """
    packages.choose_backend()
    flags = flags_of(command)
    if _asks_for_help(words):
        print(flags.help(usage, command.__doc__ or ""), end="")
        sys.exit(0)
    try:
        arguments = flags.parse(words)
    except (absl_flags.Error, ValueError) as error:
        fail(f"{_one_line(error)} (--help lists the flags)")
    try:
        signal.signal(signal.SIGTERM, _terminate)
        command.main(arguments)
    except (ValueError, OSError, ModuleNotFoundError) as error:
        if isinstance(error, ModuleNotFoundError) and not packages.is_extra(error.name):
            raise
        if arguments.verbosity > 0:
            traceback.print_exc()
        fail(_one_line(error))
    except KeyboardInterrupt as interrupt:
        fail(str(interrupt) or "interrupted", EXIT_INTERRUPTED)
    except Terminated:
        fail("terminated", EXIT_TERMINATED)
    sys.exit(0)


def launch(command: ModuleType) -> NoReturn:
    """Runs a command as `python -m`, with the flags of the process.

    Args:
        command: the command's module.

    Raises:
        SystemExit: always.
    """
    spec = sys.modules["__main__"].__spec__
    run(command, sys.argv[1:], f"python -m {spec.name if spec else command.__name__}")


def replaced(options: T, arguments: Arguments) -> T:
    """Replaces the fields of an option record whose `replacements` were given."""
    given = {
        field.name: getattr(arguments, field.name)
        for field in dataclasses.fields(options)  # type: ignore[arg-type]
        if getattr(arguments, field.name, None) is not None
    }
    return dataclasses.replace(options, **given)  # type: ignore[type-var]


def options_from(arguments: Arguments, kind: type[T]) -> T:
    """Makes an option record of the values of flags that `Flags.options` defined."""
    names = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
    return kind(**{name: getattr(arguments, name) for name in names})


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


def fail(message: str, status: int = EXIT_ERROR) -> NoReturn:
    """Ends the command with one line on standard error."""
    print(f"error: {message}", file=sys.stderr, flush=True)
    _forget_closed_output()
    sys.exit(status)


def _asks_for_help(words: Sequence[str]) -> bool:
    before_the_rest = list(words)[: list(words).index("--")] if "--" in words else words
    return bool({"--help", "-help", "-h", "--helpfull"} & set(before_the_rest))


def _terminate(number: int, frame: Any) -> NoReturn:
    del number, frame
    raise Terminated


def _forget_closed_output() -> None:
    """Keeps Python from reporting at its exit that the reader of standard output has gone."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _one_line(error: BaseException) -> str:
    """Returns an error's message without line breaks, and without the number of an OSError."""
    message = str(error)
    if isinstance(error, ModuleNotFoundError):
        message = packages.what_to_install(error.name)
    elif isinstance(error, OSError) and error.strerror:
        names = [str(name) for name in (error.filename, error.filename2) if name is not None]
        message = ": ".join([*names, error.strerror])
    return " ".join(message.split()) or type(error).__name__


def _json_value(value: Any) -> Any:
    """Returns a NumPy scalar's Python value, or the name of a path."""
    return value.item() if hasattr(value, "item") else os.fspath(value)
