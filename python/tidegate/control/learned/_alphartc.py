"""`alphartc:FILE`: the class `Estimator`, from which AlphaRTC and OpenNetLab's gym get the bandwidth.

The contract: github.com/OpenNetLab/Challenge-Example, README.md, "Challenge Manual": `report_states(stats: dict)` for
each RTP packet, `get_estimated_bandwidth() -> int` every 200 ms or so, and `modules/third_party/cmdinfer/cmdinfer.py`
of github.com/OpenNetLab/AlphaRTC, which makes it without arguments and takes `int(...)` of its answer. There it
runs in its own folder. So here, while it is imported and made, its folder is the working directory and comes first in
the search for modules.
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

from tidegate._inputs import CODE
from tidegate._inputs import read as read_input
from tidegate.control import Arrived, Controller, ReceiverHalf, _source
from tidegate.control.learned._receiving import Estimating, Follower, SendTimes, checked
from tidegate.errors import ControllerError
from tidegate.units import show

CLASS = "Estimator"
METHODS = ("report_states", "get_estimated_bandwidth")

INTERVAL_MS = 200
"""Time from one estimate to the next, ms (AlphaRTC's `bwe_feedback_duration` in its examples; Challenge-Example,
README.md, note 5)."""

_LONGEST_MS = 60_000

PAYLOAD_TYPE = 126
"""Payload type of video as estimators hear of it (`Gym.step` in `alphartc_gym/gym.py` of github.com/OpenNetLab/gym).
Published ones count losses among packets of this type only."""
_OUR_PAYLOAD_TYPE = 96
"""Payload type of our video (`crates/endpoint/src/settings/mod.rs`)."""
_LARGEST_PAYLOAD_TYPE = 127
"""RFC 3550 section 5.1: seven bits."""

_PRESENT = threading.RLock()  # the present folder, sys.path and sys.modules are those of the whole process


def look(path: Path, label: str) -> None:
    """Checks a file as far as its text allows.

    Raises:
        ControllerError: when it cannot be read, is not Python, or has no such class.
    """
    names = _source.names(path, label)
    if names is not None and CLASS not in names:
        raise _source.no_class(label, CLASS, names)


def maker(path: Path, label: str) -> Maker:
    """Imports the file.

    Raises:
        ControllerError: when it cannot be imported, or its class has not both methods.
    """
    cached = _MAKERS.get((path, label))
    if cached is None or cached[0] != _stamps(cached[1], path):
        new_maker = Maker(path, label)
        cached = _MAKERS[path, label] = (_stamps(new_maker, path), new_maker)
    return cached[1]


_MAKERS: dict[tuple[Path, str], tuple[object, Maker]] = {}


def _stamps(loaded: Maker, path: Path) -> object:
    """Times of change of its files: a changed file is imported again."""
    return [(file, file.stat().st_mtime_ns) for file in (path, *loaded.beside.values()) if file.is_file()]


class Maker:
    """Makes both halves around a new `Estimator`."""

    needs = Follower.needs

    def __init__(self, path: Path, label: str) -> None:
        self._path, self._label = path, label
        self._own_modules: dict[str, ModuleType] = {}
        """Modules of its folder; another folder may have modules of the same names."""
        with self._at_home():
            module = self._import()
        estimator_class = getattr(module, CLASS, None)
        if not isinstance(estimator_class, type):
            raise _source.no_class(
                label, CLASS, [name for name, value in vars(module).items() if isinstance(value, type)]
            )
        self._class: type[Any] = estimator_class
        for method in METHODS:
            if not callable(getattr(estimator_class, method, None)):
                needs = f"expected {' and '.join(METHODS)}"
                raise ControllerError(f"{label}{self._line()}: {CLASS} has no method {method}; {needs}")
        home = path.parent
        files = (Path(module.__file__).resolve() for module in self._own_modules.values() if module.__file__)
        near = Path(label).parent
        self.beside: Mapping[str, Path] = {(near / file.relative_to(home)).as_posix(): file for file in files}

    def __reduce__(self) -> tuple[Any, ...]:
        """Refuses to go to another machine: the code reads files in its folder."""
        raise TypeError("AlphaRTC's class runs in the folder of its file, and other machines lack this folder")

    @contextmanager
    def _at_home(self) -> Iterator[None]:
        """A context in its folder: its own modules are found first, and no other modules of the same names."""
        home = self._path.parent
        with _PRESENT, chdir(home):
            before = {name: sys.modules.pop(name) for name in self._local_names(home)}
            sys.modules.update(self._own_modules)
            sys.path.insert(0, str(home))
            try:
                yield
            finally:
                sys.path.remove(str(home))
                self._own_modules.update({name: sys.modules.pop(name) for name in self._local_names(home)})
                sys.modules.update(before)

    @staticmethod
    def _local_names(home: Path) -> list[str]:
        """Imported modules whose names the folder has, and that are not installed."""
        local = {path.stem for path in home.iterdir() if path.suffix == ".py" or path.is_dir()} - {"tidegate"}
        return [
            name
            for name, module in sys.modules.items()
            if name.partition(".")[0] in local and not _is_installed(module)
        ]

    def _import(self) -> ModuleType:
        name = "tidegate_alphartc"
        spec = importlib.util.spec_from_file_location(name, self._path)
        if spec is None or spec.loader is None:
            raise ControllerError(f"{self._label}: the file is not a Python file")
        module = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except (Exception, SystemExit) as error:
            raise ControllerError(f"{self._label}: cannot be imported: {self._brief(error)}") from error
        return module

    def _brief(self, error: BaseException) -> str:
        """An exception in one line, with its line in the author's files."""
        if isinstance(error, SyntaxError):
            return f"{type(error).__name__}: {error.msg} (line {error.lineno})"
        home = str(self._path.parent)
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(home)]
        position = ""
        if frames:
            file = Path(frames[-1].filename)
            position = f" ({'' if file == self._path else f'{file.relative_to(home)}, '}line {frames[-1].lineno})"
        return f"{type(error).__name__}: {error}{position}"

    def _line(self) -> str:
        """The line where its class begins, for errors; empty where the class is from another file."""
        tree = ast.parse(read_input(self._path, CODE, ControllerError).data)
        lines = [node.lineno for node in tree.body if isinstance(node, ast.ClassDef) and node.name == CLASS]
        return f" (line {lines[0]})" if lines else ""

    def check(self, settings: Mapping[str, Any]) -> None:
        """Checks `interval_ms`, the time between estimates, `payload_type`, and the arguments of the class."""
        prefix = f"alphartc:{self._label}"
        arguments = dict(settings)
        interval_ms = arguments.pop("interval_ms", INTERVAL_MS)
        if (
            isinstance(interval_ms, bool)
            or not isinstance(interval_ms, int | float)
            or not 1 <= interval_ms <= _LONGEST_MS
        ):
            text = show(str(interval_ms))
            raise ControllerError(f"{prefix}: interval_ms: found {text}; expected 1 to {_LONGEST_MS} milliseconds")
        payload_type = arguments.pop("payload_type", PAYLOAD_TYPE)
        if type(payload_type) is not int or not 0 <= payload_type <= _LARGEST_PAYLOAD_TYPE:
            text = show(str(payload_type))
            right = f"expected a whole number from 0 to {_LARGEST_PAYLOAD_TYPE}"
            raise ControllerError(f"{prefix}: payload_type: found {text}; {right}")
        try:
            inspect.signature(self._class).bind(**arguments)
        except TypeError as error:
            raise ControllerError(f"{prefix}{self._line()}: {CLASS}: {error}") from None
        except ValueError:
            return  # made in C, without a signature: it finds out itself

    def __call__(
        self, interval_ms: float = INTERVAL_MS, payload_type: int = PAYLOAD_TYPE, **arguments: Any
    ) -> tuple[Controller, ReceiverHalf]:
        """Both halves.

        Raises:
            ControllerError: when the class cannot be made.
        """
        try:
            with self._at_home():
                estimator = self._class(**arguments)
        except (Exception, SystemExit) as error:
            raise ControllerError(f"{self._label}: {CLASS}() raised {self._brief(error)}") from error
        interval_ns = round(interval_ms * 1e6)
        return Follower(), AlphaRtcEstimator(estimator, interval_ns, payload_type, self._path, self._label)


_LIBRARY = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})


def _is_installed(module: ModuleType) -> bool:
    # a package without __init__.py has a path and no file
    paths = [getattr(module, "__file__", None), *getattr(module, "__path__", ())]
    return not any(paths) or any(path is not None and path.startswith(_LIBRARY) for path in paths)


class AlphaRtcEstimator(Estimating):
    """Passes each packet to the estimator, and gets its estimates."""

    def __init__(self, estimator: Any, interval_ns: int, payload_type: int, path: Path, label: str) -> None:
        super().__init__(interval_ns)
        self._estimator = estimator
        self._payload_type = payload_type
        self._path, self._label = path, label
        self._times = SendTimes()

    def hear(self, now_ns: int, packet: Arrived) -> None:
        ticks = self._times.ticks(packet.abs_send_time or 0)
        is_video = packet.payload_type == _OUR_PAYLOAD_TYPE
        self._estimator.report_states(
            {
                "send_time_ms": SendTimes.ms(ticks),
                "arrival_time_ms": now_ns // 10**6,
                "payload_type": self._payload_type if is_video else packet.payload_type,
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
            file = "" if code is None or Path(code.co_filename) == self._path else f"{Path(code.co_filename).name}, "
            position = "" if code is None else f" ({file}line {code.co_firstlineno})"
            raise ControllerError(f"{self._label}{position}: {error}") from None
