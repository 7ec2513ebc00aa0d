"""Panics of Rust code: an ordinary exception with the place, whatever part of an object Python was using."""

import subprocess
import sys
from collections.abc import Callable

import pytest

import tidegate
from support import ROOT
from tidegate import RunError, _core

CRATE = ROOT / "crates/python"


def made() -> _core._Panics:
    return _core._Panics()


def assign() -> None:
    made().attribute = 7


PANICS: dict[str, Callable[[], object]] = {
    "new": lambda: _core._Panics(True),
    "a word": lambda: made().method("a word"),
    "panic from Rust code": _core._Panics.speechless,
    "argument": lambda: made().argument(1),
    "result": lambda: made().result(),
    "getter": lambda: made().attribute,
    "setter 7": assign,
    "repr": lambda: repr(made()),
    "len": lambda: len(made()),
    "bool": lambda: bool(made()),
    "next": lambda: next(iter(made())),
    "eq": lambda: made() == made(),
    "hash": lambda: hash(made()),
}


@pytest.mark.parametrize("said", PANICS)
def test_a_panic_is_an_ordinary_exception_with_its_place(said: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RuntimeError, match=rf"^crates/python/src/panics\.rs:\d+:\d+: {said}$") as caught:
        PANICS[said]()
    assert type(caught.value) is _core.InternalError
    # it is the exception that tells of it, and nothing beside it
    assert capfd.readouterr() == ("", "")


def test_the_place_is_that_of_the_panic() -> None:
    places = set()
    for act in PANICS.values():
        with pytest.raises(_core.InternalError) as caught:
            act()
        places.add(str(caught.value).split(": ")[0])
    source = (CRATE / "src/panics.rs").read_text().splitlines()
    for place in places:
        line = source[int(place.split(":")[1]) - 1]
        assert "panic" in line or "assert!" in line, (place, line)
    assert len(places) == len(PANICS)


def test_a_panic_while_an_exception_is_handled() -> None:
    def handle() -> None:
        try:
            int("first")
        except ValueError:
            made().method("second")

    with pytest.raises(_core.InternalError, match=r": second$") as caught:
        handle()
    assert type(caught.value.__context__) is ValueError


class Mine(tidegate.Controller):
    """Calls what panics."""

    def on_report(self, now_ns: int, report: tidegate.Report) -> None:
        del now_ns, report
        made().method("mine")


def test_a_panic_in_a_controller_of_python() -> None:
    flow = tidegate.Flow(name="call", media=tidegate.Media(controller=Mine))
    scenario = tidegate.Scenario(duration="2s", links=[tidegate.Link(capacity="1Mbps")], flows=[flow])
    with pytest.raises(RunError, match=r"on_report raised InternalError: crates/python/src/panics\.rs:\d+:\d+: mine"):
        tidegate.run(scenario)


def test_a_panic_at_an_object_s_end_goes_where_python_has_such_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    errors: list[object] = []
    # not the argument itself: it would keep the object alive
    monkeypatch.setattr(sys, "unraisablehook", lambda about: errors.append(about.exc_value))
    _core._Panics(at_end=True)
    (error,) = errors
    assert type(error) is _core.InternalError
    assert str(error).endswith(": drop")


def in_a_process(code: str) -> subprocess.CompletedProcess[str]:
    code = f"from tidegate import _core\n{code}"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)


def test_a_panic_that_nobody_catches_is_named() -> None:
    done = in_a_process("_core._Panics(True)")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("tidegate._core.InternalError: crates/python/src/panics.rs:")
    assert "PanicException" not in done.stderr


def test_what_aborts_the_process_is_printed_with_what_went_before() -> None:
    done = in_a_process("_core._Panics(at_once=True, at_end=True)")
    assert done.returncode < 0
    assert done.stderr.startswith("after a panic at crates/python/src/panics.rs:")
    assert "\ndrop\n" in done.stderr


def test_no_function_goes_around_pyo3() -> None:
    """PyO3 catches panics for all that it makes; what is written without it would be unsafe or have C's ABI."""
    sources = sorted((CRATE / "src").rglob("*.rs"))
    assert len(sources) > 15
    for source in sources:
        text = source.read_text()
        assert "unsafe" not in text, source
        assert 'extern "C' not in text, source
