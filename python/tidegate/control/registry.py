"""The registry of controllers: their names, presets and settings, and classes written in Python.

A controller is named by a short text, `NAME[:PART,PART...]`. A part is a preset, a setting
(`key=value`), or the value of the only setting that a controller has: `gcc`, `gcc:draft-02`,
`gcc:draft-02,k_up=0.01`, `fixed:2Mbps`, `python:mine.py:Mine`, `python:package.module:Mine:gain=0.5`,
`onnx:model.onnx`, `alphartc:BandwidthEstimator.py`.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import json
import math
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from tidegate import _core
from tidegate.control import Controller, Needs, _source, classes, learned
from tidegate.control.contenders import Scalar
from tidegate.errors import ControllerError, InputError, did_you_mean
from tidegate.units import Duration, Quantity, Rate, Size, show
from tidegate.wording import printable

PROGRAM = "program:"
"""Prefix of the name of a contender that is a real program, which makes a call by the wall clock."""

_UNITS: dict[str, tuple[type[Quantity], int]] = {
    "bit/s": (Rate, 1),
    "kbit/s": (Rate, 10**3),
    "ns": (Duration, 1),
    "us": (Duration, 10**3),
    "ms": (Duration, 10**6),
    "s": (Duration, 10**9),
    "bytes": (Size, 1),
    "B": (Size, 1),
}
"""Units of settings that are written with a unit, and their size in base units."""


@cache
def registry() -> Mapping[str, Mapping[str, Any]]:
    """Description of each controller, by name: summary, presets, settings, needs."""
    return {entry["name"]: entry for entry in json.loads(_core.controllers_json())}


def is_file(label: str) -> bool:
    """Whether a label names a file or a module that is the controller: a class in Python, or a model."""
    return label.partition(":")[0] in ("python", *learned.KINDS)


def is_program(label: str) -> bool:
    """Whether a contender is a real program (see tidegate.shell), not a controller in a simulation."""
    return label.startswith(PROGRAM)


def settings_of(name: str, preset: str = "") -> Sequence[Mapping[str, Any]]:
    """Settings of a controller's preset, or of its default one: name, unit, doc and source of each."""
    entry = registry()[name]
    settings: Sequence[Mapping[str, Any]] = entry["own_settings"].get(preset, entry["settings"])
    return settings


@dataclass(frozen=True)
class Choice:
    """A controller with its settings, checked."""

    name: str
    preset: str = ""
    settings: Mapping[str, Scalar] = field(default_factory=dict)
    made_by: Callable[..., Any] | None = None
    """The class or function that makes a controller written in Python; None for the engine's own."""
    source: Path | None = None
    """The file of that class."""
    is_run: bool = True
    """Whether the code of a controller written in Python was run; only then can it be made and tell its needs."""

    def local_classes(self) -> dict[str, tuple[str, str]]:
        """Source text and hash of the code, by name, of a class that only this process has; else nothing."""
        if not isinstance(self.made_by, type) or self.source is not None or classes.travels(self.made_by):
            return {}
        return {self.name: (classes.text_of(self.made_by), classes.fingerprint(self.made_by))}

    @property
    def label(self) -> str:
        """Its name with preset and settings: equal for equal choices."""
        parts = [self.preset] if self.preset else []
        parts += [f"{key}={value}" for key, value in self.settings.items()]
        return f"{self.name}:{','.join(parts)}" if parts else self.name

    def code(self) -> dict[str, Path]:
        """Files of a controller in Python, by their names: its own, and those in the same folder that it imports."""
        if self.made_by is None or self.source is None or not self.source.is_file():
            return {}
        main_file = self.source.resolve()
        if (beside := getattr(self.made_by, "beside", None)) is not None:
            return {**beside, self.name: main_file}
        imported = {
            file.relative_to(main_file.parent).as_posix(): file
            for file, _ in _imported(self.made_by, main_file)
            if file != main_file
        }
        return {**imported, self.name: main_file}

    def factory(self) -> Callable[[], Any] | None:
        """The function that makes a controller written in Python; None for the engine's own."""
        return None if self.made_by is None else partial(self.made_by, **self.settings)

    @property
    def needs(self) -> Needs:
        """Requirements on the session; for a class in Python, its attribute of that name.

        Where its code was not run, the default.
        """
        if not self.is_run:
            return Needs()
        if self.made_by is None:
            return _core.controller_needs(self.name, self.preset, json.dumps(dict(self.settings)))
        needs = getattr(self.made_by, "needs", Needs())
        if not isinstance(needs, Needs):
            raise ControllerError(f"{self.name}: needs: found {show(str(needs))}; expected a tidegate.Needs")
        return needs

    def session(self, feedback: str, ecn: str) -> tuple[str, str]:
        """Format of feedback and use of ECN that the controller gets, for these settings of a scenario.

        `auto` stands for the needs of the controller. Its per-packet feedback is RFC 8888 in two cases: where packets
        can be marked, because transport-wide feedback does not report marks; and where reports go with frames, because
        the documents of the controllers that need this say so.
        """
        needs = self.needs
        ecn = needs.ecn if ecn == "auto" else ecn
        if feedback != "auto":
            return feedback, ecn
        if needs.feedback in {"receiver-reports", "own"}:
            return "none", ecn
        return "twcc" if (ecn, needs.interval) == ("off", "usual") else "ccfb", ecn

    def to_ir(self) -> dict[str, Any]:
        """The choice in the engine's form; a controller in Python is identified by its label."""
        if self.made_by is not None or not self.is_run:
            return {"name": self.label, "preset": "", "settings": {}, "python": True}
        settings = dict(self.settings)
        return {"name": self.name, "preset": self.preset, "settings": settings, "python": False}


class Named(Protocol):
    """A table of a scenario that names a controller."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def preset(self) -> str:
        """Its preset."""

    @property
    def settings(self) -> Mapping[str, Scalar]:
        """Its settings."""


def choose(controller: str | type[Any] | Named, base: Path, *, run_code: bool = True) -> Choice:
    """The controller that a scenario names: text, a table, or a class.

    Args:
        controller: A name with its parts, a `tidegate.scenario.Controller`, or a class.
        base: Folder that relative names of Python files start from.
        run_code: Whether the module may be imported, which runs it; otherwise only its text is read, and the choice
            cannot make a controller.

    Raises:
        ControllerError: when no controller, preset or setting has that name.
    """
    if isinstance(controller, type):
        controller = classes.name_of(controller)
    settings: Mapping[str, Scalar] = {}
    if isinstance(controller, str):
        text, preset = controller, ""
    else:
        text, preset, settings = controller.name, controller.preset, controller.settings
    name, _, rest = text.partition(":")
    if name == "python":
        return _python(text, preset, settings, base, run_code=run_code)
    if name in learned.KINDS:
        return _learned(text, preset, settings, base, run_code=run_code)
    entry = _entry(name)
    for part, key, value in _parts(rest):
        if key is not None:
            settings = {**settings, key: _scalar(value)}
        elif part in entry["presets"]:
            preset = part
        elif len(entry["settings"]) == 1:
            settings = {**settings, entry["settings"][0]["name"]: _scalar(part)}
        else:
            raise _unknown_preset(name, part, entry["presets"])
    if preset and preset not in entry["presets"]:
        raise _unknown_preset(name, preset, entry["presets"])
    return Choice(name, preset, _checked(name, preset or entry["presets"][0], settings))


def _parts(text: str) -> Iterator[tuple[str, str | None, str]]:
    """Parts behind a name: the whole part, its key (None unless it is `key=value`) and its value."""
    for part in filter(None, map(str.strip, text.split(","))):
        key, equals, value = part.partition("=")
        yield part, key.strip() if equals else None, value.strip()


def _checked(name: str, preset: str, settings: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """The settings for the engine, each in its own unit, checked for this preset."""
    available = {setting["name"]: setting for setting in settings_of(name, preset)}
    converted = {}
    for key, value in settings.items():
        if key not in available:
            raise _unknown_setting(name, preset, key, list(available))
        converted[key] = _in_unit(name, available[key], value)
    try:
        _core.check_controller(name, preset, json.dumps(converted))
    except ValueError as error:
        raise ControllerError(str(error)) from None
    return converted


def _entry(name: str) -> Mapping[str, Any]:
    entries = registry()
    if name == "program":
        why = "programs run by the wall clock, in compare and suite run only; a simulation needs a controller"
        raise ControllerError(f"program: {why}")
    if name not in entries:
        hint = (
            did_you_mean(name, entries)
            or f"; available: {', '.join(entries)}, python:FILE:CLASS, onnx:FILE and alphartc:FILE"
        )
        raise ControllerError(f"{name}: there is no such controller{hint}")
    return entries[name]


def _unknown_preset(name: str, preset: str, presets: list[str]) -> ControllerError:
    hint = did_you_mean(preset, presets) or f"; available: {', '.join(presets)}"
    return ControllerError(f"{name}:{preset}: {name} has no such preset{hint}")


def _unknown_setting(name: str, preset: str, key: str, available: list[str]) -> ControllerError:
    others = [
        candidate
        for candidate in registry()[name]["presets"]
        if any(setting["name"] == key for setting in settings_of(name, candidate))
    ]
    if others:
        return ControllerError(
            f"{name}: {key} is a setting of {', '.join(others)}, not of {preset}; available: {', '.join(available)}"
        )
    hint = did_you_mean(key, available) or f"; available: {', '.join(available)}"
    return ControllerError(f"{name}: {key}: there is no such setting{hint}")


def _scalar(text: str) -> Scalar:
    if text in {"true", "false"}:
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _in_unit(name: str, setting: Mapping[str, Any], value: Scalar) -> Scalar:
    """A setting's value as the engine takes it: a plain number in the setting's own unit."""
    key = setting["name"]
    if isinstance(value, float) and not math.isfinite(value):
        raise ControllerError(f"{name}: {key}: found {value}; expected a finite number")
    quantity = _UNITS.get(setting.get("unit", ""))
    if quantity is None:
        return value
    kind, factor = quantity
    try:
        base = kind.parse(value)
    except InputError as error:
        raise ControllerError(f"{name}: {key}: {error}") from None
    return int(base) // factor if int(base) % factor == 0 else int(base) / factor


def _python(text: str, preset: str, settings: Mapping[str, Scalar], base: Path, *, run_code: bool) -> Choice:
    match = re.fullmatch(r"python:(?P<where>[^:]+):(?P<name>[^:]+)(?::(?P<parts>.*))?", text)
    if match is None:
        right = "python:file.py:Class or python:package.module:Class"
        raise ControllerError(f"found {show(text)}; expected {right}")
    if preset:
        raise ControllerError(f"{text}: a controller in Python has no presets, found {show(preset)}")
    all_settings = _merged_settings(text, settings, match["parts"])
    where = match["where"]
    name = f"python:{where}:{match['name']}"
    defined = classes.class_of(where, match["name"])
    if defined is not None:
        _check_class(defined, defined.__qualname__)
        _check_settings(defined, all_settings, defined.__qualname__)
        return Choice(name, settings=all_settings, made_by=defined)
    if where == "__main__":
        why = "the class belongs to a notebook or script, and this process has not defined it"
        raise ControllerError(
            f"{match['name']}: {why}; run its code first, or put the class in a file: python:FILE.py:CLASS"
        )
    if printable(where) != where:
        raise ControllerError(f"{where}: has characters that cannot be written in a result; rename the file")
    source = (base / where).resolve() if where.endswith(".py") else None
    if source is not None and not source.is_file():
        raise ControllerError(f"{where}: there is no such file (looked for {source})")
    if not run_code:
        names = _source.names(source or _source.file_of(where), where)
        if names is not None and match["name"] not in names:
            raise _source.no_class(where, match["name"], names)
        return Choice(name, settings=all_settings, is_run=False)
    with _LOADING:
        module = _load_file(source, where) if source else _import(where)
    made_by = classes.attribute(module, match["name"])
    if not callable(made_by):
        raise _source.no_class(
            where, match["name"], [name for name, item in vars(module).items() if isinstance(item, type)]
        )
    if isinstance(made_by, type):
        _check_class(made_by, name)
    _check_settings(made_by, all_settings, name)
    return Choice(name, settings=all_settings, made_by=made_by, source=source or _file_of(made_by))


def _merged_settings(text: str, settings: Mapping[str, Scalar], parts: str | None) -> dict[str, Scalar]:
    """Settings of a controller in a file: those of its table, and those behind its name."""
    merged = dict(settings)
    for part, key, value in _parts(parts or ""):
        if key is None:
            raise ControllerError(f"{text}: found {show(part)}; expected key=value")
        merged[key] = _scalar(value)
    return merged


def _learned(text: str, preset: str, settings: Mapping[str, Scalar], base: Path, *, run_code: bool) -> Choice:
    match = re.fullmatch(r"(?P<kind>\w+):(?P<where>[^:]+)(?::(?P<parts>.*))?", text)
    if match is None:
        kind = text.partition(":")[0]
        right = {"onnx": "onnx:model.onnx", "alphartc": "alphartc:BandwidthEstimator.py"}[kind]
        raise ControllerError(f"found {show(text)}; expected {right}")
    kind, where = match["kind"], match["where"]
    if preset:
        raise ControllerError(f"{text}: {kind} has no presets, found {show(preset)}")
    all_settings = _merged_settings(text, settings, match["parts"])
    name, source = f"{kind}:{where}", (base / where).resolve()
    if not source.is_file():
        raise ControllerError(f"{where}: there is no such file (looked for {source})")
    if not run_code:
        learned.look(kind, source, where)
        return Choice(name, settings=all_settings, is_run=False)
    made_by = learned.maker(kind, source, where)
    made_by.check(all_settings)
    return Choice(name, settings=all_settings, made_by=made_by, source=source)


_STAMP = "_tidegate_stamp"  # time and size of the file that a module was loaded from: a changed file is loaded again


def modules_beside(made_by: Callable[..., Any]) -> Iterator[ModuleType]:
    """The module of a controller in Python, and the modules in its folder that it imports, directly or not.

    None for installed code, and for code typed into a notebook.
    """
    source = _file_of(made_by)
    if source is not None:
        for _, module in _imported(made_by, source.resolve()):
            yield module


def _imported(made_by: Callable[..., Any], source: Path) -> Iterator[tuple[Path, ModuleType]]:
    """The files in the folder of `source`, or below it, that its code imports, directly or through each other."""
    home = source.parent
    names, visited = [getattr(made_by, "__module__", None)], set[str]()
    while names:
        name = names.pop()
        if not isinstance(name, str) or name in visited or name.partition(".")[0] == "tidegate":
            continue
        visited.add(name)
        module = sys.modules.get(name)
        file_name = getattr(module, "__file__", None)
        if module is None or file_name is None:
            continue  # a module in C, such as time
        file = Path(file_name).resolve()
        if not file.is_relative_to(home) or file.is_relative_to(Path(sys.prefix).resolve()):
            continue
        yield file, module
        values = list(vars(module).values())
        names += [
            value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None) for value in values
        ]


def _file_of(made_by: Callable[..., Any]) -> Path | None:
    try:
        return Path(inspect.getfile(made_by))
    except (OSError, TypeError):
        return None


_LOADING = threading.RLock()
"""Held while a file is imported: runs in other threads wait for the whole of its module."""


def _load_file(path: Path, label: str) -> Any:
    name = f"tidegate_controller_{hashlib.sha256(str(path).encode()).hexdigest()[:16]}"
    stamp = path.stat().st_mtime_ns, path.stat().st_size
    if name in sys.modules and vars(sys.modules[name]).get(_STAMP) == stamp:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ControllerError(f"{label}: the file is not a Python file")
    module = importlib.util.module_from_spec(spec)
    setattr(module, _STAMP, stamp)
    sys.modules[name] = module  # dataclasses and pickle look their module up
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise ControllerError(f"{label}: cannot be imported: {_brief(error, path)}") from error
    return module


def _import(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise ControllerError(f"{name}: cannot be imported: {error}") from None
    except (Exception, SystemExit) as error:
        raise ControllerError(f"{name}: cannot be imported: {_brief(error, None)}") from error


def _brief(error: BaseException, path: Path | None) -> str:
    """An exception in one line, with its line in the author's file."""
    line = error.lineno if isinstance(error, SyntaxError) else None
    trace = error.__traceback__
    while trace is not None:
        if path is not None and trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    position = f" (line {line})" if line is not None else ""
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}: {message}{position}"


def _check_class(made_by: type[Any], name: str) -> None:
    for method in ("on_report(now_ns, report)", "on_limits(now_ns, limits)"):
        if not callable(getattr(made_by, method.partition("(")[0], None)):
            base = "; derive it from tidegate.Controller, which has every method except on_report"
            raise ControllerError(f"{name}: the class has no method {method}{base}")
    if getattr(made_by, "on_report", None) is Controller.on_report:
        raise ControllerError(f"{name}: the class does not define on_report(now_ns, report)")


def _check_settings(made_by: Callable[..., Any], settings: Mapping[str, Scalar], name: str) -> None:
    try:
        if isinstance(made_by, type):
            # not of the class itself: __new__ of the base class takes everything
            inspect.signature(made_by.__init__).bind(None, **settings)  # type: ignore[misc]
        else:
            inspect.signature(made_by).bind(**settings)
    except TypeError as error:
        raise ControllerError(f"{name}: {error}") from None
    except ValueError:
        return  # made in C, without a signature: it finds out itself
