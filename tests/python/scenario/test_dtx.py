"""DTX: the packets of audio in pauses of speech and under a muted microphone."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tidegate import Run, Scenario, ScenarioError, run
from tidegate.scenario.lower import lower

TICK = 20
"""Interval of the audio's packets in ms."""
SPEECH, SILENCE = 160 + 24 + 28, 1 + 24 + 28
"""Bytes on the wire: of 64 kbit/s and of a silence, with RTP and its extensions, UDP and IP."""
MUTE = [("5s", False), ("15s", True)]


def call(moves: list[tuple[str, bool]], link: dict[str, Any] | None = None, **keys: Any) -> Scenario:
    """Audio alone of 64 kbit/s over 2 Mbit/s, muted and unmuted by moves."""
    audio = {"rate": "64kbps", **keys.pop("audio", {})}
    media = {"controller": "fixed:200kbps", "video": False, "audio": audio, **keys}
    return Scenario.from_dict(
        {
            "duration": "19.995s",  # a frame of 20 s would be one more
            "sending_jitter": "off",
            "links": [{"name": "cable", "capacity": "2Mbps", "delay": "10ms", **(link or {})}],
            "flows": [{"name": "call", "media": media}],
            "moves": [{"time": time, "flow": "call", "key": "audio", "value": on} for time, on in moves],
        }
    )


def sent(done: Run) -> tuple[list[int], list[int]]:
    """Times in ms at which packets of speech were sent, and those of silences."""
    table = done.table("packets")
    of_audio = table.to_numpy("kind") == "audio"
    times = np.rint(table.to_numpy("sent_s")[of_audio] * 1e3).astype(int)
    sizes = table.to_numpy("size")[of_audio]
    assert {*sizes} <= {SPEECH, SILENCE}
    return sorted(times[sizes == SPEECH].tolist()), sorted(times[sizes == SILENCE].tolist())


def silences(speech: list[int], end: int, every: int) -> list[int]:
    """Packets of the silences between these times of speech: the first frame of each, and one each `every` ms."""
    edges = [-TICK, *speech, end]
    return [time for before, after in pairwise(edges) for time in range(before + TICK, after, -(-every // TICK) * TICK)]


@pytest.mark.parametrize(("dtx", "every"), [("400ms", 400), ("50ms", 60), ("20ms", 20), ("12s", 12_000)])
def test_a_muted_microphone_sends_a_byte_at_an_interval(dtx: str, every: int) -> None:
    speech, silence = sent(run(call(MUTE, audio={"dtx": dtx}), record="packets"))
    assert speech == [*range(0, 5000, TICK), *range(15_000, 20_000, TICK)]
    assert silence == list(range(5000, 15_000, every))


def test_without_dtx_nothing_is_sent_and_in_a_pause_of_the_call_neither() -> None:
    speech, silence = sent(run(call(MUTE), record="packets"))
    assert (len(speech), silence) == (500, [])
    paused = run(call([], audio={"dtx": "400ms"}, pauses=[["5s", "15s"]]), record="packets")
    assert sent(paused) == (speech, [])


def test_in_pauses_of_speech_and_for_nothing_else() -> None:
    long = {"duration": "299.995s"}
    plain = sent(run(call([], audio={"spurts": True}).with_changes(long), record="packets"))
    speech, silence = sent(run(call([], audio={"spurts": True, "dtx": "400ms"}).with_changes(long), record="packets"))
    assert (speech, []) == plain
    assert silence == silences(speech, 300_000, 400)
    # 116 pauses of 1.587 s: one packet, and 1 / (e^(0.4 / 1.587) - 1) further ones in the mean
    assert len(silence) == pytest.approx(116 * (1 + 1 / np.expm1(0.4 / 1.587)), rel=0.25)
    # a microphone that is muted in the middle of speech is silent as well
    speech, silence = sent(run(call(MUTE, audio={"spurts": True, "dtx": "400ms"}), record="packets"))
    assert not [time for time in speech if 5000 <= time < 15_000]
    assert silence == silences(speech, 20_000, 400)


def test_a_lost_packet_of_a_silence_is_no_lost_speech() -> None:
    def spoken(begin: str, end: str) -> dict[str, Any]:
        loss = {"schedule": [["0s", "0%"], [begin, "100%"], [end, "0%"]]}
        return dict(run(call(MUTE, {"loss": loss, "back": {"loss": "0%"}}, audio={"dtx": "400ms"})).metrics())

    whole = dict(run(call(MUTE, audio={"dtx": "400ms"})).metrics())
    assert whole["r_factor"] == pytest.approx(93.0, abs=0.3)
    in_silence, in_speech = spoken("6s", "14s"), spoken("1s", "2s")
    assert in_silence["lost_wire"] == 20
    assert in_silence["r_factor"] == whole["r_factor"]
    assert in_speech["lost_wire"] == 50
    assert in_speech["r_factor"] < whole["r_factor"] - 10


def test_frames_tell_speech_from_silence() -> None:
    table = run(call(MUTE, audio={"dtx": "400ms"})).table("frames")
    key, size = table.to_numpy("key"), table.to_numpy("size")
    assert {*size[key]} == {160}
    assert {*size[~key]} == {1}
    assert (key.sum(), (~key).sum()) == (500, 25)
    assert np.isfinite(table.to_numpy("rendered_s")).all()


def test_video_beside_it_keeps_its_share() -> None:
    """The rate of the audio stays its own, as libwebrtc goes on to allocate it to a muted track."""
    video = {"source": "ideal", "max": "1Mbps"}

    def rate(dtx: dict[str, Any]) -> float:
        done = run(call(MUTE, audio=dtx, video=video, controller="fixed:500kbps"), record="packets")
        frames = done.table("frames")
        captured = frames.to_numpy("captured_s")
        inside = frames.to_numpy("video") & (captured >= 5.1) & (captured < 15)
        return float(8 * frames.to_numpy("size")[inside].sum() / 9.9)

    # 64 kbit/s in 50 packets with headers of 24 bytes
    assert rate({}) - rate({"dtx": "400ms"}) == pytest.approx(64e3 + 50 * 24 * 8, rel=0.02)


@pytest.mark.parametrize(
    ("audio", "said"),
    [
        ({"dtx": "0s"}, 'audio.dtx: found "0s"; expected more than zero'),
        ({"dtx": "19ms"}, 'audio.dtx: found "19ms"; expected at least interval (20ms)'),
        ({"dtx": True}, "audio.dtx: found true; expected a time"),
    ],
)
def test_an_interval_that_cannot_be_is_refused(audio: dict[str, Any], said: str) -> None:
    with pytest.raises(ScenarioError) as error:
        call([], audio=audio)
    assert said in str(error.value)


def test_the_engine_is_told_only_where_it_is_set() -> None:
    def ir(audio: dict[str, Any]) -> Any:
        return lower(call([], audio=audio)).ir["flows"][0]["kind"]["media"]["audio"]

    assert ir({}) == {"rate": 64_000, "interval": 20_000_000}
    assert ir({"dtx": "400ms"}) == {"rate": 64_000, "interval": 20_000_000, "dtx": 400_000_000}
