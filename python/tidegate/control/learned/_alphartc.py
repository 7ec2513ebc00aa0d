"""`alphartc:FILE`: the class `Estimator` that AlphaRTC and OpenNetLab's gym ask for the bandwidth.

The contract: github.com/OpenNetLab/Challenge-Example, README.md, "Challenge Manual": `report_states(stats: dict)` for
each RTP packet, `get_estimated_bandwidth() -> int` every 200 ms or so, and `modules/third_party/cmdinfer/cmdinfer.py`
of github.com/OpenNetLab/AlphaRTC, which makes it without arguments and takes `int(...)` of what it answers. There it
is run in its own folder; so here its folder is the present one, and the first in which modules are looked for, while
it is imported and made.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import sys
import sysconfig
import threading
import traceback
from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from tidegate.control import Arrived, Controller, ReceiverHalf, _source
from tidegate.control.learned._receiving import Estimating, Follower, SendTimes, checked
from tidegate.errors import ControllerError
from tidegate.units import show

CLASS = "Estimator"
METHODS = ("report_states", "get_estimated_bandwidth")

INTERVAL_MS = 200
"""How often it is asked (AlphaRTC's `bwe_feedback_duration` in its examples; Challenge-Example, README.md, note 5)."""

_LONGEST_MS = 60_000

_PRESENT = threading.RLock()  # the present folder, sys.path and sys.modules are those of the whole process


def look(path: Path, shown: str) -> None:
    """Says what is wrong with a file as far as its text tells.

    Raises:
        ControllerError: when it cannot be read, is not Python, or has no such class.
    """
    names = _source.names(path, shown)
    if names is not None and CLASS not in names:
        raise _source.no_class(shown, CLASS, names)


def maker(path: Path, shown: str) -> Maker:
    """Imports the file.

    Raises:
        ControllerError: when it cannot be imported, or its class has not both methods.
    """
    known = _KNOWN.get((path, shown))
    if known is None or known[0] != _stamps(known[1], path):
        made = Maker(path, shown)
        known = _KNOWN[path, shown] = (_stamps(made, path), made)
    return known[1]


_KNOWN: dict[tuple[Path, str], tuple[object, Maker]] = {}


def _stamps(made: Maker, path: Path) -> object:
    """When its files were changed: changed ones are read anew."""
    return [(file, file.stat().st_mtime_ns) for file in (path, *made.beside.values()) if file.is_file()]


class Maker:
    """Makes both halves around a new `Estimator`."""

    needs = Follower.needs

    def __init__(self, path: Path, shown: str) -> None:
        self._path, self._shown = path, shown
        self._own: dict[str, ModuleType] = {}
        """Modules of its folder: others of the same names may be in another one."""
        with self._at_home():
            module = self._import()
        found = getattr(module, CLASS, None)
        if not isinstance(found, type):
            raise _source.no_class(shown, CLASS, [name for name, one in vars(module).items() if isinstance(one, type)])
        self._class: type[Any] = found
        for method in METHODS:
            if not callable(getattr(found, method, None)):
                needs = f"it needs {' and '.join(METHODS)}"
                raise ControllerError(f"{shown}{self._line()}: {CLASS} has no method {method}; {needs}")
        home = path.parent
        files = (Path(one.__file__).resolve() for one in self._own.values() if one.__file__)
        near = Path(shown).parent
        self.beside: Mapping[str, Path] = {(near / file.relative_to(home)).as_posix(): file for file in files}

    def __reduce__(self) -> tuple[Any, ...]:
        """It does not go to another machine: its code reads what stands in its folder."""
        raise TypeError("AlphaRTC's class runs in the folder of its file, which other machines do not have")

    @contextmanager
    def _at_home(self) -> Iterator[None]:
        """In its folder, where its own modules are found first, and nobody else's of the same name."""
        home = self._path.parent
        with _PRESENT, chdir(home):
            before = {name: sys.modules.pop(name) for name in self._of(home)}
            sys.modules.update(self._own)
            sys.path.insert(0, str(home))
            try:
                yield
            finally:
                sys.path.remove(str(home))
                self._own.update({name: sys.modules.pop(name) for name in self._of(home)})
                sys.modules.update(before)

    @staticmethod
    def _of(home: Path) -> list[str]:
        """Modules that the folder has, or would have, of those that are imported."""
        local = {one.stem for one in home.iterdir() if one.suffix == ".py" or one.is_dir()} - {"tidegate"}
        return [
            name
            for name, module in sys.modules.items()
            if name.partition(".")[0] in local and not _is_installed(module)
        ]

    def _import(self) -> ModuleType:
        name = "tidegate_alphartc"
        spec = importlib.util.spec_from_file_location(name, self._path)
        if spec is None or spec.loader is None:
            raise ControllerError(f"{self._shown}: is no Python file")
        module = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except (Exception, SystemExit) as error:
            raise ControllerError(f"{self._shown}: cannot be imported: {self._brief(error)}") from error
        return module

    def _brief(self, error: BaseException) -> str:
        """An exception in one line, with its place in its author's files."""
        if isinstance(error, SyntaxError):
            return f"{type(error).__name__}: {error.msg} (line {error.lineno})"
        home = str(self._path.parent)
        own = [one for one in traceback.extract_tb(error.__traceback__) if one.filename.startswith(home)]
        place = ""
        if own:
            file = Path(own[-1].filename)
            place = f" ({'' if file == self._path else f'{file.relative_to(home)}, '}line {own[-1].lineno})"
        return f"{type(error).__name__}: {error}{place}"

    def _line(self) -> str:
        """Where its class begins, for errors; nothing where it comes from another file."""
        tree = ast.parse(self._path.read_bytes())
        lines = [one.lineno for one in tree.body if isinstance(one, ast.ClassDef) and one.name == CLASS]
        return f" (line {lines[0]})" if lines else ""

    def check(self, settings: Mapping[str, Any]) -> None:
        """Takes `interval_ms`, how often it is asked, and arguments of the class."""
        who = f"alphartc:{self._shown}"
        arguments = dict(settings)
        interval_ms = arguments.pop("interval_ms", INTERVAL_MS)
        if (
            isinstance(interval_ms, bool)
            or not isinstance(interval_ms, int | float)
            or not 1 <= interval_ms <= _LONGEST_MS
        ):
            found = show(str(interval_ms))
            raise ControllerError(f"{who}: interval_ms: found {found}; expected 1 to {_LONGEST_MS} milliseconds")
        try:
            inspect.signature(self._class).bind(**arguments)
        except TypeError as error:
            raise ControllerError(f"{who}{self._line()}: {CLASS}: {error}") from None
        except ValueError:
            return  # made in C, without a signature: it finds out itself

    def __call__(self, interval_ms: float = INTERVAL_MS, **arguments: Any) -> tuple[Controller, ReceiverHalf]:
        """Both halves.

        Raises:
            ControllerError: when the class cannot be made.
        """
        try:
            with self._at_home():
                made = self._class(**arguments)
        except (Exception, SystemExit) as error:
            raise ControllerError(f"{self._shown}: {CLASS}() raised {self._brief(error)}") from error
        return Follower(), AlphaRtcEstimator(made, round(interval_ms * 1e6), self._path, self._shown)


_LIBRARY = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})


def _is_installed(module: ModuleType) -> bool:
    # a package without __init__.py has a path and no file
    places = [getattr(module, "__file__", None), *getattr(module, "__path__", ())]
    return not any(places) or any(place is not None and place.startswith(_LIBRARY) for place in places)


class AlphaRtcEstimator(Estimating):
    """Tells the estimator of each packet, and asks it."""

    def __init__(self, estimator: Any, interval_ns: int, path: Path, shown: str) -> None:
        super().__init__(interval_ns)
        self._estimator = estimator
        self._path, self._shown = path, shown
        self._times = SendTimes()

    def hear(self, now_ns: int, packet: Arrived) -> None:
        ticks = self._times.ticks(packet.abs_send_time or 0)
        self._estimator.report_states(
            {
                "send_time_ms": SendTimes.ms(ticks),
                "arrival_time_ms": now_ns // 10**6,
                "payload_type": packet.payload_type,
                "sequence_number": packet.rtp_sequence % (1 << 16),
                "ssrc": packet.ssrc,
                "padding_length": packet.padding,
                "header_length": packet.header,
                # with its padding, as libwebrtc's call.cc passes it on
                "payload_size": packet.size - packet.header,
            }
        )

    def estimate(self, now_ns: int) -> int:
        del now_ns
        answer = self._estimator.get_estimated_bandwidth()
        try:
            return checked(answer, "get_estimated_bandwidth returned")
        except ValueError as error:
            code = getattr(type(self._estimator).get_estimated_bandwidth, "__code__", None)
            other = "" if code is None or Path(code.co_filename) == self._path else f"{Path(code.co_filename).name}, "
            place = "" if code is None else f" ({other}line {code.co_firstlineno})"
            raise ControllerError(f"{self._shown}{place}: {error}") from None
