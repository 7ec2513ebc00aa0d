"""What has moved: whoever imports a module, or a name, from where it was gets the very same object."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.abc import Loader
else:
    Loader = object

_PACKAGE = "tidegate."

MOVED = {
    "controllers": "control.registry",
    "driving": "control.loop",
    "files": "_files",
    "folders": "results._folders",
    "lte": "running.lte",
    "media.cache": "video._cache",
    "media.clip": "video.clip",
    "media.codec": "video._codec",
    "media.decode": "media._decode",
    "media.extra": "video._extra",
    "media.h264": "video._codec.h264",
    "media.intra": "video._codec.intra",
    "media.live": "media._live",
    "media.measures": "video.measures",
    "media.received": "media._received",
    "media.render": "media._render",
    "media.results": "media._chain",
    "media.screen": "media._screen",
    "media.sent": "media._sent",
    "media.settings": "video.settings",
    "media.show": "media._figures",
    "media.vmaf": "video._vmaf",
    "memory": "scenario._memory",
    "metrics": "results.metrics",
    "metrics.model": "results.metrics._model",
    "metrics.pictures": "results.metrics._pictures",
    "paper.facts": "paper._facts",
    "paper.grids": "paper._grids",
    "paper.model": "paper._model",
    "paper.mutations": "paper._mutations",
    "paper.opening": "paper._opening",
    "paper.page": "paper._page",
    "paper.reading": "paper._reading",
    "paper.readme": "paper._readme",
    "paper.rules": "paper._rules",
    "paper.shipped": "paper._shipped",
    "paper.tables": "paper._tables",
    "paper.words": "paper._words",
    "plot": "show.plot",
    "plot.style": "show.plot._style",
    "pool": "running.pool",
    "quality": "results.quality",
    "report": "show.report",
    "report.markup": "show.report._markup",
    "report.members": "show.report._members",
    "report.page": "show.report._page",
    "report.scatter": "show.report._scatter",
    "report.series": "show.report._series",
    "report.tables": "show.report._tables",
    "rtcp": "net.rtcp",
    "saved": "results._saved",
    "scenario.checks": "scenario._checks",
    "scenario.explain": "scenario._explain",
    "scenario.frames": "scenario._frames",
    "scenario.loops": "scenario._loops",
    "scenario.lower": "scenario._lower",
    "scenario.model": "scenario._model",
    "scenario.population": "scenario._population",
    "scenario.reading": "scenario._reading",
    "scenario.rules": "scenario._rules",
    "scenario.toml": "scenario._toml",
    "sprout": "control.sprout",
    "stats": "results.stats",
    "subject": "scenario._subject",
    "sweeping": "comparing.sweeping",
    "table": "show.table",
    "tfrc": "control.tfrc",
    "trace": "net.trace",
    "unrun": "control._source",
    "wire": "net.wire",
}
"""From the old name to the new one, both inside `tidegate`; what is in a package that moved, moved with it."""

NAMES: Mapping[str, Mapping[str, str]] = {
    "comparing": {
        "DEFAULT": "scenario.variants",
        "anchored": "scenario.variants",
        "attempt": "running.jobs",
        "busy_in_python": "running.jobs",
        "execute": "running.jobs",
        "file_name": "_files",
        "file_names": "_files",
        "seeds_from": "running._seeds",
        "seeds_of": "running._seeds",
    },
    "media._live": dict.fromkeys(("BUILD", "NAME", "check", "is_in", "needs"), "video._openh264"),
    "paper.experiment": dict.fromkeys(("CellValue", "SHOWN_FROM", "decimals"), "paper.measures"),
    "running": {"finite": "results.metrics"},
    "scenario.flows": dict.fromkeys(("FileTransfer", "Web", "WebSettings", "Workload"), "scenario.traffic"),
}
"""Names that have left a module, with the module that has them now."""


_BEFORE = {new: old for old, new in MOVED.items()}


def new_name(name: str) -> str | None:
    """The present name of a module; None where it has always been called so.

    >>> new_name("tidegate.plot.sheet"), new_name("tidegate.units")
    ('tidegate.show.plot.sheet', None)
    """
    if not name.startswith(_PACKAGE):
        return None
    first, rest = name.removeprefix(_PACKAGE), ""
    # `from tidegate.report import series` asks for what had that name in the package by its present name
    package, _, inside = first.rpartition(".")
    before = f"{_BEFORE.get(package)}.{inside}"
    if before in MOVED:
        return f"{_PACKAGE}{MOVED[before]}"
    while first:
        if first in MOVED:
            return f"{_PACKAGE}{MOVED[first]}{rest}"
        first, dot, last = first.rpartition(".")
        rest = f"{dot}{last}{rest}"
    return None


class _OldNames:
    """Finds a module that has moved, and hands out the one that is under the new name."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        del path, target
        new = new_name(name)
        return None if new is None else ModuleSpec(name, _Same(name, new))


class _Same(Loader):
    """What an import calls for its module: there is nothing left to be made or run."""

    def __init__(self, old: str, new: str) -> None:
        self._old, self._new = old, new

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        del spec
        module = import_module(self._new)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # the import has put the specification of the old name there
        module.__spec__ = self._spec
        # what is loaded of a package is known by its old name from now on: an import that had to look for it would
        # put the module into the package anew, where a function may have its name (`plot.session`)
        inside = f"{self._new}."
        loaded = {name: one for name, one in sys.modules.items() if name.startswith(inside)}
        for name, one in loaded.items():
            sys.modules.setdefault(f"{self._old}.{name.removeprefix(inside)}", one)


def names_of(module: str) -> Callable[[str], object]:
    """The `__getattr__` of a module for the names that have left it."""
    moved = NAMES[module.removeprefix(_PACKAGE)]

    def find(name: str) -> object:
        if name not in moved:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return getattr(import_module(_PACKAGE + moved[name]), name)

    return find


def install() -> None:
    """Makes imports look here first: else a part of a package that moved would be found, and loaded, once more."""
    sys.meta_path.insert(0, _OldNames)
