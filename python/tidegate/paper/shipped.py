"""Where papers are, and how their code is loaded."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType

from tidegate import _shipped
from tidegate.errors import InputError, TidegateError, did_you_mean
from tidegate.paper.claims import PAPER_TOML
from tidegate.paper.experiment import Experiment

FOLDER = _shipped.PAPERS
names = _shipped.papers

CODE = "experiment.py"


def find(what: str | Path) -> Path:
    """The folder of a paper given by its key, or by the path of a folder of one's own.

    Raises:
        InputError: when there is neither.
    """
    if isinstance(what, str) and (key := what.replace("-", "_")) in names():
        return FOLDER / key
    path = Path(what)
    if path.is_dir():
        if not (path / PAPER_TOML).is_file():
            raise InputError(f"{path}: holds no paper (no {PAPER_TOML})")
        return path
    if path.exists():
        raise InputError(f"{path}: is a file; expected a paper's key, or a folder with {PAPER_TOML}")
    if len(path.parts) > 1:
        raise InputError(f"{path}: there is no such folder")
    raise InputError(f"{what}: no such paper{did_you_mean(str(what), names())} (see tidegate paper list)")


def experiment(folder: Path) -> Experiment:
    """The paper's code.

    Raises:
        InputError: when there is none, or it cannot be loaded.
    """
    path = folder / CODE
    if not path.is_file():
        raise InputError(f"{path}: there is no such file; a paper's code is in it")
    try:
        made = getattr(_module(path), "Experiment", None)
        if isinstance(made, type) and issubclass(made, Experiment) and made is not Experiment:
            return made()
    except TidegateError:
        raise
    except (Exception, SystemExit) as error:
        raise InputError(f"{path}: cannot be loaded: {failure(error, path)}") from error
    raise InputError(f"{path}: defines no class Experiment(tidegate.paper.Experiment)")


def _module(path: Path) -> ModuleType:
    if path.parent.parent == FOLDER:
        return importlib.import_module(f"tidegate.papers.{path.parent.name}.{path.stem}")
    spec = importlib.util.spec_from_file_location(f"tidegate_paper_{path.parent.resolve().name}", path)
    assert spec is not None  # noqa: S101
    assert spec.loader is not None  # noqa: S101
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up there
    spec.loader.exec_module(module)
    return module


def failure(error: BaseException, code: Path) -> str:
    """What went wrong in a paper's code, and where in it."""
    if isinstance(error, SyntaxError):
        return f"line {error.lineno}: {error.msg}"
    frames = [
        one for one in traceback.extract_tb(error.__traceback__) if Path(one.filename).resolve() == code.resolve()
    ]
    place = f" (line {frames[-1].lineno}, in {frames[-1].name})" if frames else ""
    return f"{type(error).__name__}: {error}{place}"
