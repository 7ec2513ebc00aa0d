"""The claims of SECURITY.md: numbered in order, each with the tests that hold it."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from support import ROOT
from support.tree import texts

CLAIMS = (ROOT / "SECURITY.md").read_text("utf-8")

TESTS: dict[str, list[str]] = {
    "S1": [
        "crates/core/tests/wire/mutation.rs::rtp_withstands_mutations",
        "crates/core/tests/wire/mutation.rs::compounds_withstand_mutations",
        "crates/core/tests/wire/mutation.rs::noise_is_no_danger_either",
        "crates/endpoint/tests/fuzzed.rs::ip_packets",
    ],
    "S2": [
        "crates/sim/tests/traces.rs::broken_files_never_panic",
        "crates/sim/tests/fuzzed.rs::traces_in_json",
        "crates/sim/tests/fuzzed.rs::traces_of_numbers",
        "crates/sim/tests/fuzzed.rs::traces_of_tables",
        "crates/sim/tests/fuzzed.rs::scenarios",
        "crates/recordings/tests/fuzzed.rs::captures",
        "crates/recordings/tests/fuzzed.rs::event_logs",
        "tests/python/whole/test_fuzzed.py::test_a_thousand_mutations",
    ],
    "S3": [
        "tests/python/whole/test_readers.py::test_changed_files_make_a_result_or_a_sentence",
        "tests/python/whole/test_damage.py::test_damaged_parquet_is_an_error_or_a_table",
        "tests/python/whole/test_damage.py::test_damaged_json_of_the_right_shape",
        "tests/python/whole/test_damage.py::test_pipes_in_a_result_are_refused",
    ],
    "S4": [
        "tests/python/whole/test_bombs.py::test_a_bomb_is_refused_in_time_and_memory",
        "tests/python/test_inputs.py::test_devices_are_not_opened",
        "tests/python/test_inputs.py::test_a_silent_pipe_is_given_up",
        "tests/python/test_inputs.py::test_a_packed_file_is_unpacked_up_to_the_limit",
        "tests/python/test_inputs.py::test_json_is_estimated_before_it_is_parsed",
        "tests/python/test_inputs.py::test_toml_is_measured_before_it_is_parsed",
        "tests/python/test_inputs.py::test_a_recorded_network_is_estimated_before_it_is_parsed",
        "tests/python/test_inputs.py::test_the_page_of_limits_has_every_kind",
        "tests/python/test_inputs.py::test_completions_read_within_the_limits",
        "tests/python/test_inputs.py::test_a_scenario_from_a_pipe_is_shown",
    ],
    "S5": [
        "tests/python/show/test_report.py::test_names_from_outside_cannot_become_markup",
        "tests/python/output/test_control_characters.py::test_pages_and_markdown_have_no_markup_of_theirs",
    ],
    "S6": [
        "tests/python/show/test_report.py::test_nothing_in_the_page_points_outside",
        "tests/python/show/test_report.py::test_the_policy_forbids_every_request",
        "tests/python/show/test_report_browser.py::test_nothing_is_fetched_and_nothing_complained_of",
    ],
    "S7": [
        "tests/python/whole/test_damage.py::test_a_comparison_names_runs_of_its_own_folder",
        "tests/python/whole/test_damage.py::test_a_file_of_a_run_that_is_a_link_to_elsewhere",
        "tests/python/results/test_folders.py::test_a_manifest_reaches_nothing_outside_its_folder",
    ],
    "S8": [
        "tests/python/output/test_control_characters.py::test_a_terminal_gets_no_control_character",
        "tests/python/output/test_control_characters.py::test_tests_and_annotations_show_them",
        "tests/python/output/test_control_characters.py::test_a_progress_bar_shows_them",
        "tests/python/whole/test_readers.py::test_changed_files_make_a_result_or_a_sentence",
    ],
    "S9": [
        "crates/sim/tests/traces.rs::errors_do_not_repeat_what_is_no_trace",
        "tests/python/recordings/test_recordings.py::test_an_error_does_not_repeat_a_password",
    ],
    "S10": [
        "tests/python/control/test_unrun.py::test_verbs_that_read_run_nothing",
        "tests/python/control/test_unrun.py::test_saved_results_are_read_without_the_code",
        "tests/python/control/test_unrun.py::test_kept_results_are_read_without_the_code",
        "tests/python/control/test_unrun.py::test_in_python_a_check_runs_nothing_unless_it_is_told_to",
        "tests/python/control/test_unrun.py::test_no_controller_of_a_file_hears_a_recording",
        "tests/python/scenario/test_checked.py::test_code_has_a_stand_in_which_can_be_coupled",
    ],
    "S11": [
        "tests/python/runs/test_sockets_hostile.py::test_a_flood_at_both_ends_of_a_call_is_counted_and_changes_nothing",
        "tests/python/runs/test_sockets_hostile.py::test_before_an_address_is_proved_it_gets_less_than_came_from_it",
        "crates/live/src/session/handshake.rs::an_address_gets_no_more_bytes_than_came_from_it_before_it_is_proved",
        "crates/live/src/session/seal.rs::a_million_forged_replayed_or_oversized_datagrams_change_nothing",
        "crates/live/tests/fuzzed.rs::messages_of_sessions",
    ],
    "S12": [
        "tests/python/shell/test_shell_rights_live.py::test_programs_have_no_rights_in_the_session",
        "tests/python/shell/test_shell_rights_live.py::test_programs_of_root_keep_what_is_no_way_out",
        "tests/python/shell/test_shell_rights_live.py::test_a_program_whose_file_has_capabilities_begins_without_them",
        "tests/python/shell/test_shell_live.py::test_no_way_leads_out_and_programs_have_no_priority",
    ],
    "S13": [
        "tests/python/runs/test_interpreters.py::test_no_file_of_the_present_folder_is_run",
        "tests/python/runs/test_interpreters.py::test_nor_by_workers_of_dask",
        "tests/python/runs/test_interpreters.py::test_every_interpreter_that_is_begun_is_begun_without_the_present_folder",
        "tests/python/shell/test_shell_live.py::test_no_file_of_the_present_folder_is_run",
    ],
    "S14": ["tests/python/show/test_play.py::test_it_serves_the_page_to_this_machine_and_nothing_else"],
    "S15": [
        "tests/python/control/test_unrun.py::test_verbs_that_run_say_so_once",
        "tests/python/control/test_unrun.py::test_compare_says_what_the_competitors_of_a_file_run",
        "tests/python/control/test_unrun.py::test_a_suite_says_what_its_scenarios_run",
    ],
    "S16": ["tests/python/control/test_unrun.py::test_a_folder_of_a_paper_is_judged_before_its_code_runs"],
    "S17": [
        "tests/python/scenario/test_needs.py::test_more_than_there_is_is_refused_with_what_to_do",
        "tests/python/scenario/test_needs.py::test_a_small_ulimit_is_an_error_and_no_abort",
    ],
    "S18": [
        "tests/python/shell/test_shell_rights_live.py::test_programs_of_root_keep_what_is_no_way_out",
        "tests/python/shell/test_shell_rights_live.py::test_unix_sockets_of_the_host_are_reached_by_their_path_unless_it_is_hidden",
    ],
    "S19": [
        "crates/live/src/call/merge.rs::a_hostile_record_breaks_nothing",
        "crates/live/src/call/record.rs::a_fact_takes_some_hundred_bytes",
        "crates/live/src/call/record.rs::a_few_bytes_do_not_become_gigabytes",
        "crates/live/src/session/transfer.rs::pieces_that_do_not_fit_are_refused",
    ],
    "S20": ["tests/python/runs/test_interpreters.py::test_python_m_searches_the_current_folder"],
    "S21": ["tests/python/runs/test_sockets_hostile.py::test_no_call_says_what_was_ignored"],
    "S22": [
        "tests/python/whole/test_fuzzed.py::test_every_target_is_here",
        "tests/python/whole/test_readers.py::test_every_reader_is_here",
        "tests/python/whole/test_security.py::test_the_page_of_fuzzing_has_every_target",
    ],
    "S23": ["tests/python/whole/test_security.py::test_there_is_one_unsafe"],
}
"""The tests of each claim, as `path::function`."""


def numbers(text: str) -> list[str]:
    """The numbers of the claims of a text."""
    return re.findall(r"^\*\*(S\d+)\.\*\* ", text, re.MULTILINE)


def unnumbered(text: str) -> list[str]:
    """Paragraphs of the two lists of claims that have no number."""
    sections = re.split(r"^## ", text, flags=re.MULTILINE)
    lists = [section for section in sections if section.startswith("What ")]
    parts = [part for section in lists for part in section.strip().split("\n\n")[1:]]
    return [part for part in parts if not re.match(r"\*\*S\d+\.\*\* ", part)]


@cache
def functions(file: Path) -> frozenset[str]:
    """Names of the tests in a file of Python or Rust; of none in a missing file."""
    if not file.is_file():
        return frozenset()
    text = file.read_text("utf-8")
    if file.suffix == ".rs":
        return frozenset(re.findall(r"^ *#\[test\]\n(?: *#\[[^\n]*\]\n)* *fn (\w+)\(", text, re.MULTILINE))
    names = (node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef))
    return frozenset(name for name in names if name.startswith("test_"))


def missing(tests: list[str]) -> list[str]:
    """Those of some tests that do not exist."""
    places = [test.rpartition("::") for test in tests]
    return [f"{file}::{name}" for file, _, name in places if name not in functions(ROOT / file)]


def test_claims_are_numbered_in_order() -> None:
    assert numbers(CLAIMS) == [f"S{number + 1}" for number in range(len(numbers(CLAIMS)))]
    assert unnumbered(CLAIMS) == []


def test_each_claim_has_its_tests_and_no_other_number_has() -> None:
    assert list(TESTS) == numbers(CLAIMS)
    assert [claim for claim, tests in TESTS.items() if not tests] == []


@pytest.mark.parametrize("claim", TESTS)
def test_the_tests_of_a_claim_exist(claim: str) -> None:
    assert missing(TESTS[claim]) == []


def test_a_missing_claim_and_a_missing_test_are_noticed() -> None:
    assert numbers("**S1.** a\n\nb **S2.** c\n\n**S3.** d\n") == ["S1", "S3"]
    assert unnumbered("# x\n\n## What counts\n\n**S1.** a\n\nb\n\n## More\n\nc\n") == ["b"]
    here = "tests/python/whole/test_security.py"
    there = "crates/sim/tests/traces.rs"
    tests = [f"{here}::test_none", f"{here}::missing", "none.py::test_x", f"{there}::broken_files", f"{there}::link_of"]
    assert missing(tests) == tests


def test_the_page_of_fuzzing_has_every_target() -> None:
    page = (ROOT / "fuzz" / "README.md").read_text("utf-8").partition("## How far")[0]
    targets = {file.stem for file in (ROOT / "fuzz" / "fuzz_targets").glob("*.rs")}
    first_cells = " ".join(re.findall(r"^\|([^|]+)\|", page, re.MULTILINE))
    assert {target for target in targets if f"`{target}`" not in first_cells} == set()


def test_there_is_one_unsafe() -> None:
    lines = [
        (file, line.strip())
        for file, text in texts({".rs"})
        for line in text.splitlines()
        if re.search(r"\bunsafe\b|allow\(unsafe_code", line.partition("//")[0])
    ]
    assert lines == [
        ("crates/codec/src/h264.rs", "#[allow(unsafe_code)]"),
        (
            "crates/codec/src/h264.rs",
            "let code = unsafe { encoder.raw_api().set_option(option, (&raw mut value).cast()) };",
        ),
    ]
    manifest = (ROOT / "Cargo.toml").read_text("utf-8")
    assert 'unsafe_code = "deny"' in manifest
    crates = sorted((ROOT / "crates").glob("*/Cargo.toml"))
    assert [file.parent.name for file in crates if "[lints]\nworkspace = true" not in file.read_text("utf-8")] == []
    assert re.search(r"^default = ", (ROOT / "crates/codec/Cargo.toml").read_text("utf-8"), re.MULTILINE) is None
