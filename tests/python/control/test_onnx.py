"""ONNX models as controllers. The models are made here; their output is a function of one number of what they see."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tidegate import InputError, Scenario, compare, run
from tidegate._core import FEATURES, Remb
from tidegate.comparison.sweeping import Plan
from tidegate.control import Arrived, registry
from tidegate.control import agent as agents
from tidegate.control.agent import Terms
from tidegate.control.learned import challenge2024, metadata
from tidegate.control.learned._receiving import Estimating
from tidegate.runs import Run, sockets

onnx = pytest.importorskip("onnx", reason="needs onnx, which makes models: pip install onnx")
onnxruntime = pytest.importorskip("onnxruntime", reason='needs ONNX Runtime: pip install "tidegate[onnx]"')

from onnx import TensorProto, helper  # noqa: E402 - only if it is there

FLOAT = TensorProto.FLOAT
MS = 10**6


def model(
    path: Path,
    weights: dict[int, float],
    bias: float = 0.0,
    *,
    numbers: int = 150,
    width: int = 2,
    opset: int = 17,
    states: bool = True,
    counted: float = 0.0,
    rename: dict[str, str] | None = None,
) -> Path:
    """A model whose estimate is a sum of weighted numbers of its observation, the bias, and what its state counts.

    Its hidden state is how often it was called, which adds `counted` each; the cell state stays as it is.
    """
    matrix = np.zeros((numbers, width), np.float32)
    for place, weight in weights.items():
        matrix[place, 0] = weight
    name = partial(lambda names, name: names.get(name, name), rename or {})
    vector = np.array([bias, *[0.0] * (width - 1)], np.float32)
    constants = [
        helper.make_tensor("weights", FLOAT, matrix.shape, matrix.ravel()),
        helper.make_tensor("bias", FLOAT, [width], vector),
        helper.make_tensor("one", FLOAT, [1, 1], [1.0]),
    ]
    nodes = [
        helper.make_node("MatMul", [name("obs"), "weights"], ["weighted"]),
        helper.make_node("Add", ["weighted", "bias"], [name("output")]),
    ]
    inputs = [helper.make_tensor_value_info(name("obs"), FLOAT, [1, 1, numbers])]
    outputs = [helper.make_tensor_value_info(name("output"), FLOAT, [1, 1, width])]
    if states:
        constants.append(helper.make_tensor("counted", FLOAT, [1, 1], [counted]))
        nodes[-1:] = [
            helper.make_node("Add", ["weighted", "bias"], ["stateless"]),
            helper.make_node("Mul", ["hidden_states", "counted"], ["calls"]),
            helper.make_node("Add", ["stateless", "calls"], [name("output")]),
        ]
        nodes.append(helper.make_node("Add", ["hidden_states", "one"], ["state_out"]))
        nodes.append(helper.make_node("Identity", ["cell_states"], ["cell_out"]))
        inputs += [helper.make_tensor_value_info(state, FLOAT, [1, 1]) for state in ("hidden_states", "cell_states")]
        outputs += [helper.make_tensor_value_info(state, FLOAT, [1, 1]) for state in ("state_out", "cell_out")]
    graph = helper.make_graph(nodes, "test", inputs, outputs, constants)
    built = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    path.write_bytes(built.SerializeToString())
    return path


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Path]:
    return partial(model, tmp_path / "model.onnx")


def halves(path: Path) -> tuple[Any, Estimating]:
    pair = registry.choose(f"onnx:{path}", Path()).factory()
    assert pair is not None
    follower, half = pair()
    return follower, half


def said(half: Estimating, now_ns: int) -> int:
    [remb] = half.message(now_ns)
    assert isinstance(remb, Remb)
    return remb.bitrate_bps


@pytest.mark.parametrize("place", [0, 7, 14, 24, 55, 63, 99, 105, 110, 125, 130, 149])
def test_each_number_of_the_observation_gets_to_its_place_in_the_input(make: Callable[..., Path], place: int) -> None:
    _, half = halves(make({place: 1000.0}, 1e6))
    observer = challenge2024.Observer()
    expected: list[float] = []
    for number in range(400):
        kind = {3: 111, 5: 127}.get(number % 8, 96)
        now_ns = 13 * number * MS + number * number * 10_007
        packet = Arrived(None, 300 + 10 * number, number * 3500, rtp_sequence=number + number // 9, payload_type=kind)
        if number:  # an interval ends whenever 60 ms have passed since the first packet
            while now_ns > 60 * MS * (len(expected) + 1):
                expected.append(float(observer.close()[place]) * 1000 + 1e6)
                assert half.on_alarm(60 * MS * len(expected)) == ("now", 60 * MS * (len(expected) + 1))
                assert said(half, now_ns) == pytest.approx(expected[-1], rel=1e-5, abs=1)
        observer.hear(now_ns, packet)
        half.on_packet(now_ns, packet)
    assert len(set(expected)) > 1, "a place whose number never changes tests nothing"


def test_the_states_of_one_step_are_those_of_the_next(make: Callable[..., Path]) -> None:
    path = make({}, 100_000.0)
    maker: Any = registry.choose(f"onnx:{path}", Path()).made_by
    observation, states = np.zeros(150, np.float32), maker.states()
    for step in range(3):
        assert float(states["hidden_states"][0, 0]) == step
        estimate, states = maker.call(observation, states)
        assert estimate == 100_000.0
    _, half = halves(make({}, 100_000.0, counted=4000.0))
    half.on_packet(0, Arrived(0, 1000, 0))
    for step in range(3):
        half.on_alarm(60 * MS * (step + 1))
        assert said(half, 0) == 100_000 + 4000 * step


def test_a_model_without_states_is_one_too(make: Callable[..., Path]) -> None:
    _, half = halves(make({}, 70_000.0, states=False))
    half.on_packet(0, Arrived(0, 1000, 0))
    assert half.on_alarm(60 * MS) == ("now", 120 * MS)
    assert said(half, 60 * MS) == 70_000


def scenario(controller: str) -> Scenario:
    changes = {"flows.call.media.controller": controller, "duration": "8s"}
    return Scenario.load("home-broadband").with_changes(changes)


def test_the_sender_takes_the_estimate_and_rtcp_carries_it(make: Callable[..., Path]) -> None:
    done = run(scenario(f"onnx:{make({}, 1_500_000.0)}"))
    # what the encoder makes of a constant 1.5 Mbit/s, and 28 bytes of IP and UDP for each of its packets
    assert done.metrics("call")["receive_rate_bps"] == pytest.approx(1.5e6, rel=0.08)
    assert done.about["versions"]["onnxruntime"] == onnxruntime.__version__
    contents = done.table("rtcp").to_numpy("contents").tolist()
    # one every 60 ms of 8 s, the first 60 ms after the first packet
    assert sum("REMB" in content for content in contents) == 133


def test_the_same_file_gives_the_same_bits_in_a_thread_and_in_a_process(make: Callable[..., Path]) -> None:
    name = f"onnx:{make({0: 1.05, 30: -2000.0}, 150_000.0)}"
    alone = [run(scenario(name), seed=seed).digest for seed in (1, 2)]
    both = compare([name], scenario=scenario(name), seeds=2, workers=2)
    assert [[run.digest for run in runs] for runs in both.runs.values()] == [alone]


def test_a_sweep_over_it_runs_what_has_changed_and_nothing_else(make: Callable[..., Path], tmp_path: Path) -> None:
    grid = {"flows.call.media.controller": [f"onnx:{make({}, 1_000_000.0)}", "gcc"]}
    base = Scenario.load("home-broadband").with_changes({"duration": "2s"})
    for bias, cached in ((1_000_000.0, 0), (1_000_000.0, 2), (2_000_000.0, 1)):
        make({}, bias)
        plan = Plan.of(base, grid, [1])
        assert plan.kept(tmp_path / "out") == (cached, 2)
        plan.run(tmp_path / "out")


def test_a_result_names_the_files_hash_and_another_content_is_another_run(make: Callable[..., Path]) -> None:
    from tidegate.scenario.lower import Lowered

    name = f"onnx:{make({}, 1_000_000.0)}"
    first = Lowered(scenario(name)).for_run()
    assert [len(digest) for digest in first.inputs.files.values()] == [64]
    make({}, 1_000_001.0)
    second = Lowered(scenario(name)).for_run()
    assert first.hash != second.hash
    assert first.inputs.files != second.inputs.files


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"numbers": 10, "weights": {}}, "the input obs tensor(float) [1, 1, 10] has 10 numbers; expected [1, 1, 150]"),
        ({"width": 3, "weights": {}}, "output has the shape [1, 1, 3] of float32; expected [1, 1, 2] of float32"),
        (
            {"rename": {"obs": "x"}, "weights": {}},
            "expected those of the challenge of 2024 (obs, hidden_states, cell_states -> ",
        ),
        (
            {"rename": {"output": "y"}, "weights": {}},
            "the model has no output output; available: y, state_out, cell_out",
        ),
        ({"opset": 99, "weights": {}}, "ONNX Runtime cannot run this model: "),
    ],
)
def test_a_model_with_another_contract_is_told_by_its_shapes(
    make: Callable[..., Path], changes: dict[str, Any], message: str
) -> None:
    path = make(**changes)
    with pytest.raises(InputError) as error:
        registry.choose(f"onnx:{path.name}", path.parent)
    text = str(error.value)
    assert text.startswith(f"{path.name}: ")
    assert message in text
    assert "\n" not in text


def test_what_is_no_model_is_told_in_one_line(tmp_path: Path) -> None:
    for content in (b"", b"hello", b"\x08\x07\x12\x00" * 9):
        (tmp_path / "bad.onnx").write_bytes(content)
        with pytest.raises(InputError, match=r"^bad\.onnx: the file is not an ONNX file[^\n]*$"):
            registry.choose("onnx:bad.onnx", tmp_path)
    with pytest.raises(InputError, match=r"^none\.onnx: there is no such file \(looked for "):
        registry.choose("onnx:none.onnx", tmp_path)
    with pytest.raises(InputError, match=r'found "onnx:"; expected onnx:model\.onnx'):
        registry.choose("onnx:", tmp_path)


def test_settings_and_presets_are_refused(make: Callable[..., Path]) -> None:
    path = make({})
    with pytest.raises(InputError, match="gain: a model has no settings; remove it"):
        registry.choose(f"onnx:{path}:gain=1", Path())
    with pytest.raises(InputError, match="expected key=value"):
        registry.choose(f"onnx:{path}:fast", Path())


@pytest.mark.parametrize(("bias", "text"), [(float("nan"), "nan"), (-1.0, "-1.0"), (1e13, "9999999827968.0")])
def test_an_estimate_that_is_none_ends_the_run_with_the_file_and_the_time(
    make: Callable[..., Path], bias: float, text: str
) -> None:
    path = make({}, bias)
    with pytest.raises(Exception, match=r"^call\.receiver at ") as error:
        run(scenario(f"onnx:{path}"))
    assert f"{path}: the estimate is {text}; expected bit/s from 0 to 10^12" in str(error.value)


def test_without_onnx_runtime_a_line_says_what_to_install(
    make: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make({})
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    from tidegate.control.learned import _session

    _session._load.cache_clear()
    with pytest.raises(InputError, match=r'a model needs ONNX Runtime \(.*\): pip install "tidegate\[onnx\]"'):
        registry.choose(f"onnx:{path}", Path())


def test_who_only_reads_runs_no_model(make: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    path = make({})
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    assert registry.choose(f"onnx:{path}", Path(), run_code=False).is_run is False
    scenario(f"onnx:{path}").check()


# --- models that learned in tidegate.gym ----------------------------------------------------------


def agent(
    path: Path,
    weights: dict[tuple[int, str], float],
    *,
    terms: Terms | None = None,
    names: list[str] | None = None,
    shape: list[Any] | None = None,
    width: int = 1,
    bias: float = 0.0,
    props: dict[str, str] | None = None,
) -> Path:
    """A model whose action is a sum of weighted numbers, by interval (the last is the newest) and name."""
    terms = terms or Terms()
    names = names or [feature[0] for feature in FEATURES]
    matrix = np.zeros((terms.history * len(names), width), np.float32)
    for (row, name), weight in weights.items():
        matrix[(row % terms.history) * len(names) + names.index(name), :] = weight
    constants = [
        helper.make_tensor("weights", FLOAT, matrix.shape, matrix.ravel()),
        helper.make_tensor("bias", FLOAT, [width], [bias] * width),
        helper.make_tensor("flat", TensorProto.INT64, [2], [1, -1]),
    ]
    nodes = [
        helper.make_node("Reshape", ["seen", "flat"], ["flattened"]),
        helper.make_node("MatMul", ["flattened", "weights"], ["weighted"]),
        helper.make_node("Add", ["weighted", "bias"], ["action"]),
    ]
    input_info = helper.make_tensor_value_info("seen", FLOAT, shape or [1, terms.history, len(names)])
    answer = helper.make_tensor_value_info("action", FLOAT, [1, width])
    graph = helper.make_graph(nodes, "agent", [input_info], [answer], constants)
    built = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    helper.set_model_props(built, {**metadata(terms, 400_000, names), **(props or {})})
    path.write_bytes(built.SerializeToString())
    return path


AGENTS: list[dict[str, Any]] = [
    {"weights": {(-1, "sent"): 0.5, (-1, "delay"): -1.0}, "bias": 0.25},
    {"weights": {(0, "acknowledged"): 0.75, (1, "delay"): -0.5}, "terms": Terms(history=2, interval="60ms")},
    {"weights": {(-1, "delay"): -4.0}, "bias": 0.5, "terms": Terms(action="change", factor=1.25, history=1)},
    {"weights": {(2, "loss"): -8.0, (-1, "rate"): 0.5}, "bias": 0.5, "names": ["loss", "rate"], "shape": ["n", 10]},
]


@pytest.mark.parametrize("made", AGENTS)
def test_a_model_on_terms_decides_as_its_function_does_in_python(
    tmp_path: Path, made: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    terms = made.get("terms") or Terms()
    path = agent(tmp_path / "agent.onnx", **made)
    names = [feature[0] for feature in FEATURES]

    def decide(observation: Any) -> Any:
        action = np.float32(0.0)
        for (row, name), weight in made["weights"].items():
            action += observation[row, names.index(name)] * np.float32(weight)
        return action + np.float32(made.get("bias", 0.0))

    class Twin:
        """In the model's place: the same name, so that the digests can be the same."""

        def __call__(self) -> Any:
            return agents.controller(decide, terms, 400_000)

    done = run(scenario(f"onnx:{path}"))
    rates = done.table("decisions").to_numpy("target_bps")
    assert len(set(rates.tolist())) > 3, "an agent whose rate never changes tests nothing"
    twin = Twin()
    monkeypatch.setattr(registry.Choice, "factory", lambda _: twin)
    assert run(scenario(f"onnx:{path}")).digest == done.digest


WRONG_AGENTS: list[tuple[dict[str, Any], str]] = [
    (
        {"props": {"tidegate.terms": '{"history": 4}'}},
        r"found the input seen tensor\(float\) \[1, 5, 11\]; expected \[1, 4, 11\] or \[1, 44\]",
    ),
    ({"width": 2}, r"action has the shape \[1, 2\] of float32; expected one number, the action"),
    ({"bias": float("nan")}, r"the action is nan; expected a number from -1 to 1"),
    ({"props": {"tidegate.terms": "{"}}, r"metadata tidegate\.terms: is not JSON: "),
    ({"props": {"tidegate.terms": "3"}}, r"metadata tidegate\.terms: found 3; expected an object as Terms"),
    ({"props": {"tidegate.terms": '{"pace": 1}'}}, r"metadata tidegate\.terms: terms: found pace; expected "),
    ({"props": {"tidegate.terms": '{"history": 0}'}}, r"metadata tidegate\.terms: history: found 0"),
    ({"props": {"tidegate.terms": '{"rate": 5}'}}, r"metadata tidegate\.terms: "),
    ({"props": {"tidegate.terms": '{"interval": []}'}}, r"metadata tidegate\.terms: "),
    ({"props": {"tidegate.terms": '{"factor": "x", "action": "change"}'}}, r"metadata tidegate\.terms: "),
    ({"props": {"tidegate.observation": '["dely"]'}}, r'"dely": there is no such number; did you mean delay\?'),
    ({"props": {"tidegate.observation": "[]"}}, r"metadata tidegate\.observation: found \[\]; expected a list of names"),
    ({"props": {"tidegate.start": "-1"}}, r"metadata tidegate\.start: found -1; expected whole bit/s above 0"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "message"), WRONG_AGENTS)
def test_what_does_not_fit_its_terms_is_told_in_one_line(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    agent(tmp_path / "agent.onnx", {}, **changes)
    with pytest.raises(InputError, match=rf"^agent\.onnx: .*{message}") as error:
        registry.choose("onnx:agent.onnx", tmp_path)
    assert "\n" not in str(error.value)


# --- over a socket ---------------------------------------------------------------------------------


def test_a_model_at_the_sender_decides_over_a_socket(tmp_path: Path) -> None:
    """Its action is always 0.5: three quarters of the way, by the logarithm, from 100 kbit/s to 1.6 Mbit/s."""
    file = agent(tmp_path / "policy.onnx", {}, bias=0.5, terms=Terms(rate=("100kbps", "1.6Mbps")))
    key = bytes(range(32))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    done: list[Run] = []
    receiver = threading.Thread(target=lambda: done.append(sockets.receive(address, key)), daemon=True)
    receiver.start()
    changes = {"duration": "2s", "flows.call.media.controller": f"onnx:{file}"}
    sent = sockets.send(sockets.scenario_of(None, changes), address, key)
    receiver.join(20)
    assert done
    assert done[0].digest == sent.digest
    assert np.median(sent.table("decisions").to_numpy("target_bps")) == pytest.approx(800e3, rel=0.01)


def test_a_model_at_the_receiver_is_refused_before_anything_is_sent(make: Callable[..., Path]) -> None:
    changes = {"flows.call.media.controller": f"onnx:{make({}, 500_000.0)}"}
    with pytest.raises(
        InputError, match="expected a controller of the registry, or one without a receiver half in Python"
    ):
        sockets.send(sockets.scenario_of(None, changes), "127.0.0.1:9", bytes(range(32)))
