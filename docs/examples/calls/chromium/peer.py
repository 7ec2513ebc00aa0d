"""One end of a call of Chromium: A sends the clip, B shows it. See ../session.py for the environment.

CALL_CHROMIUM      the browser; by default the first of chromium, chromium-browser, google-chrome that is in the PATH
CALL_ENCRYPTION    off: plain RTP and RTCP, so that captures can be read (as far as the browser's build allows it)
CALL_FIELD_TRIALS  field trials of libwebrtc as --force-fieldtrials takes them
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from devtools import Browser
from end import End, cpu_seconds

LAST_PIECE_SECONDS = 5.5
"""The event log is written in pieces of 5 s (StartRtcEventLog, pc/peer_connection.cc); what came after the
last one when the connection is closed is not in it."""

NAMES = ("chromium", "chromium-browser", "google-chrome")


def flags(end: End, profile: Path, logs: Path) -> list[str]:
    """How the browser is started: a file as its camera, no question asked, nothing of its own on the network."""
    found = [
        "--headless=new",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        # the window is hidden, which must not slow its clock down
        "--disable-background-timer-throttling",
        "--disable-backgrounding-occluded-windows",
        "--disable-renderer-backgrounding",
        "--autoplay-policy=no-user-gesture-required",
        "--use-fake-ui-for-media-stream",
        "--use-fake-device-for-media-stream",
        f"--use-file-for-fake-video-capture={end.clip}",
        # candidates have addresses, not names that only multicast DNS knows
        "--disable-features=WebRtcHideLocalIpsWithMdns",
        "--host-resolver-rules=MAP * ~NOTFOUND",
        f"--webrtc-event-logging={logs}",
        f"--user-data-dir={profile}",
    ]
    if os.geteuid() == 0:
        # Chromium refuses to run as root with it
        found.append("--no-sandbox")
    if os.environ.get("CALL_ENCRYPTION") == "off":
        found.append("--disable-webrtc-encryption")
    if trials := os.environ.get("CALL_FIELD_TRIALS"):
        found.append(f"--force-fieldtrials={trials}")
    return found


def wait_for(end: End, name: str) -> Any:
    """What the other end has to say."""
    while (said := end.told(name)) is None and not end.over:
        time.sleep(0.02)
    return said


def connect(end: End, browser: Browser) -> None:
    """Exchanges descriptions."""
    network = json.dumps(end.network)
    if end.side == "A":
        end.tell("offer.json", browser.evaluate(f"offer({network}, {end.most})"))
        if answer := wait_for(end, "answer.json"):
            browser.evaluate(f"accept({json.dumps(answer)})")
    elif offer := wait_for(end, "offer.json"):
        end.tell("answer.json", browser.evaluate(f"answer({json.dumps(offer)}, {network})"))


def note(end: End, browser: Browser) -> None:
    """A line of statistics."""
    seen = browser.evaluate("look()")
    if seen["connected"] is not None and end.seen["connected_s"] is None:
        end.seen["connected_s"] = end.seconds() - (seen["now"] - seen["connected"]) / 1000
    of = {one["type"]: one for one in seen["report"] if one["type"] in ("inbound-rtp", "outbound-rtp")}
    end.seen["frames"] = sum(one.get("framesDecoded", one.get("framesSent", 0)) for one in of.values())
    end.note(seen["report"], cpu_s=cpu_seconds(browser.process.pid))


def main() -> int:
    """Calls until the session is over."""
    end = End()
    program = os.environ.get("CALL_CHROMIUM") or next(filter(shutil.which, NAMES), None)
    if program is None:
        print(f"no browser: none of {', '.join(NAMES)} is in the PATH, and CALL_CHROMIUM names none", file=sys.stderr)
        return 1
    logs = end.folder / f"logs-{end.side}"
    logs.mkdir()
    with tempfile.TemporaryDirectory(prefix="tidegate-chromium-", ignore_cleanup_errors=True) as profile:
        browser = Browser(program, flags(end, Path(profile), logs))
        try:
            browser.open(Path(__file__).with_name("page.html"), "typeof look === 'function'")
            connect(end, browser)
            due = end.seconds()
            while not end.over:
                note(end, browser)
                due += 1
                while not end.over and end.seconds() < due:
                    time.sleep(0.02)
            note(end, browser)
            time.sleep(LAST_PIECE_SECONDS)
            browser.evaluate("pc.close()")
        finally:
            browser.close()
    for file in logs.glob("event_log_*.log"):
        shutil.move(file, end.folder / f"event-log-{end.side}.log")
    return 0


if __name__ == "__main__":
    sys.exit(main())
