"""Jobs and results as bytes, for a machine without the files of this one.

A job carries all that it needs. Objects that many jobs share go apart from the jobs, each under the hash of its
contents, so that a worker gets them once: scenarios as the engine takes them, the bytes of recorded networks, and the
code of controllers in Python. Code goes by value (cloudpickle): a class of a notebook's cell, or a class of a file
with the modules beside that file that it uses. The other machine imports none of these and opens no file.
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
_MAX_SHARED = 256  # shared objects that a sender or a worker caches: jobs of one scenario come one after the other
_LEVEL = 1  # of zlib: traces are text, and shrink to a third in a few milliseconds a megabyte
_OURS = ("tidegate_controller_", "tidegate_paper_")  # modules of files that were loaded by their path
_registering = threading.Lock()  # cloudpickle has one list of modules by value for all threads


class Packer:
    """Packs jobs, and the objects that they share, into bytes."""

    def __init__(self) -> None:
        self._known: OrderedDict[int, tuple[Any, Hash]] = OrderedDict()
        self._parts: dict[Hash, tuple[bytes, frozenset[Hash]]] = {}

    def pack(self, jobs: Any) -> tuple[bytes, dict[Hash, bytes]]:
        """Packs jobs; returns their bytes, and those of the shared objects that they need, by hash.

        Raises:
            InputError: when a job cannot be sent, with the reason.
        """
        data, needed = self._dump(jobs)
        self._trim(needed)
        return data, {key: self._parts[key][0] for key in sorted(needed)}

    def _dump(self, content: Any) -> tuple[bytes, frozenset[Hash]]:
        out = io.BytesIO()
        pickler = _Pickler(out, self._shared)
        with _modules_by_value():
            try:
                pickler.dump(content)
            except InputError:
                raise
            except Exception as error:
                raise InputError(f"a run cannot be sent to another machine: {_brief(error)}") from error
        return zlib.compress(out.getvalue(), _LEVEL), frozenset(pickler.needed)

    def _shared(self, candidate: Any) -> frozenset[Hash] | None:
        """Hashes of a shared object and of the objects that it needs; None for an object that is not shared."""
        if not isinstance(candidate, Lowered | Scenario | Origin | _Code):
            return None
        cached = self._known.get(id(candidate))
        if cached is None or cached[0] is not candidate or cached[1] not in self._parts:
            data, needed = self._dump(_recipe(candidate))
            key = hashlib.sha256(data).hexdigest()
            self._parts[key] = data, needed
            # the object is kept alive, so that no other object gets its id
            cached = self._known[id(candidate)] = (candidate, key)
        self._known.move_to_end(id(candidate))
        return _Needed(cached[1], self._parts[cached[1]][1])

    def _trim(self, needed: frozenset[Hash]) -> None:
        if len(self._known) <= 2 * _MAX_SHARED:
            return
        for number in list(self._known)[:_MAX_SHARED]:
            del self._known[number]
        live = {key for _, key in self._known.values()} | needed
        live |= {dependency for key in live for dependency in self._parts[key][1]}
        self._parts = {key: part for key, part in self._parts.items() if key in live}


class _Needed(frozenset[Hash]):
    """Hashes of a shared object (also in `key`) and of all that it needs."""

    key: Hash

    def __new__(cls, key: Hash, needed: frozenset[Hash]) -> Self:
        hashes = super().__new__(cls, {key, *needed})
        hashes.key = key
        return hashes


class _Code:
    """Factory of a controller in Python, or of pictures."""

    def __init__(self, label: str, factory: Callable[[], Any]) -> None:
        self.label, self.factory = label, factory


def _recipe(shared: Any) -> Callable[[], Any] | partial[Any]:
    """A call that rebuilds a shared object on another machine."""
    match shared:
        case Lowered():
            scenario, ir, inputs = shared.parts
            codes = {label: _Code(label, factory) for label, factory in inputs.python.items()}
            return partial(_lowered, scenario, ir, inputs.origins, codes, inputs.files, inputs.local_classes)
        case Scenario():
            # file names stay relative to the caller's folder, whatever the worker's is
            copy = shared.model_copy()
            copy._base = shared.base.resolve()  # noqa: SLF001
            return partial(_same, _State(copy))
        case Origin():
            return partial(_trace, _State(shared), shared.contents())
    if shared.label.startswith("clip "):
        raise InputError(
            "real video with an encoder in the loop (codec=openh264) needs this machine; use --engine pool"
        )
    return partial(_same, _State(shared.factory, shared.label))


class _State:
    """Wraps a shared object that is pickled in full, instead of by its hash."""

    def __init__(self, content: Any, label: str = "") -> None:
        self.content, self.label = content, label

    def __reduce__(self) -> tuple[Any, ...]:
        if self.label:
            return pickle.loads, (_code(self.label, self.content),)
        return pickle.loads, (pickle.dumps(self.content),)


def _same(content: Any) -> Any:
    return content


def _trace(origin: Any, data: bytes) -> Any:
    return origin.parse(data)


def _lowered(
    scenario: Scenario, ir: Any, traces: list[Any], codes: Mapping[str, Any], files: Any, local_classes: Any
) -> Lowered:
    return Lowered.of_parts(scenario, ir, Inputs(traces, [], dict(codes), files, local_classes))


def _code(label: str, factory: Any) -> bytes:
    """Pickles the code of a controller, with the modules beside its file that it uses."""
    made_by = factory.func if isinstance(factory, partial) else factory
    try:
        with _modules_by_value(registry.modules_beside(made_by)):
            return bytes(cloudpickle.dumps(factory))
    except Exception as error:
        raise InputError(
            f"{label}: cannot be sent to another machine: {_brief(error)}; open files, and create locks "
            "and sessions, in the controller's __init__, not at module level"
        ) from error


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Pickles shared objects as their hashes."""

    def __init__(self, out: io.BytesIO, shared: Callable[[Any], frozenset[Hash] | None]) -> None:
        super().__init__(out, protocol=pickle.HIGHEST_PROTOCOL)
        self._shared = shared
        self.needed: set[Hash] = set()

    def persistent_id(self, candidate: Any) -> Hash | None:
        hashes = self._shared(candidate)
        if not isinstance(hashes, _Needed):
            return None
        self.needed |= hashes
        return hashes.key


@contextmanager
def _modules_by_value(imported: Iterator[ModuleType] | None = None) -> Iterator[None]:
    """Context in which cloudpickle pickles modules by value if another machine cannot import them."""
    if imported is None:
        imported = (module for name, module in list(sys.modules.items()) if name.startswith(_OURS))
    modules = list(imported)
    with _registering:
        fresh = [module for module in modules if module.__name__ not in cloudpickle.list_registry_pickle_by_value()]
        for module in fresh:
            cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        with _registering:
            for module in fresh:
                cloudpickle.unregister_pickle_by_value(module)


class Unpacker:
    """Unpacks jobs; shared objects are rebuilt once and kept for later jobs."""

    def __init__(self) -> None:
        self._made: OrderedDict[Hash, Any] = OrderedDict()
        self._lock = threading.RLock()

    def unpack(self, data: bytes, parts: Mapping[Hash, bytes]) -> Any:
        """Unpacks jobs.

        Args:
            data: The bytes of the jobs.
            parts: Bytes of the objects that they share, by hash.
        """
        with self._lock:
            unpacked = self._load(data, parts)
            while len(self._made) > _MAX_SHARED:
                self._made.popitem(last=False)
            return unpacked

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
    """Packs a result or an error; one that cannot be sent is replaced by an error that says so."""
    for candidate in (outcome, None):
        out = io.BytesIO()
        try:
            content = candidate
            if content is None:
                content = RunError(f"the result of a run cannot be sent: {outcome!r:.200}")
            _Pickler(out, lambda _: None).dump(content)
        except Exception:  # noqa: BLE001, S112
            continue
        return zlib.compress(out.getvalue(), _LEVEL)
    raise AssertionError("a RunError can be sent")


def outcome_of(data: bytes) -> Any:
    """Unpacks a result or an error."""
    return pickle.loads(zlib.decompress(data))  # noqa: S301


def _brief(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
