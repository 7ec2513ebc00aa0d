"""A call that Chromium makes with itself while the tests run, imported from its event logs."""

from __future__ import annotations

import shutil
import subprocess
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tidegate.recordings import agreement, imported

PAGE = """<script>
async function call() {
  const media = await navigator.mediaDevices.getUserMedia({video: {width: 640, height: 360}, audio: true});
  const [a, b] = [new RTCPeerConnection(), new RTCPeerConnection()];
  a.onicecandidate = e => e.candidate && b.addIceCandidate(e.candidate);
  b.onicecandidate = e => e.candidate && a.addIceCandidate(e.candidate);
  media.getTracks().forEach(track => a.addTrack(track, media));
  await a.setLocalDescription(await a.createOffer());
  await b.setRemoteDescription(a.localDescription);
  await b.setLocalDescription(await b.createAnswer());
  await a.setRemoteDescription(b.localDescription);
  setTimeout(() => { a.close(); b.close(); }, 8000);
}
call();
</script>"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_call_of_today(tmp_path: Path) -> None:
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("needs chromium")
    logs = tmp_path / "logs"
    logs.mkdir()
    (tmp_path / "index.html").write_text(PAGE, "utf-8")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--use-fake-device-for-media-stream"]
    flags += [
        "--use-fake-ui-for-media-stream",
        "--disable-features=WebRtcHideLocalIpsWithMdns",
        "--remote-debugging-port=0",
    ]
    flags += [f"--webrtc-event-logging={logs}", f"--user-data-dir={tmp_path / 'profile'}"]
    browser = subprocess.Popen(
        [chromium, *flags, f"http://127.0.0.1:{server.server_port}/"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        # logs are written in pieces of 5 s, the last one when some time has passed after the end
        browser.wait(24)
    except subprocess.TimeoutExpired:
        browser.terminate()
        browser.wait(20)
    finally:
        server.shutdown()
        server.server_close()
    files = sorted(logs.glob("event_log_*.log"))
    assert len(files) == 2, "one of each connection"
    runs = [imported([file]) for file in files]
    (sender,) = [file for file, run in zip(files, runs, strict=True) if run.flows == ["outgoing"]]
    (receiver,) = {*files} - {sender}
    alone, both = imported([sender], replay="gcc"), imported([sender, receiver], same_clock=True)
    for run in (alone, both):
        flow = run.metrics("outgoing")
        # a browser on a busy machine encodes a few frames a second
        assert flow["packets_sent"] > 50
        assert flow["loss_fraction"] < 0.01, "nothing is lost on the loopback"
        assert flow["one_way_delay_ms_p50"] < 20
    assert set(alone.table("packets").to_numpy("kind").tolist()) >= {"audio", "video"}
    assert len(alone.table("decisions").to_numpy("target_bps")) > 1
    found = agreement(alone)
    assert found is not None
    assert found["agree"] > 0.5
