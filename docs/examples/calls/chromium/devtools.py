"""A headless Chromium driven over its debugging pipe: no driver, no socket, no dependency."""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from pathlib import Path
from typing import Any

PATIENCE = 60.0
"""Seconds for one answer: the program is hundreds of megabytes, and the first answer waits for the disk."""


class Browser:
    """One browser with one page."""

    def __init__(self, program: str, flags: list[str]) -> None:
        # commands are read from descriptor 3 and answered on 4, each message ended by a zero byte
        command, self._write = os.pipe()
        self._read, answer = os.pipe()
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        # a session of its own: the signal that ends the peer's group is for the peer, which closes the call first
        self.process = subprocess.Popen(  # noqa: S603  (the browser that the user has)
            ["/bin/sh", "-c", f'exec "$@" 3<&{command} 4>&{answer}', "sh", program, *flags, "--remote-debugging-pipe"],
            pass_fds=(command, answer),
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(command)
        os.close(answer)

    def open(self, page: Path, ready: str) -> None:
        """Opens a local page and waits until an expression in it is true: the protocol answers before it has loaded."""
        made = self.call("Target.createTarget", url=page.as_uri())
        attached = self.call("Target.attachToTarget", targetId=made["targetId"], flatten=True)
        self._session = attached["sessionId"]
        end = time.monotonic() + PATIENCE
        while not self.evaluate(ready):
            if time.monotonic() > end:
                raise TimeoutError(f"{page.name} has not loaded after {PATIENCE:.0f} s")
            time.sleep(0.05)

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page; what is thrown there is a RuntimeError here."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description") or details["text"])
        return answer["result"].get("value")

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        """One command and its answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                result: dict[str, Any] = answer["result"]
                return result

    def _next(self) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], 0.2)
            if ready:
                part = os.read(self._read, 1 << 16)
                if not part:
                    raise RuntimeError(f"{self.process.args[4]} has ended")  # type: ignore[index]
                self._buffer += part
            elif time.monotonic() > end:
                raise TimeoutError(f"the browser has not answered for {PATIENCE:.0f} s")
        message, self._buffer = self._buffer.split(b"\0", 1)
        found: dict[str, Any] = json.loads(message)
        return found

    def close(self) -> None:
        """Ends the browser, with force if it does not heed."""
        self.process.terminate()
        try:
            self.process.wait(1)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self._write)
        os.close(self._read)
