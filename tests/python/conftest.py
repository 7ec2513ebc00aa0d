"""What all tests share."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from support import Cli, Outcome, rotation
from tidegate.cli import main


def pytest_configure() -> None:
    """Draws what rotates before processes of tests begin."""
    rotation()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says what was drawn."""
    terminalreporter.write_line(f"rotation {rotation()}: TIDEGATE_ROTATION={rotation()} repeats what was drawn")


@pytest.fixture(autouse=True, scope="session")
def _ctrl_c() -> None:
    """Who starts the tests in the background of a shell has its Ctrl-C ignored, which programs inherit."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cli:
    """Runs the command line in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TIDEGATE_DEBUG", raising=False)

    def run(*argv: str) -> Outcome:
        capfd.readouterr()
        code = main(list(argv))
        out, err = capfd.readouterr()
        return Outcome(code, out, err)

    return run


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """A key that both sides of a call over a socket hold."""
    file = tmp_path / "call.key"
    file.write_bytes(bytes(range(32)))
    file.chmod(0o600)
    return file
