"""Jobs and results as bytes for a machine that has none of our files.

A job carries all that it needs. What many jobs share goes apart from them, each under the hash of its contents, so that
it is sent to a worker once: scenarios as the engine takes them, the bytes of recorded networks, and the code of
controllers in Python. Code goes by value (cloudpickle), a class of a notebook's cell as well as one of a file with what
it uses from beside that file: the other machine imports nothing of theirs and opens no file.
"""

from __future__ import annotations

import hashlib
import io
import pickle
import sys
import threading
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from types import ModuleType
from typing import Any, Self

import cloudpickle

from tidegate.control import registry
from tidegate.errors import InputError, RunError
from tidegate.scenario import Scenario
from tidegate.scenario.lower import Lowered
from tidegate.scenario.reading import Inputs, Origin

Hash = str
_KEPT = 256  # shared things that a sender or a worker has at hand: jobs of one scenario come one after the other
_LEVEL = 1  # of zlib: traces are text, and shrink to a third in a few milliseconds a megabyte
_OURS = ("tidegate_controller_", "tidegate_paper_")  # modules of files that were loaded by their path
_registering = threading.Lock()  # what cloudpickle takes by value is one list for all


class Packer:
    """Makes bytes of jobs, and of what they share."""

    def __init__(self) -> None:
        self._known: OrderedDict[int, tuple[Any, Hash]] = OrderedDict()
        self._parts: dict[Hash, tuple[bytes, frozenset[Hash]]] = {}

    def pack(self, jobs: Any) -> tuple[bytes, dict[Hash, bytes]]:
        """Some jobs, and what is shared that they need, by its hash.

        Raises:
            InputError: says what cannot be sent, and why.
        """
        data, needed = self._dump(jobs)
        self._trim(needed)
        return data, {one: self._parts[one][0] for one in sorted(needed)}

    def _dump(self, what: Any) -> tuple[bytes, frozenset[Hash]]:
        out = io.BytesIO()
        pickler = _Pickler(out, self._shared)
        with _by_value():
            try:
                pickler.dump(what)
            except InputError:
                raise
            except Exception as error:
                raise InputError(f"a run cannot be sent to another machine: {_brief(error)}") from error
        return zlib.compress(out.getvalue(), _LEVEL), frozenset(pickler.needed)

    def _shared(self, what: Any) -> frozenset[Hash] | None:
        """The hashes of something shared and of what it needs itself, its own first; None for all else."""
        if not isinstance(what, Lowered | Scenario | Origin | _Code):
            return None
        found = self._known.get(id(what))
        if found is None or found[0] is not what or found[1] not in self._parts:
            data, needed = self._dump(_plain(what))
            key = hashlib.sha256(data).hexdigest()
            self._parts[key] = data, needed
            # the object is kept, so that nothing else gets its number
            found = self._known[id(what)] = (what, key)
        self._known.move_to_end(id(what))
        return _Needed(found[1], self._parts[found[1]][1])

    def _trim(self, needed: frozenset[Hash]) -> None:
        if len(self._known) <= 2 * _KEPT:
            return
        for number in list(self._known)[:_KEPT]:
            del self._known[number]
        kept = {key for _, key in self._known.values()} | needed
        kept |= {one for key in kept for one in self._parts[key][1]}
        self._parts = {key: part for key, part in self._parts.items() if key in kept}


class _Needed(frozenset[Hash]):
    """Hashes of something shared and of all that it needs."""

    own: Hash

    def __new__(cls, own: Hash, needed: frozenset[Hash]) -> Self:
        made = super().__new__(cls, {own, *needed})
        made.own = own
        return made


class _Code:
    """What makes a controller in Python."""

    def __init__(self, label: str, factory: Callable[[], Any]) -> None:
        self.label, self.factory = label, factory


def _plain(what: Any) -> Callable[[], Any] | partial[Any]:
    """What something shared is made of, as a call that makes it again."""
    match what:
        case Lowered():
            scenario, ir, inputs = what.parts
            codes = {label: _Code(label, factory) for label, factory in inputs.python.items()}
            return partial(_lowered, scenario, ir, inputs.origins, codes, inputs.files, inputs.here)
        case Scenario():
            # names of files begin at the caller's folder, wherever the worker is
            copy = what.model_copy()
            copy._base = what.base.resolve()  # noqa: SLF001
            return partial(_same, _State(copy))
        case Origin():
            return partial(_trace, _State(what), what.contents())
    if what.label.startswith("clip "):
        raise InputError(
            "real video with an encoder in the loop (codec=openh264) is encoded on this machine; --engine pool does it"
        )
    return partial(_same, _State(what.factory, what.label))


class _State:
    """Something shared where it stands for itself: what is inside it is written out."""

    def __init__(self, what: Any, label: str = "") -> None:
        self.what, self.label = what, label

    def __reduce__(self) -> tuple[Any, ...]:
        if self.label:
            return pickle.loads, (_code(self.label, self.what),)
        return pickle.loads, (pickle.dumps(self.what),)


def _same(what: Any) -> Any:
    return what


def _trace(origin: Any, data: bytes) -> Any:
    return origin.parse(data)


def _lowered(
    scenario: Scenario, ir: Any, traces: list[Any], codes: Mapping[str, Any], files: Any, here: Any
) -> Lowered:
    return Lowered.of_parts(scenario, ir, Inputs(traces, [], dict(codes), files, here))


def _code(label: str, factory: Any) -> bytes:
    """The code of a controller, with what it uses from beside its file."""
    made_by = factory.func if isinstance(factory, partial) else factory
    try:
        with _by_value(registry.modules_beside(made_by)):
            return bytes(cloudpickle.dumps(factory))
    except Exception as error:
        raise InputError(
            f"{label}: cannot be sent to another machine: {_brief(error)}; what a module holds beside its classes and "
            "functions (an open file, a lock, a session) is better made in the controller's __init__"
        ) from error


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Writes down hashes for what is shared."""

    def __init__(self, out: io.BytesIO, shared: Callable[[Any], frozenset[Hash] | None]) -> None:
        super().__init__(out, protocol=pickle.HIGHEST_PROTOCOL)
        self._shared = shared
        self.needed: set[Hash] = set()

    def persistent_id(self, what: Any) -> Hash | None:
        found = self._shared(what)
        if not isinstance(found, _Needed):
            return None
        self.needed |= found
        return found.own


@contextmanager
def _by_value(further: Iterator[ModuleType] | None = None) -> Iterator[None]:
    """Modules that another machine cannot import go by value inside."""
    if further is None:
        further = (one for name, one in list(sys.modules.items()) if name.startswith(_OURS))
    modules = list(further)
    with _registering:
        fresh = [one for one in modules if one.__name__ not in cloudpickle.list_registry_pickle_by_value()]
        for one in fresh:
            cloudpickle.register_pickle_by_value(one)
    try:
        yield
    finally:
        with _registering:
            for one in fresh:
                cloudpickle.unregister_pickle_by_value(one)


class Unpacker:
    """Makes jobs of bytes; what is shared is made once and kept for the next ones."""

    def __init__(self) -> None:
        self._made: OrderedDict[Hash, Any] = OrderedDict()
        self._lock = threading.RLock()

    def unpack(self, data: bytes, parts: Mapping[Hash, bytes]) -> Any:
        """What was packed.

        Args:
            data: The bytes of the jobs.
            parts: What they share, by its hash.
        """
        with self._lock:
            made = self._load(data, parts)
            while len(self._made) > _KEPT:
                self._made.popitem(last=False)
            return made

    def _load(self, data: bytes, parts: Mapping[Hash, bytes]) -> Any:
        return _Unpickler(zlib.decompress(data), lambda key: self._shared(key, parts)).load()

    def _shared(self, key: Hash, parts: Mapping[Hash, bytes]) -> Any:
        if key not in self._made:
            self._made[key] = self._load(parts[key], parts)()
        self._made.move_to_end(key)
        return self._made[key]


class _Unpickler(pickle.Unpickler):
    def __init__(self, data: bytes, shared: Callable[[Hash], Any]) -> None:
        super().__init__(io.BytesIO(data))
        self._shared = shared

    def persistent_load(self, key: Any) -> Any:
        return self._shared(key)


def outcome_bytes(outcome: Any) -> bytes:
    """A result, or an error, as bytes; of what cannot be sent an error that says so."""
    for one in (outcome, None):
        out = io.BytesIO()
        try:
            what = RunError(f"what came of a run cannot be handed over: {outcome!r:.200}") if one is None else one
            _Pickler(out, lambda _: None).dump(what)
        except Exception:  # noqa: BLE001, S112
            continue
        return zlib.compress(out.getvalue(), _LEVEL)
    raise AssertionError("an error of ours can be sent")


def outcome_of(data: bytes) -> Any:
    """The result, or the error."""
    return pickle.loads(zlib.decompress(data))  # noqa: S301


def _brief(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
