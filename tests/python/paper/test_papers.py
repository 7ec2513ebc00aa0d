"""A run of a paper about a made-up cable: file, experiment, page and command."""

from __future__ import annotations

import base64
import csv
import html
import io
import json
import re
import shutil
import textwrap
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from support import ROOT, Cli, begin, interrupt
from support.cable import CABLE, CODE, TOML, wrong
from tidegate import _shipped, paper
from tidegate.errors import InputError
from tidegate.output.markdown import markdown
from tidegate.paper import Measure, Result, Table, Verdict, document, shipped, words
from tidegate.paper import _mutations as mutations
from tidegate.paper.measures import CellValue
from tidegate.paper.reading import load
from tidegate.results.stats import Interval


@pytest.fixture(scope="module")
def quick() -> Result:
    return paper.run(CABLE, command="tidegate paper <cable>")


def verdicts(result: Result) -> dict[str, str]:
    return {judgement.claim.id: str(judgement.verdict) for judgement in result.judgements}


# --- what comes out -------------------------------------------------------------------------------


def test_the_cable_is_judged_as_its_closed_forms_say(quick: Result) -> None:
    assert verdicts(quick) == {
        "share": "agrees",
        "sent/1/received": "agrees",
        "sent/1/loss": "agrees",
        "sent/2/received": "agrees",
        "sent/2/loss": "agrees",
        "sent/4/received": "agrees",
        "sent/4/loss": "agrees",
        "sent/8/received": "same trend",
        "idle-delay": "agrees",
        "full-delay": "differs",
        "strange": "differs",
        "jitter": "agrees",
        "long": "not run",
    }
    by_id = {judgement.claim.id: judgement for judgement in quick.judgements}
    measures = quick.outcome.measures
    # 8000 bit at 2 Mb/s plus 10 ms; with a full queue ten packets of 4 ms each, plus 10 ms
    assert measures["delay.1"].value.mean == 14.0
    assert measures["delay.8"].value.mean == 50.0
    assert (by_id["full-delay"].deviation, by_id["full-delay"].backing) == (30.0, "not confirmed")
    assert by_id["full-delay"].reason == "The cable is faster than it says: 50 ms, 3.57 times that of an idle one."
    assert (by_id["sent/8/received"].backing, by_id["strange"].backing) == ("confirmed", "no reason known")
    assert [judgement.claim.id for judgement in quick.unexplained] == ["strange"]
    assert quick.counts == {Verdict.AGREES: 9, Verdict.TREND: 1, Verdict.DIFFERS: 2, Verdict.NOT_RUN: 1}
    assert (list(quick.plan.seeds), quick.jobs) == ([1, 2], 10)


def test_each_kind_of_claim_is_counted_apart(tmp_path: Path) -> None:
    folder = wrong(tmp_path, 'id = "idle-delay"', 'id = "idle-delay"\nkind = "setting"')
    text = (folder / "paper.toml").read_text("utf-8")
    for line, kind in (('id = "sent"', "fitted"), ('id = "strange"', "own"), ('rows = ["8"]', "result")):
        assert line in text
        text = text.replace(line, f'{line}\nkind = "{kind}"', 1)
    (folder / "paper.toml").write_text(text, "utf-8")
    result = paper.run(folder, seeds=1)
    # six cells of the table are over fitted settings; the cell of rate 8 is not
    assert {str(kind): sum(counts.values()) for kind, counts in result.counts_by_kind.items()} == {
        "result": 5,
        "fitted": 6,
        "setting": 1,
        "own": 1,
    }
    counts = document.sentences(result)[0]
    assert "6 published results over fitted settings: 6 agree;" in counts
    assert "1 own claim: 1 differ" in counts
    assert json.loads(json.dumps(result.to_data()))["counts_by_kind"]["own"] == {"differs": 1}


def test_a_full_run_leaves_nothing_out() -> None:
    result = paper.run(CABLE, quick=False, seeds=2, workers=1)
    assert verdicts(result)["long"] == "agrees"
    assert (list(result.plan.seeds), result.jobs) == ([1, 2], 11)
    assert list(paper.run(CABLE, quick=False).plan.seeds) == [1, 2, 3]


def test_the_same_comes_out_whatever_the_number_of_workers(quick: Result) -> None:
    again = paper.run(CABLE, workers=1)
    assert again.outcome.digests == quick.outcome.digests
    ignored = {"took_s", "command"}
    first, second = ({k: v for k, v in result.to_data().items() if k not in ignored} for result in (again, quick))
    assert first == second


class _Page(HTMLParser):
    """Text of a page outside of styles, as a browser shows it, with its elements and attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self.inside = tag

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside != "style":
            self.texts.append(data)


def test_the_page_has_every_claim_and_asks_for_nothing(quick: Result, tmp_path: Path) -> None:
    folder = quick.save(tmp_path / "out")
    source = (folder / "index.html").read_text("utf-8")
    page = _Page(source)
    text = "\n".join(page.texts)
    for judgement in quick.judgements:
        for cell in words.row(judgement):
            assert cell in text, judgement.claim.id
    assert "A cable <that> carries what it can & no more" in text
    assert "that" not in page.tags, "a title is no markup"
    assert "tidegate paper <cable>" in text
    assert "ten packets, the one in service included" in text
    assert "Delays | by rate" in text
    # results first, bookkeeping last; of the differences, the worst first
    parts = (
        "In short",
        "result with the stated setting",
        "What was fitted",
        "Published numbers beside ours",
        "Differences",
        "Figures",
    )
    headings = (*parts, "leaves unstated", "Behind the verdicts", "Every claim")
    positions = [text.casefold().index(part.casefold()) for part in headings]
    assert positions == sorted(positions)
    first = text.index("Differences and their reasons")
    assert text.index("Nothing is ever lost", first) < text.index("received of 8", first)
    # statements that do not hold are quoted; the result with a stated setting that was not run is there
    assert "Does not hold: “A full queue takes 20 ms” (Section 2); “Nothing is ever lost” (Section 3)." in text
    assert "half the rate, 1994 kbit/s of 3988" in text
    # the document's table in its own form: published above ours, with a sign
    assert re.search(r"2600\s+1994 \s+≈", text)


def test_the_first_screen_begins_with_the_documents_main_claims(tmp_path: Path) -> None:
    folder = wrong(tmp_path, "year = 2001", 'year = 2001\nheadline = ["full-delay", "share"]')
    text = (folder / "paper.toml").read_text("utf-8")
    text = text.replace(
        "fitted = true", 'fitted = true\ndecides = ["full-delay"]\ngives = "with 500 bytes {delay.1 - 2} ms"'
    )
    text = text.replace('id = "full-delay"', 'id = "full-delay"\nkind = "fitted"')
    text = text.replace('measure = "delay.1"', 'measure = "delay.1"\nnote = "By luck: {delay.1}."')
    (folder / "paper.toml").write_text(text, "utf-8")
    result = paper.run(folder, seeds=1)
    page = markdown(result.document())
    parts = (
        "the document's main claims",
        "A full queue takes 20 ms (Section 2)",
        "Twice the capacity offered, half of it is lost (Section 1)",
        "result with the stated setting",
        "with 500 bytes 12 ms",
        "“A full queue takes 20 ms” (Section 2) (fitted settings).",
        "Holds: “Twice the capacity",
    )
    positions = [page.index(part) for part in parts]
    assert positions == sorted(positions)
    apart = text.replace('["full-delay", "share"]', '["share"]')
    (folder / "paper.toml").write_text(apart, "utf-8")
    page_apart = markdown(paper.run(folder, seeds=1).document())
    assert "decides a main claim" in page
    assert "decides a main claim" not in page_apart, "it decides another claim only"
    assert "with 500 bytes 12 ms" in page_apart, "beside what is unstated"
    # without results of its own a setting has the reasons of what it decides, cells of a table too
    of_table = text.replace('decides = ["full-delay"]\ngives = "with 500 bytes {delay.1 - 2} ms"', 'decides = ["sent"]')
    (folder / "paper.toml").write_text(of_table.replace('id = "sent"', 'id = "sent"\nkind = "fitted"'), "utf-8")
    unstated = markdown(paper.run(folder, seeds=1).document()).split("## What the document leaves unstated")[1]
    assert "A cable of 2000 kbit/s carries 1994 kbit/s at most." in unstated.split("##")[0]
    (idle,) = (judgement for judgement in result.judgements if judgement.claim.id == "idle-delay")
    assert (idle.verdict, words.reason(idle)) == (Verdict.AGREES, "By luck: 14 ms.")
    assert "14 ms. By luck: 14 ms." in page, "beside the number"
    (folder / "paper.toml").write_text(text.replace('["full-delay", "share"]', '["full-dealy"]'), "utf-8")
    message = 'paper.toml:4: headline[1]: found "full-dealy"; there is no such claim; did you mean full-delay?'
    with pytest.raises(InputError, match=re.escape(message)):
        load(folder)


HALVED = {
    "share": (Verdict.DIFFERS, "1 < 2", mutations.Effect.TURNS),
    "strange": (Verdict.AGREES, "0 %", mutations.Effect.BETTER),
    "jitter": (Verdict.DIFFERS, "no value", mutations.Effect.NO_VALUE),
}
"""Verdicts on the cable with half of it."""


def test_a_verdict_that_turns_under_no_mutation_is_marked(tmp_path: Path) -> None:
    folder = wrong(tmp_path)
    unmutated = paper.run(folder, seeds=1)
    assert unmutated.mutations is None
    by_claim = {
        judgement.claim.id: {
            mutations.AS_RUN: mutations.MutatedVerdict(judgement.verdict, "as run"),
            "half": mutations.MutatedVerdict(
                *HALVED.get(judgement.claim.id, (judgement.verdict, "1 < 2", mutations.Effect.UNCHANGED))
            ),
        }
        for judgement in unmutated.judgements
    }
    stored = mutations.Mutations(1, {"half": "half of <it>"}, by_claim)
    (folder / mutations.FILE).write_text(mutations.text(stored), "utf-8")
    assert mutations.load(folder) == stored
    result = paper.run(folder, seeds=1)
    turned = {judgement.claim.id for judgement in result.judgements if stored.turned_by(judgement.claim.id)}
    assert turned == {"share"}
    assert stored.turned_by("long") is None, "a claim that was not run was not judged"
    assert stored.counts("half", [judgement.claim.id for judgement in result.judgements]) == {
        mutations.Effect.TURNS: 1,
        mutations.Effect.NO_VALUE: 1,
        mutations.Effect.BETTER: 1,
        mutations.Effect.UNCHANGED: 9,
    }
    lines = document.sentences(result)
    assert "(1 clearly worse without the mechanism)" in lines[0]
    assert lines[2].startswith("Holds only with the mechanism: “Twice the capacity offered")
    assert lines[3].startswith(
        "Holds, but is no evidence for the mechanism (not clearly worse without it): “A packet of"
    )
    page = result.save(tmp_path / "out") / "index.html"
    text = page.read_text("utf-8")
    # eleven verdicts that do not turn, and the legend
    assert text.count(document.RING) == 11 + 1
    assert (
        "Without the mechanism (half: half of &lt;it&gt;; one seed) 1 of 12 verdicts are clearly worse (intervals apart)"
        in text
    )
    assert "Not counted: 1 better without the mechanism, 1 without a value then." in text
    assert "no value (nothing to measure)" in text
    assert "0 % (better without)" in text
    assert json.loads((page.parent / "paper.json").read_text())["claims"][0]["turned_by"] == ["half"]
    for damaged, why in (
        ("{}", "seeds: the key is missing"),
        ('{"seeds": 1e999, "mutations": {}, "claims": {}}', "seeds: found inf; expected a whole number"),
        (
            '{"seeds": 1, "mutations": {}, "claims": {"a": [["agrees"]]}}',
            "found .*; expected a list of length 2 or more",
        ),
        (
            '{"seeds": 1, "mutations": {}, "claims": {"a": [["maybe", "1"]]}}',
            "'maybe' is not a valid Verdict; TIDEGATE",
        ),
        ('{"seeds": 1,', "Expecting property name"),
    ):
        (folder / mutations.FILE).write_text(damaged, "utf-8")
        with pytest.raises(InputError, match=rf"mutations\.json: the file cannot be used: .*{why}"):
            mutations.load(folder)


def test_the_rest_of_the_page(quick: Result, tmp_path: Path) -> None:
    folder = quick.save(tmp_path / "out")
    text = (folder / "index.html").read_text("utf-8")
    page = _Page(text)
    # nothing outside: pictures are inside, the policy forbids the rest
    assert "script" not in page.tags
    sources = [value for name, value in page.attributes if name in {"src", "href"} and value]
    assert all(value.startswith("data:") for value in sources), sources
    policy = next(value for name, value in page.attributes if name == "content" and "src" in str(value))
    assert policy == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    (picture,) = [value for value in sources if value.startswith("data:image/svg")]
    svg = base64.b64decode(picture.partition(",")[2])
    assert svg == (folder / "figures" / "loss.svg").read_bytes()
    assert b"<svg" in svg[:1000]
    assert (folder / "figures" / "loss.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_each_form_has_what_it_has_room_for(quick: Result, tmp_path: Path) -> None:
    folder = quick.save(tmp_path / "out")
    page, readme = ((folder / name).read_text("utf-8") for name in ("index.html", "README.md"))
    cell = quick._repr_html_()
    digest = quick.outcome.digests["1, seed 1"]
    assert [digest in form for form in (page, readme, cell)] == [True, False, False]
    assert ["A full queue takes 20 ms: published 20" in form for form in (page, readme, cell)] == [True, True, False]
    assert all("Does not hold: “A full queue takes 20 ms”" in form for form in (page, readme, cell))
    # the page has a claim's reason in a row below it, Markdown in a column
    reason = "The cable is faster than it says: 50 ms, 3.57 times that of an idle one."
    assert f'<tr><td colspan="6" class="why">{reason}' in page
    assert f"| +30 ms | **differs** | {reason}" in readme
    # where prose is stacked, each cell bears its head
    assert f'data-head="why">{reason}' in page


def cells(markdown: str) -> list[list[str]]:
    """Cells of a Markdown table, row by row, as a reader sees them."""
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    lines = [re.sub(r"(?<!\\)\*\*", "", line) for line in lines]  # bold
    rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return [[html.unescape(re.sub(r"\\([|*`\\])", r"\1", cell)) for cell in row] for row in rows]


def test_markdown_and_csv_say_what_the_page_says(quick: Result, tmp_path: Path) -> None:
    folder = quick.save(tmp_path / "out")
    expected = [words.row(judgement) for judgement in quick.judgements]
    listed = list(csv.reader(io.StringIO((folder / "tables" / "claims.csv").read_text("utf-8"))))
    assert listed == [list(words.HEADS), *expected]
    heads, _, *rows = cells((folder / "tables" / "claims.md").read_text("utf-8"))
    assert (heads, rows) == (list(words.HEADS), expected)
    readme = (folder / "README.md").read_text("utf-8")
    assert all(row in cells(readme) for row in expected)
    assert "![Figure 1: What is &lt;lost>](figures/loss.png)" in readme
    # the document's table, each number with ours beside it
    sent = list(csv.DictReader(io.StringIO((folder / "tables" / "sent.csv").read_text("utf-8"))))
    assert [row["received (kbit/s), published"] for row in sent] == ["1000.0", "2000.0", "2000.0", "2600.0"]
    assert [row["received, verdict"] for row in sent] == ["agrees", "agrees", "agrees", "same trend"]
    ours = [float(row["received (kbit/s), ours"]) for row in sent]
    assert ours == [quick.outcome.measures[f"received.{rate}"].value.mean for rate in (1, 2, 4, 8)]
    assert sent[3]["loss, verdict"] == ""


def test_any_table_survives_csv_and_markdown(tmp_path: Path) -> None:
    texts = ["a|b", 'say "x"', "1,5", "<b>*bold*</b>", "back\\slash", "`code`", "&amp;", ""]
    numbers: list[CellValue] = [
        0.1 + 0.2,
        7,
        Interval(1 / 3, 0.125, 4),
        Measure.of([]),
        Interval(2.0, None, 1),
        None,
        True,
        np.float64(1e-9),
    ]
    table = Table("odd", "odd", ["text", "number"], list(zip(texts, numbers, strict=True)))
    rows = list(csv.reader(io.StringIO(table.to_csv())))
    assert rows[0] == ["text", "number", "number: half_interval_95"]
    assert [row[0] for row in rows[1:]] == texts
    assert [row[1:] for row in rows[1:]] == [
        [repr(0.1 + 0.2), ""], ["7", ""], [repr(1 / 3), "0.125"], ["", ""], ["2.0", ""], ["", ""], ["True", ""],
        ["1e-09", ""],
    ]  # fmt: skip
    printed = cells(markdown(document.of_table(table)))
    assert [row[0] for row in printed[2:]] == texts
    assert [row[1] for row in printed[2:]] == ["0.300", "7", "0.333 ± 0.125", "no value", "2", "", "yes", "0.000000001"]
    with pytest.raises(ValueError, match="table odd: found a row of 1 cells; expected 2"):
        Table("odd", "odd", ["a", "b"], [[1]])


def test_numbers_of_numpy_and_too_large_ones_are_written(tmp_path: Path) -> None:
    code = """
        from tidegate import paper
        class Experiment(paper.Experiment):
            def jobs(self, plan): return {}
            def outcome(self, plan, done):
                import numpy as np
                delay = paper.Measure.exact(np.int64(15), "ms")
                return paper.Outcome({"delay.1": delay, "huge": paper.Measure.exact(-1.7e308, "kbit/s")})
    """
    head = TOML[: TOML.index("[[unstated]]")]
    about = 'where = "a"\ntext = "b"\ntolerance = { within = "1%", why = "c" }\n'
    text = f'{head}[[claim]]\nid = "a"\npublished = 5e-324\nunit = "ms"\nmeasure = "delay.1"\n{about}'
    text += f'[[claim]]\nid = "b"\npublished = 1e308\nunit = "kbit/s"\nmeasure = "huge"\n{about}'
    folder = wrong(tmp_path, code=textwrap.dedent(code))
    (folder / "paper.toml").write_text(text, "utf-8")
    paper.run(folder, out=tmp_path / "out")
    first, second = json.loads((tmp_path / "out" / "paper.json").read_text())["claims"]
    assert (first["verdict"], first["deviation"], first["relative"]) == ("differs", 15.0, None)
    assert (second["verdict"], second["deviation"]) == ("differs", None)


def test_paper_json_holds_everything(quick: Result, tmp_path: Path) -> None:
    data = json.loads((quick.save(tmp_path / "out") / "paper.json").read_text("utf-8"))
    assert data == json.loads(json.dumps(quick.to_data()))
    assert [claim["id"] for claim in data["claims"]] == list(verdicts(quick))
    assert data["counts"] == {"agrees": 9, "same trend": 1, "differs": 2, "not run": 1}
    assert (data["quick"], data["seeds"], data["paper"]) == (True, [1, 2], "cable")
    assert data["versions"]["tidegate"]
    assert set(data["measures"]) == set(quick.outcome.measures)
    assert len(data["digests"]) == 10


def test_a_result_replaces_a_result_and_nothing_else(quick: Result, tmp_path: Path) -> None:
    folder = quick.save(tmp_path / "out")
    (folder / "figures" / "notes").touch()
    (folder / "index.html").write_text("my words")
    quick.save(folder)
    assert (folder / "figures" / "notes").exists()
    assert (folder / "index.html.kept-1").read_text() == "my words"
    assert sorted(path.name for path in folder.iterdir()) == [
        "README.md",
        "figures",
        "index.html",
        "index.html.kept-1",
        "manifest.json",
        "paper.json",
        "tables",
    ]


# --- the command ----------------------------------------------------------------------------------


def test_the_command_writes_a_folder_and_says_where_it_differs(cli: Cli, tmp_path: Path) -> None:
    got = cli("paper", str(CABLE))
    assert (got.code, got.err) == (0, "")
    assert "quick, 2 seeds" in got.out
    assert (
        "differs: Section 2, A full queue takes 20 ms\n  published 20 (\N{GREEK SMALL LETTER SIGMA} 2.5) ms; ours 50 ms (+30 ms)"
        in got.out
    )
    assert "No reason known." in got.out
    assert got.out.endswith("written to cable-quick: index.html, README.md, paper.json, tables/, figures/\n")
    assert (tmp_path / "cable-quick" / "paper.json").is_file()
    got = cli("paper", str(CABLE), "--full", "--seeds", "1", "--jobs", "1", "--out", "o")
    assert got.code == 0
    data = json.loads((tmp_path / "o" / "paper.json").read_text("utf-8"))
    assert (data["quick"], data["seeds"], data["counts"]["agrees"]) == (False, [1], 9)


def test_what_is_not_installed_is_said_where_it_is_looked_for(cli: Cli, tmp_path: Path) -> None:
    measured = 'measures["jittered.1"] = over("poisson", "one_way_delay_ms_mean", 1, "ms")'
    assert measured in CODE
    replaced = 'measures["jittered.1"] = Measure.not_taken("ns-2 is needed: install ns-2", "ms")'
    folder = wrong(tmp_path, code=CODE.replace(measured, replaced))
    got = cli("paper", str(folder), "--out", "o")
    assert (got.code, got.err) == (0, "")
    assert "\n1 claim not run: ns-2 is needed: install ns-2.\n" in got.out
    for page in ("README.md", "index.html"):
        assert (tmp_path / "o" / page).read_text("utf-8").count("ns-2 is needed: install ns-2") == 2
    claims = json.loads((tmp_path / "o" / "paper.json").read_text("utf-8"))["claims"]
    assert {claim["id"]: claim["reason"] for claim in claims if claim["verdict"] == "not run"} == {
        "jitter": "ns-2 is needed: install ns-2",
        "long": "",
    }


def test_json_is_all_that_is_printed(cli: Cli, tmp_path: Path, quick: Result) -> None:
    got = cli("paper", str(CABLE), "--json")
    assert (got.code, got.err) == (0, "")
    data = json.loads(got.out)
    assert data["claims"] == json.loads(json.dumps(quick.to_data()))["claims"]
    assert list(tmp_path.iterdir()) == []
    assert cli("paper", str(CABLE), "--json", "--out", "o").code == 0
    assert (tmp_path / "o" / "index.html").is_file()


def test_what_experiments_print_is_no_result(cli: Cli, tmp_path: Path) -> None:
    folder = wrong(
        tmp_path, code=CODE.replace("        measures = {}", "        print('hello')\n        measures = {}")
    )
    got = cli("paper", str(folder), "--json")
    assert (json.loads(got.out)["paper"], got.err) == ("p", "hello\n")


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        (("x", "--quick", "--full"), 2, "--quick and --full: give one of them\n"),
        (("list", "--out", "x"), 2, "list: the list runs nothing, so --out has no effect; give the key of a paper\n"),
        (("nosuch",), 2, "nosuch: there is no such paper (tidegate paper list has all)\n"),
        (("hoang2071",), 2, "hoang2071: there is no such paper; did you mean hoang2017? (tidegate paper list has all)\n"),
        (("a/b",), 2, "a/b: there is no such folder\n"),
        (("empty",), 2, "empty: the folder is not a paper's; it has no paper.toml\n"),
        (("file",), 2, "file: found a file; expected the key of a paper, or a folder with paper.toml\n"),
        (("bare",), 2, "bare/experiment.py: there is no such file; expected the paper's code there\n"),
        ((str(CABLE), "--out", "full"), 1, "full: the folder holds other files (it has no manifest.json of tidegate); choose an empty or a new"),
        ((str(CABLE), "--out", "file"), 1, "file: found a file; expected a folder, or no file of this name\n"),
        ((str(CABLE), "--out", "file/x"), 1, "file/x: "),
        ((str(CABLE), "--out", "/proc/x"), 1, "/proc/x: cannot be written: "),
        ((str(CABLE), "--seeds", "0"), 2, "Invalid value for '--seeds'"),
        ((str(CABLE), "--seeds", "999999"), 2, "seeds: found 999999; expected from 1 to 100000 seeds\n"),
        ((), 2, "Missing argument"),
    ],
)  # fmt: skip
def test_wrong_usage(
    argv: tuple[str, ...], code: int, message: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipped, "names", lambda: ["hoang2017", "lissah2019"])
    for name in ("empty", "full", "bare"):
        (tmp_path / name).mkdir()
    (tmp_path / "full" / "x").touch()
    (tmp_path / "file").touch()
    (tmp_path / "bare" / "paper.toml").write_text(TOML, "utf-8")
    before = sorted(tmp_path.rglob("*"))
    got = cli("paper", *argv)
    assert (got.code, got.out) == (code, "")
    assert got.err.startswith(f"tidegate: {message}")
    assert "Traceback" not in got.err
    assert sorted(tmp_path.rglob("*")) == before


def test_the_list(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(CABLE, tmp_path / "papers" / "cable")
    monkeypatch.setattr(_shipped, "PAPERS", tmp_path / "papers")
    monkeypatch.setattr(shipped, "FOLDER", tmp_path / "papers")
    got = cli("paper", "list")
    assert (got.code, got.out) == (
        0,
        "cable  A cable <that> carries what it can & no more (A. Tester, 2001; 13 claims)\n",
    )
    (listed,) = json.loads(cli("paper", "list", "--json").out)
    assert (listed["key"], listed["claims"], listed["authors"], listed["year"]) == ("cable", 13, ["A. Tester"], 2001)
    help_text = cli("paper", "--help").out
    assert "Example: tidegate paper" in help_text
    assert "--quick" in help_text


def test_ctrl_c_writes_nothing(tmp_path: Path) -> None:
    begins = 'def scenario(rate: int, duration: str, pattern: str = "cbr") -> Scenario:\n'
    assert begins in CODE
    running = begins + "    open('running', 'w').close()\n"
    folder = wrong(tmp_path, code=CODE.replace('"4s"', '"100000s"').replace(begins, running))
    code, out, err = interrupt(begin(["paper", str(folder), "--out", "o"], tmp_path), tmp_path / "running")
    assert (code, out, err) == (130, "", "tidegate: stopped; nothing was written\n")
    assert {path.name for path in tmp_path.iterdir()} == {folder.name, "running"}


# --- those that come with tidegate ----------------------------------------------------------------


def test_every_paper_in_the_package_can_be_read() -> None:
    assert shipped.FOLDER == ROOT / "python" / "tidegate" / "papers"
    for listed in paper.list_papers():
        assert (listed.folder / "experiment.py").is_file(), listed.key
        assert (listed.folder / "__init__.py").is_file(), f"{listed.key}: its code is imported as a package"


@pytest.mark.parametrize("key", shipped.names())
def test_each_shipped_paper_has_a_test_that_nothing_differs_without_a_reason(key: str) -> None:
    """The test is in the paper's own file, beside the tests that look at the same result."""
    text = (ROOT / "tests" / "python" / "papers" / f"test_{key}.py").read_text("utf-8")
    assert f'PaperStudy("{key}").result()' in text
    assert "result.unexplained == []" in text


def test_the_example_of_the_documentation_works(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "papers.md").read_text("utf-8")
    data, code = (re.findall(rf"```{kind}\n(.*?)```", page, re.DOTALL)[0] for kind in ("toml", "python"))
    (tmp_path / "paper.toml").write_text(data, "utf-8")
    (tmp_path / "experiment.py").write_text(code, "utf-8")
    claims = {claim.id: claim for claim in load(tmp_path).claims}
    assert list(claims) == ["mean-rate", "loss-ratio", "table1/0.5 Mb/s/tcp.sent", "table1/0.5 Mb/s/tcp.pdr",
                            "table1/1 Mb/s/tcp.sent"]  # fmt: skip
    misprint = claims["table1/0.5 Mb/s/tcp.pdr"].because
    assert misprint is not None
    assert misprint.names == ("table1/0.5 Mb/s/tcp.pdr",)
    # it speaks of more than the short code beside it measures; with two claims of its own it runs
    head = data[: data.index("[[claim]]")]
    measured_claim = '[[claim]]\nid = "loss"\nwhere = "x"\ntext = "y"\nagrees = "gcc.loss <= udp.loss"\n'
    (tmp_path / "paper.toml").write_text(head + measured_claim, "utf-8")
    result = paper.run(tmp_path, seeds=2)
    assert verdicts(result) == {"loss": "agrees"}
    assert result.save(tmp_path / "out").is_dir()
