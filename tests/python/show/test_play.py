"""`tidegate play` without the browser: the data of the page, its agreement with the scenario, and the server."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import time
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import tidegate
from support import ROOT, Cli, begin, shared
from tidegate import InputError, Scenario, _core
from tidegate.scenario.lower import lower
from tidegate.show import play
from tidegate.show.play import _page, _refusing

BUILT = '<title>tidegate play</title><script type="application/json" id="payload">/*PAYLOAD*/null</script>'


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A stand-in for the built page."""
    file = tmp_path / "built" / "page.html"
    file.parent.mkdir()
    file.write_text(BUILT)
    monkeypatch.setattr(_page, "BUILT", file)
    return file


def payload_of(text: str) -> Any:
    return json.loads(text.partition('id="payload">')[2].partition("</script>")[0])


def situation(name: str, changes: dict[str, Any] | None = None, contenders: tuple[str, ...] = ()) -> dict[str, Any]:
    first: dict[str, Any] = play.payload(Scenario.load(name, changes), contenders)["situations"][0]
    return first


def digest(ir: dict[str, Any]) -> str:
    value: str = _core.World(json.dumps(ir)).finish().digest
    return value


def engine(document: dict[str, Any]) -> dict[str, Any]:
    """The engine's input for an exported document: the parts that a play sets."""
    ir = lower(Scenario.from_dict(document)).ir
    return {key: ir[key] for key in ("links", "flows", "seed", "duration", "warmup", "sending_jitter")}


def without_service(ir: dict[str, Any], like: dict[str, Any]) -> dict[str, Any]:
    """The page's input with the link service of another input, since only the page sets it to `managed`."""
    service = {link["name"]: link["service"] for link in like["links"]}
    links = [{**link, "service": service[link["name"]]} for link in ir["links"]]
    return {key: {**ir, "links": links}[key] for key in like}


SCENARIOS = ["home-broadband", "rfc8867-5.2-two-flows", "policed-mobile", "l4s-access", "coupled-calls", "lossy-wifi"]


@pytest.mark.parametrize("name", SCENARIOS)
def test_each_choice_of_the_page_is_the_document_that_it_exports(name: str) -> None:
    page = situation(name, {"seed": 7})
    document, lowered = page["document"], page["lowered"]
    assert document["seed"] == lowered["seed"] == 7
    expected = engine(document)
    assert without_service(lowered, expected) == expected

    assert next(iter(page["queues"])) == "own"
    cable = page["link"].removesuffix(".back")
    for key, queue in page["queues"].items():
        links = [{**link, **queue["document"]} if link["name"] == cable else link for link in document["links"]]
        exported = engine({**document, "links": links})
        played = [queue["lowered"] if link["name"] == page["link"] else link for link in lowered["links"]]
        assert without_service({**lowered, "links": played}, exported) == exported, key

    rooms = {key: queue["lowered"]["settings"]["queue"] for key, queue in page["queues"].items()}
    limits = {key: {name: limit for name, limit in room.items() if limit is not None} for key, room in rooms.items()}
    common = {"counts_in_service": True}
    assert limits["codel"] == limits["pie"] == {"packets": 1000, **common}
    assert limits["fq-codel"] == {"packets": 10_240, **common}
    assert limits["drop-tail-50ms"] == {"time": 50_000_000, **common}
    assert limits["dualpi2"] == {"time": 250_000_000, **common}

    assert {"gcc", "nada", "scream"} & page["controllers"].keys()
    for label, flow in page["controllers"].items():
        flows = [
            {**entry, "media": {**entry["media"], "controller": label}} if entry["name"] == page["flow"] else entry
            for entry in document["flows"]
        ]
        exported = engine({**document, "flows": flows})
        played = [flow if entry["name"] == page["flow"] else entry for entry in lowered["flows"]]
        assert without_service({**lowered, "flows": played}, exported) == exported, label

    exported = engine(
        {**document, "flows": [*document["flows"], {"name": "download-1", **page["download"]["document"]}]}
    )
    played = [*lowered["flows"], {**page["download"]["lowered"], "name": "download-1"}]
    assert without_service({**lowered, "flows": played}, exported) == exported


def test_a_play_has_the_bits_of_its_scenario() -> None:
    page = situation("l4s-access", {"duration": "25s"})
    assert [link["service"] for link in page["lowered"]["links"]] == ["managed", "managed"]
    assert digest(page["lowered"]) == tidegate.run(Scenario.from_dict(page["document"])).digest
    assert digest(page["lowered"]) == tidegate.run(Scenario.load("l4s-access", {"duration": "25s"})).digest
    with_nada = [page["controllers"]["nada"] if flow["name"] == "call" else flow for flow in page["lowered"]["flows"]]
    assert digest({**page["lowered"], "flows": with_nada}) != digest(page["lowered"])


def test_several_flows_alike_are_written_out_and_run_as_before() -> None:
    page = situation("rfc8867-5.4-competing-calls", {"duration": "50s"})
    assert [flow["name"] for flow in page["document"]["flows"]] == ["call-1", "call-2", "call-3"]
    assert page["flow"] == "call-1"
    native = tidegate.run(Scenario.load("rfc8867-5.4-competing-calls", {"duration": "50s"}))
    assert digest(page["lowered"]) == native.digest


def test_the_tightest_link_on_the_way_is_dragged() -> None:
    assert situation("rfc8867-6.3-multiple-bottlenecks")["link"] == "second"
    assert (
        situation("home-broadband", {"flows.call.from": "internet", "flows.call.to": "home"})["link"] == "uplink.back"
    )
    steps = [["0s", "60Mbps"], ["1s", "1Mbps"]]
    page = situation("home-broadband", {"links.uplink.back.capacity": {"schedule": steps}})
    assert page["link"] == "uplink"
    assert page["links"] == ["uplink", "uplink.back"]


def test_whom_it_begins_with() -> None:
    assert situation("home-broadband")["contenders"] == ["gcc", "nada"]
    assert situation("home-broadband", {"flows.call.media.controller": "nada"})["contenders"] == ["nada", "gcc"]
    page = situation("home-broadband", contenders=("fixed:3Mbps", "gcc"))
    assert page["contenders"] == ["fixed:3Mbps", "gcc"]
    assert page["controllers"]["fixed:3Mbps"]["kind"]["media"]["controller"]["settings"] == {"rate": 3_000_000}
    table = {"name": "gcc", "preset": "draft-02", "k_up": 0.01, "overuse_time": "7ms"}
    page = situation("home-broadband", {"flows.call.media.controller": table})
    assert page["contenders"] == ["gcc:draft-02,k_up=0.01,overuse_time=7ms", "nada"]


def test_each_situation_has_a_name_of_its_own() -> None:
    situations = play.payload(Scenario.load("home-broadband", {"name": "l4s"}))["situations"]
    assert situations[0]["id"] == "l4s.toml"
    assert len({entry["id"] for entry in situations}) == 9
    assert [entry["id"] for entry in play.payload()["situations"]][-1] == "another-path"


def test_a_controller_that_does_not_fit_the_flow_is_not_offered() -> None:
    offered = situation("coupled-calls")["controllers"]
    assert "gcc" in offered
    assert "tfrc" not in offered
    with pytest.raises(InputError, match="tfrc"):
        situation("coupled-calls", contenders=("tfrc",))


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("lte-cell", {}, "lte: found a radio network"),
    ("thesis-network", {}, "links.network.capacity: "),
    ("rfc8867-5.3-congested-feedback", {}, "flows.call.media.both_ways: found true"),
    ("group-t2", {}, "no media flow"),
    ("home-broadband", {"seed": 2**53}, "seed: found 9007199254740992; the page takes seeds up to 9007199254740991"),
    ("home-broadband", {"seeds": {"uplink": 2**60}}, "seeds.uplink: found 1152921504606846976"),
    ("home-broadband", {"flows.call.media.controller": "python:mine.py:Mine"}, "flows.call.media.controller: python:mine.py:Mine is a file, and a browser has no Python"),
    ("home-broadband", {"links.uplink.capacity": "infinite"}, "links.uplink.capacity: no link on the path of call has a capacity that can be dragged"),
    ("home-broadband", {"duration": "30h"}, "duration: found 108000s, for which a run needs about 20"),
    ("home-broadband", {"links.uplink.back.capacity": "external", "links.uplink.back.delay": "0s"}, "external"),
]  # fmt: skip


def test_a_page_of_what_cannot_be_played_says_so_and_has_the_lessons(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, built: Path
) -> None:
    del built
    served: list[str] = []
    monkeypatch.setattr("tidegate.cli.play._serve", lambda text, *_, **__: served.append(text))
    result = cli("play", "home-broadband", "--set", "flows.call.media.controller=python:mine.py:Mine")
    assert result.code == 0
    first, *others = payload_of(served[0])["situations"]
    assert "mine.py:Mine is a file, and a browser has no Python" in first["refused"]
    assert first["refused"].replace(" ", "") in "".join(result.err.split())
    assert [entry["lesson"]["number"] for entry in others] == list(range(1, 9))
    # a file is for another reader, who cannot change the scenario
    assert cli("play", "lte-cell", "--out", "play.html").code == 2
    assert not (tmp_path / "play.html").exists()


@pytest.mark.parametrize(("name", "changes", "message"), REFUSED)
def test_what_cannot_be_played_is_said(name: str, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        situation(name, changes)
    assert message in str(caught.value)


def test_recorded_networks_are_carried_up_to_a_size(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "mine.trace").write_text("".join(f"{ms}\n" for ms in range(5, 5000, 5)))
    text = Scenario.load("home-broadband", {"links.uplink.capacity": {"trace": "mine.trace"}}).to_toml()
    (tmp_path / "mine.toml").write_text(text)
    page = play.payload(Scenario.load(tmp_path / "mine.toml"))["situations"][0]
    (trace,) = page["traces"]
    assert trace["opportunities_ms"][:3] == [5, 10, 15]
    assert page["link"] == "uplink"
    monkeypatch.setattr(_refusing, "LARGEST", 1000)
    with pytest.raises(InputError, match=r"mine.toml:\d+: links.uplink.capacity.trace: found .* of recorded networks"):
        play.payload(Scenario.load(tmp_path / "mine.toml"))


def test_a_real_recording_fits() -> None:
    traces = sorted((shared() / "traces" / "mahimahi").rglob("*.*"), key=lambda file: file.stat().st_size)
    file = next(file for file in traces if file.suffix in {".up", ".down", ".trace", ".txt"})
    page = situation("home-broadband", {"links.uplink.capacity": {"trace": str(file)}})
    assert len(page["traces"]) == 1


@pytest.mark.usefixtures("built")
def test_a_page_is_one_file_and_no_text_ends_its_data() -> None:
    words = "</script><script>alert(1)</script> <!-- \u2028"
    text = play.page(play.payload(Scenario.load("home-broadband", {"description": words})))
    assert text.count("</script>") == 1
    assert payload_of(text)["situations"][0]["about"] == words
    assert payload_of(text)["version"] == tidegate.__version__
    assert len(payload_of(text)["situations"]) == 9
    assert len(text) < 600_000


def test_without_the_built_page_it_says_what_makes_it(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(_page, "BUILT", tmp_path / "page.html")
    result = cli("play", "--out", "play.html")
    assert result.code == 2
    assert "the page is not built here; " in result.err
    assert f"run `make page` in {ROOT}, which takes a minute or two" in result.err
    monkeypatch.setattr("shutil.which", lambda program: None if program == "node" else f"/bin/{program}")
    result = cli("play", "--out", "play.html")
    assert (
        "the page is not built here; install node 20 or newer (https://nodejs.org), then run `make page`" in result.err
    )
    monkeypatch.setattr(_page, "__file__", str(tmp_path / "site" / "a" / "b" / "c" / "d" / "_page.py"))
    assert "install a wheel of tidegate, which has the page" in cli("play", "--out", "play.html").err
    (tmp_path / "page.html").write_text("<p>another page</p>")
    result = cli("play", "--out", "play.html")
    assert result.code == 2
    assert "is not a page of tidegate" in result.err
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]


def test_a_clone_is_told_of_a_page_that_is_older_than_its_engine(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    clone = tmp_path / "clone"
    files = ["page/build.mjs", "page/src/main.ts", "crates/sim/src/link/mod.rs", "crates/python/src/lib.rs"]
    for name in [*files, "python/tidegate/show/play/page.html"]:
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        (clone / name).write_text(BUILT)
        os.utime(clone / name, (1000, 1000))
    monkeypatch.setattr(_page, "BUILT", clone / "python/tidegate/show/play/page.html")
    assert cli("play", "--out", "play.html").err == ""
    # the browser's engine does not contain this crate
    os.utime(clone / "crates/python/src/lib.rs", (2000, 2000))
    assert cli("play", "--out", "play.html").err == ""
    for name in files[1:3]:
        os.utime(clone / name, (2000, 2000))
        assert f"the page was built before {name} changed; run `make page` to build it again" in cli(
            "play", "--out", "play.html"
        ).err.replace("\n", " ")
        os.utime(clone / name, (1000, 1000))


@pytest.mark.usefixtures("built")
def test_the_page_as_a_file(cli: Cli, tmp_path: Path) -> None:
    result = cli("play", "tcp-joins", "scream", "--seed", "9", "--set", "duration=30s", "--out", "play.html")
    assert (result.code, result.out, result.err) == (0, "written to play.html\n", "")
    first = payload_of((tmp_path / "play.html").read_text())["situations"][0]
    assert (first["id"], first["contenders"], first["document"]["seed"]) == ("tcp-joins", ["scream"], 9)
    assert first["lowered"]["duration"] == 30 * 10**9
    assert cli("play", "--out", "play.html").code == 0
    assert payload_of((tmp_path / "play.html").read_text())["situations"][0]["id"] == "home-broadband"


WRONG: list[tuple[tuple[str, ...], int, str]] = [
    (("nope",), 2, "nope: there is no such scenario"),
    (("home-broadband", "gccc"), 2, "gccc: there is no such controller; did you mean gcc?"),
    (("home-broadband", "gcc", "nada", "scream"), 2, "found 3 controllers: gcc, nada, scream; the page shows one or two"),
    (("home-broadband", "python:x.py:Y"), 2, "python:x.py:Y is a file, and a browser has no Python"),
    (("home-broadband", "program:node call.js"), 2, "is a real program"),
    (("--set", "links.uplink.delay=3"), 2, "links.uplink.delay: found 3; a time needs a unit"),
    (("--seed", "-1"), 2, "greater than or equal to 0"),
    (("--port", "70000"), 2, "less than or equal to 65535"),
    (("--out", "built"), 2, "--out built: the path is a folder; expected a file, such as built/play.html"),
    (("--out", "nowhere/play.html"), 1, "nowhere/play.html: cannot be written"),
    (("--out", "notes.txt"), 1, "notes.txt: the file exists already and is not a page of tidegate"),
]  # fmt: skip


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize(("argv", "code", "message"), WRONG)
def test_what_is_wrong_is_a_sentence(cli: Cli, tmp_path: Path, argv: tuple[str, ...], code: int, message: str) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    out = () if "--out" in argv else ("--out", "play.html")
    result = cli("play", *argv, *out)
    assert result.code == code
    assert message in result.err
    assert sorted(file.name for file in tmp_path.iterdir()) == ["built", "notes.txt"]
    assert (tmp_path / "notes.txt").read_text() == "mine"


def ask(port: int, path: str = "/", host: str | None = None, method: str = "GET") -> tuple[int, str, dict[str, str]]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(method, path, headers={} if host is None else {"Host": host})
    response = connection.getresponse()
    result = response.status, response.read().decode(), dict(response.getheaders())
    connection.close()
    return result


def test_it_serves_the_page_to_this_machine_and_nothing_else() -> None:
    with play.Server("<p>the page</p>") as server:
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
        try:
            port = server.server_port
            status, text, headers = ask(port)
            assert (status, text) == (200, "<p>the page</p>")
            assert headers["Content-Type"] == "text/html; charset=utf-8"
            assert ask(port, "/?utm=1#p=x")[0] == 200
            assert ask(port, host=f"localhost:{port}")[0] == 200
            assert ask(port, method="HEAD")[:2] == (200, "")
            for path in ("/favicon.ico", "/../pyproject.toml", "/page.html"):
                assert ask(port, path)[:2] == (404, f"the only page here is {server.address}\n")
            # a foreign name that resolves to this machine
            for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", ""):
                status, text, _ = ask(port, host=host)
                assert status == 421
                assert "the page" not in text
            assert ask(port, method="POST")[0] == 501
            assert server.server_address[0] == "127.0.0.1"
        finally:
            server.shutdown()


@pytest.mark.usefixtures("built")
def test_a_port_in_use_is_a_sentence(cli: Cli) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        result = cli("play", "--port", str(port), "--no-browser")
    assert result.code == 1
    assert f"--port {port}: the port cannot be opened: Address already in use; choose another --port" in result.err


@pytest.mark.skipif(not play.is_built(), reason="the page is not built (make page)")
def test_ctrl_c_ends_it_with_a_line(tmp_path: Path) -> None:
    process = begin(["play", "--no-browser"], tmp_path)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        port = int(line.partition("127.0.0.1:")[2].partition("/")[0])
        assert ask(port)[0] == 200
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
        # a warning that the page is older than a source may come first
        assert (process.returncode, err.splitlines()[-1]) == (130, "tidegate: the page is no longer served")
    finally:
        process.kill()
        process.communicate()


@pytest.mark.usefixtures("built")
def test_a_browser_that_is_waited_for_gets_its_page(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[int] = []

    def browser(address: str) -> bool:
        answers.append(ask(int(address.rstrip("/").rpartition(":")[2]))[0])
        signal.raise_signal(signal.SIGINT)
        return True

    monkeypatch.setattr("webbrowser.open", browser)
    assert cli("play").code == 130
    assert answers == [200]


@pytest.mark.usefixtures("built")
def test_it_opens_the_browser_at_what_it_serves(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[tuple[str, int]] = []

    def browser(address: str) -> bool:
        def look() -> None:
            port = int(address.rstrip("/").rpartition(":")[2])
            requests.append((address, ask(port)[0]))
            time.sleep(0.05)
            signal.raise_signal(signal.SIGINT)

        Thread(target=look).start()
        return False

    monkeypatch.setattr("webbrowser.open", browser)
    result = cli("play")
    assert result.code == 130
    ((address, status),) = requests
    assert status == 200
    assert result.out == f"{address}  Ctrl-C ends it\n"
    assert result.err == (
        "tidegate: found no browser; open the address in a browser on this machine\n"
        "tidegate: the page is no longer served\n"
    )
