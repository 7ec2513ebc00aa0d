"""Tries which tests notice a mistake in the code.

Mistakes are small changes of the pure crates that cargo-mutants lists and a seed draws, or the mechanisms of
`studies/mechanisms.toml`, each broken by hand. Each is made in a clone and tried by the Rust tests first; what they do
not notice goes through the fast and the slow Python tests. Each verdict is a line of the file of --out as soon as it is
known, and is not tried again: an interrupted trial goes on where it was. Minutes for each.

Example: python studies/mutants.py --seed 34 --count 30
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import subprocess
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PURE = ("core", "controllers", "endpoint", "sim")
LONGEST_S = {"test-rust": 1200, "test-python": 2400, "test-slow": 3600, "test-page": 1200}
"""After so long a verb is ended: a mistake that makes a test hang is noticed, too."""
PYTEST = ".venv/bin/python -m pytest -q -x -p no:cacheprovider -n auto --maxprocesses 8 --dist loadfile"
VERBS = {
    "test-rust": "cargo test --locked --workspace --exclude tidegate-python --quiet",
    "test-python": f"{PYTEST} -m 'not slow' tests",
    "test-slow": f"{PYTEST} -m 'slow and not mutation' --ignore-glob='*_live.py' --ignore-glob='*test_page*' tests",
    "test-page": "make test-page",
}


@dataclass(frozen=True)
class Mistake:
    """A change of one file."""

    name: str
    file: str
    text: str
    """The file with the mistake."""


def drawn(tree: Path, seed: int) -> Iterator[Mistake]:
    """Mutants of the pure crates, in an order that the seed gives."""
    packages = [word for crate in PURE for word in ("--package", f"tidegate-{crate}")]
    listed = subprocess.run(
        ["cargo", "mutants", "--list", "--json", *packages], cwd=tree, check=True, capture_output=True, text=True
    )
    mutants: list[dict[str, Any]] = sorted(json.loads(listed.stdout), key=lambda mutant: str(mutant["name"]))
    random.Random(seed).shuffle(mutants)
    for mutant in mutants:
        lines = (tree / mutant["file"]).read_text("utf-8").splitlines(keepends=True)
        start, end = (_offset(lines, mutant["span"][edge]) for edge in ("start", "end"))
        text = "".join(lines)
        yield Mistake(mutant["name"], mutant["file"], text[:start] + mutant["replacement"] + text[end:])


def _offset(lines: Sequence[str], place: dict[str, int]) -> int:
    return sum(map(len, lines[: place["line"] - 1])) + place["column"] - 1


def mechanisms(tree: Path) -> Iterator[Mistake]:
    """The mechanisms that are broken by hand."""
    for entry in tomllib.loads((ROOT / "studies" / "mechanisms.toml").read_text("utf-8"))["mechanism"]:
        text = (tree / entry["file"]).read_text("utf-8")
        if text.count(entry["old"]) != 1:
            raise SystemExit(
                f"{entry['name']}: {entry['file']} contains the line of this mechanism {text.count(entry['old'])} times"
            )
        yield Mistake(entry["name"], entry["file"], text.replace(entry["old"], entry["new"]))


def git(folder: Path, *argv: str) -> str:
    """What git prints in a folder."""
    done = subprocess.run(["git", *argv], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def run(command: str, tree: Path, longest_s: int) -> tuple[bool, str]:
    """Runs a command: whether it passed, and its words."""
    process = subprocess.Popen(
        ["bash", "-c", command],
        cwd=tree,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        words, _ = process.communicate(timeout=longest_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        words, _ = process.communicate()
        return False, f"{words}\nno end after {longest_s} s"
    return process.returncode == 0, words


def noticed_by(words: str) -> str:
    """The first test that a failed verb names."""
    forms = (r"^(?:FAILED|ERROR) (\S+)", r"^---- (\S+) stdout ----", r"^not ok \d+ - (.+)")
    named = next((match for form in forms if (match := re.search(form, words, re.MULTILINE))), None)
    return named[1] if named else words.strip().splitlines()[-1][:200]


def verbs_of(file: str) -> Sequence[str]:
    """The verbs that can notice a change of a file, the quickest first."""
    if file.startswith("page/"):
        return ("test-page",)
    return (*(("test-rust",) if file.endswith(".rs") else ()), "test-python", "test-slow")


def attempt(mistake: Mistake, tree: Path) -> dict[str, str]:
    """Makes a mistake and tries who notices: verdict, verb and test."""
    path = tree / mistake.file
    right = path.read_bytes()
    path.write_text(mistake.text, "utf-8")
    try:
        for verb in verbs_of(mistake.file):
            if verb == "test-python":
                built, words = run("make quick", tree, 1800)
                if not built:
                    return {"verdict": "does not compile"}
            passed, words = run(VERBS[verb], tree, LONGEST_S[verb])
            if not passed:
                if verb == "test-rust" and "could not compile" in words:
                    return {"verdict": "does not compile"}
                return {"verdict": "noticed", "verb": verb, "test": noticed_by(words)}
        return {"verdict": "not noticed"}
    finally:
        path.write_bytes(right)


def main() -> None:
    """Tries as many as are asked for, but those that were tried before."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=30, help="number of mutants that compile (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="seed that chooses the mutants (%(default)s)")
    parser.add_argument(
        "--mechanisms", action="store_true", help="try the mechanisms of studies/mechanisms.toml instead of mutants"
    )
    parser.add_argument("--commit", default="HEAD", help="commit whose code is tried (%(default)s)")
    parser.add_argument(
        "--out", type=Path, default=ROOT / ".cache" / "mutants.jsonl", help="file for the verdicts, a line each"
    )
    options = parser.parse_args()
    commit = git(ROOT, "rev-parse", "--short", options.commit)
    tree = ROOT / ".cache" / "mutants"
    if not tree.exists():
        git(ROOT, "clone", "--quiet", "--no-checkout", str(ROOT), str(tree))
    git(tree, "fetch", "--quiet", "origin")
    git(tree, "checkout", "--quiet", "--force", "--detach", commit)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    lines = options.out.read_text("utf-8").splitlines() if options.out.exists() else []
    tried = {(line["commit"], line["name"]): line for line in map(json.loads, lines)}
    count = 0
    for mistake in mechanisms(tree) if options.mechanisms else drawn(tree, options.seed):
        key = (commit, mistake.name)
        if key not in tried:
            tried[key] = {"commit": key[0], "name": mistake.name, "file": mistake.file, **attempt(mistake, tree)}
            with options.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(tried[key]) + "\n")
        print(*(tried[key].get(word, "") for word in ("verdict", "name", "verb", "test")), sep="  ", flush=True)
        count += tried[key]["verdict"] != "does not compile"
        if not options.mechanisms and count == options.count:
            break


if __name__ == "__main__":
    main()
