"""Folders of papers, and the loading of their code."""

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


def find(key_or_folder: str | Path) -> Path:
    """Finds the folder of a paper from its key, or from the path of a user's own folder.

    Raises:
        InputError: when there is no such key or folder.
    """
    if isinstance(key_or_folder, str) and (key := key_or_folder.replace("-", "_")) in names():
        return FOLDER / key
    path = Path(key_or_folder)
    if path.is_dir():
        if not (path / PAPER_TOML).is_file():
            raise InputError(f"{path}: the folder is not a paper's; it has no {PAPER_TOML}")
        return path
    if path.exists():
        raise InputError(f"{path}: found a file; expected the key of a paper, or a folder with {PAPER_TOML}")
    if len(path.parts) > 1:
        raise InputError(f"{path}: there is no such folder")
    hint = did_you_mean(str(key_or_folder), names())
    raise InputError(f"{key_or_folder}: there is no such paper{hint} (tidegate paper list has all)")


def experiment(folder: Path) -> Experiment:
    """Loads the paper's code.

    Raises:
        InputError: when the folder has no code, or it cannot be loaded.
    """
    path = folder / CODE
    if not path.is_file():
        raise InputError(f"{path}: there is no such file; expected the paper's code there")
    try:
        defined = getattr(_module(path), "Experiment", None)
        if isinstance(defined, type) and issubclass(defined, Experiment) and defined is not Experiment:
            return defined()
    except TidegateError:
        raise
    except (Exception, SystemExit) as error:
        raise InputError(f"{path}: the file cannot be loaded: {failure(error, path)}") from error
    raise InputError(f"{path}: the file defines no class Experiment(tidegate.paper.Experiment)")


def _module(path: Path) -> ModuleType:
    if path.parent.parent == FOLDER:
        return importlib.import_module(f"tidegate.papers.{path.parent.name}.{path.stem}")
    spec = importlib.util.spec_from_file_location(f"tidegate_paper_{path.parent.resolve().name}", path)
    assert spec is not None  # noqa: S101
    assert spec.loader is not None  # noqa: S101
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up there
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[spec.name]
        raise
    return module


def failure(error: BaseException, code: Path) -> str:
    """Describes an error in a paper's code, with its line there."""
    if isinstance(error, SyntaxError):
        return f"line {error.lineno}: {error.msg}"
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).resolve() == code.resolve()
    ]
    line = f" (line {frames[-1].lineno}, in {frames[-1].name})" if frames else ""
    return f"{type(error).__name__}: {error}{line}"
