"""Remarks: warnings apart from notes, and each kind once with a count."""

from __future__ import annotations

from tidegate.results.remarks import Remarks

QUEUE = {"key": "links.a.queue", "says": "its 375 bytes hold no packet of 1200"}
HOW = {"key": "recording", "says": "the times of both ends are aligned by their Unix times"}


def test_keys_decide_and_imports_mark_their_notes() -> None:
    remarks = Remarks.of(
        [{"warnings": [QUEUE, HOW], "notes": [HOW]}, {"warnings": [QUEUE]}, {}],
        "flows.call.media.circuit_breaker: gcc would have stopped",
        "links.a.capacity.trace: 3 % of it was played",
        "seed: it changes little",
        "recording: cut.log: byte 12: 8 bytes are left",
    )
    assert len(remarks.sentences) == 6, "each once"
    assert remarks.warnings == [
        "links.a.queue: its 375 bytes hold no packet of 1200",
        "recording: cut.log: byte 12: 8 bytes are left",
    ]
    assert len(remarks.notes) == 4
    assert Remarks.of([{"warnings": [], "notes": [HOW]}]).labelled == [("Note", f"recording: {HOW['says']}")]
    assert remarks.notes[0] == "recording: the times of both ends are aligned by their Unix times"


def test_one_kind_is_shown_once_with_a_count() -> None:
    breakers = [
        f"flows.call-{number}.media.circuit_breaker: gcc:beta=0.{number} would have stopped at {number} s"
        for number in range(18)
    ]
    queues = [
        f"links.{name}.queue: its {size} bytes hold no packet" for name, size in (("a", 375), ("b", 1.5), ("c", 0))
    ]
    brief = Remarks([*breakers[:9], *queues, *breakers[9:]]).brief
    assert brief.notes == [breakers[0], f"{breakers[1]} (and 16 more like this)"]
    assert brief.warnings == queues, "three of a kind are no crowd"
    marked = [f"recording: file {number}.log was cut" for number in range(5)]
    assert Remarks(marked, marked).brief.notes == [marked[0], f"{marked[1]} (and 3 more like this)"]


def test_what_is_no_setting_is_not_merged_and_a_note_stays_a_note() -> None:
    cases = [f"{suite}.1 was not run: there is no Wi-Fi node" for suite in range(5)]
    assert Remarks(cases).brief.warnings == cases, "each case has its name"
    notes = [f"recording: {at} packets (and {at} more) are left out" for at in range(5)]
    brief = Remarks(notes, notes).brief
    assert (brief.warnings, brief.notes) == ([], [notes[0], f"{notes[1]} (and 3 more like this)"])
