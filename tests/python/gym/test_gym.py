"""The Gymnasium environment: runs of the engine in steps, their observations and their rewards."""

from __future__ import annotations

import importlib.util
import itertools
import math
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium", reason='needs Gymnasium: pip install "tidegate[gym]"')

import tidegate  # noqa: E402
import tidegate.gym  # noqa: E402
import tidegate.results.stats  # noqa: E402
from support import (  # noqa: E402
    ROOT,
    environment,
    shared,
    swarm_scenarios,
)
from tidegate import InputError, RunError, Scenario  # noqa: E402
from tidegate.gym import FEATURES, CallEnv, CallVectorEnv, cases_of, rewards_of, windows_of  # noqa: E402

HOME = {"duration": "10s", "links.uplink.capacity": "2.5Mbps", "flows.call.media.feedback": {"format": "twcc"}}


def home(**changes: Any) -> Scenario:
    return Scenario.load("home-broadband", {**HOME, **changes})


def load(file: Any) -> Any:
    """Imports an example as a module."""
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def names(observation: Any) -> dict[str, float]:
    """The newest interval of an observation, by name."""
    return dict(zip((feature.name for feature in FEATURES), observation[-1].tolist(), strict=True))


def drive(env: CallEnv, action: Any, **reset: Any) -> tuple[list[Any], list[float], list[dict[str, float]]]:
    """Runs a whole episode; `action` is a number, or a function of the step's number."""
    observation, _ = env.reset(**reset)
    observations, rewards, infos, over, step = [observation], [], [], False, 0
    while not over:
        value = action(step) if callable(action) else action
        observation, reward, terminated, truncated, info = env.step(np.array([value], np.float32))
        observations.append(observation)
        rewards.append(reward)
        infos.append(info)
        over, step = terminated or truncated, step + 1
    return observations, rewards, infos


@pytest.mark.parametrize("action", ["rate", "change"])
def test_gymnasiums_own_checks_pass(action: str) -> None:
    from gymnasium.utils.env_checker import check_env

    env = gymnasium.make("tidegate/Call-v0", scenario=home(), action=action)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_env(env.unwrapped, skip_render_check=True)
    assert [str(warning.message) for warning in caught] == []


@pytest.mark.parametrize("rate", ["300kbps", "1Mbps", "2.4Mbps"])
def test_a_constant_rate_is_the_run_with_fixed_of_that_rate(rate: str) -> None:
    env = CallEnv(home())
    action = float(np.float32(env.terms.to_action(rate)))
    drive(env, action, options={"seed": 5})
    stepped = env.finish()
    fixed = f"fixed:rate={env.terms.to_rate(action) / 1000}kbps"
    run = tidegate.run(home(**{"flows.call.media.controller": fixed}), seed=5)
    assert stepped.digest == run.digest
    metrics = {**run.metrics(), "controller": "agent"}
    assert stepped.metrics() == metrics
    assert metrics["packets_sent"] > 100


def test_equal_seeds_give_equal_episodes_bit_for_bit() -> None:
    env = CallEnv("lte-generated", rate=("100kbps", "2.5Mbps"))
    action = np.random.default_rng(1).uniform(-1, 1, 10_000)
    first, second, third = (drive(env, lambda step: action[step], seed=seed) for seed in (3, 3, 4))
    assert np.array_equal(first[0], second[0])
    assert first[1:] == second[1:]
    assert not np.array_equal(first[0], third[0])


def test_what_is_seen_is_what_feedback_tells() -> None:
    # 1 Mb/s on a link of 2.5: nothing waits, nothing is lost, and all that is sent is acknowledged
    env = CallEnv(home(**{"flows.call.media.video": {"source": "ideal"}}))
    _, _, infos = drive(env, env.terms.to_action("1Mbps"), options={"seed": 1})
    later = infos[20:]
    mean = {key: float(np.mean([info[key] for info in later])) for key in later[0]}
    assert mean["sent_bps"] == pytest.approx(1e6, rel=0.02)
    assert mean["acknowledged_bps"] == pytest.approx(1e6, rel=0.05)
    assert mean["loss"] == 0
    assert mean["true_loss"] == 0
    # 15 ms each way, and the wait of feedback at the receiver (at most 50 ms here)
    assert 30 <= mean["round_trip_ms"] <= 100
    assert mean["delay_ms"] < 25, "frames leave in groups of packets, no queue stands"
    assert mean["capacity_bps"] == 2.5e6
    assert 1e6 < mean["received_bps"] < 1.1e6, "headers of IP and UDP come on top"


def test_a_rate_above_the_link_is_seen_as_delay_and_loss() -> None:
    scenario = home(**{"links.uplink.capacity": "1Mbps"})
    env = CallEnv(scenario)
    observations, rewards, infos = drive(env, env.terms.to_action("2Mbps"), options={"seed": 1})
    last = infos[-1]
    # half is too much; the queue holds 200 ms
    assert last["true_loss"] == pytest.approx(0.5, abs=0.1)
    assert last["loss"] == pytest.approx(0.5, abs=0.15)
    assert last["delay_ms"] == pytest.approx(200, abs=40)
    assert last["queueing_ms"] == pytest.approx(200, abs=40)
    assert max(info["gradient"] for info in infos[:20]) > 0.3
    assert np.mean(rewards[20:]) < 0.3
    assert names(observations[-1])["delay"] == pytest.approx(last["delay_ms"] / (last["delay_ms"] + 100), rel=1e-5)


def test_history_is_a_shift_of_rows() -> None:
    env = CallEnv(home(), history=4)
    observations, _, _ = drive(env, lambda step: 0.5 if step % 3 else -0.5)
    assert not observations[0].any(), "nothing has happened"
    for before, after in itertools.pairwise(observations):
        assert np.array_equal(before[1:], after[:-1])


def test_changes_multiply_the_rate_within_its_bounds() -> None:
    env = CallEnv(home(), action="change", factor=2.0, rate=("100kbps", "2Mbps"))
    env.reset(seed=1)
    rates = [env.step([value])[4]["rate_bps"] for value in (1, 1, 1, 1, 0, -1, -1, -1, -1, -1, -1)]
    assert rates == pytest.approx([6e5, 1.2e6, 2e6, 2e6, 2e6, 1e6, 5e5, 2.5e5, 1.25e5, 1e5, 1e5], rel=1e-6)


def test_a_flow_that_begins_later_and_ends_earlier_has_just_its_steps() -> None:
    scenario = home(**{"flows.call.start": "2s", "flows.call.stop": "5.05s"})
    _, _, infos = drive(CallEnv(scenario), 0.0)
    assert [round(info["time_s"], 3) for info in infos] == pytest.approx([*np.arange(2.1, 5.01, 0.1), 5.05])
    assert infos[5]["sent_bps"] > 0


def test_a_sender_that_stops_by_itself_terminates_the_episode() -> None:
    scenario = home(**{"flows.call.media.packets": 50})
    env = CallEnv(scenario)
    env.reset(seed=1)
    ends: list[tuple[bool, bool]] = []
    while not ends or not any(ends[-1]):
        ends.append(env.step([0.0])[2:4])
    assert ends[-1] == (True, False)
    assert len(ends) < 50
    with pytest.raises(InputError, match=r"call reset\(\)"):
        env.step([0.0])


def test_the_other_calls_keep_their_controllers() -> None:
    scenario = Scenario.load("two-calls", {"duration": "25s"})
    env = CallEnv(scenario, flow=scenario.flows[1].name, rate=("100kbps", "2Mbps"))
    drive(env, 1.0)
    kinds = {flow["flow"]: flow["controller"] for flow in env.finish().summary["flows"]}
    assert kinds[scenario.flows[1].name] == "agent"
    assert kinds[scenario.flows[0].name] != "agent"


def test_a_function_of_what_a_step_came_to_can_be_the_reward() -> None:
    env = CallEnv(home(), reward=lambda info: info["received_bps"] / 1e6 - info["queueing_ms"])
    _, rewards, infos = drive(env, 0.3)
    assert rewards == [info["received_bps"] / 1e6 - info["queueing_ms"] for info in infos]


def test_the_default_reward_is_its_formula() -> None:
    env = CallEnv(home(**{"links.uplink.capacity": "1Mbps"}))
    _, rewards, infos = drive(env, lambda step: (step % 7) / 3 - 1)
    for reward, info in zip(rewards, infos, strict=True):
        used = min(info["received_bps"] / info["capacity_bps"], 1)
        late = math.log2(1 + (info["queueing_ms"] + info["sender_queue_ms"]) / 100) / 6
        assert reward == pytest.approx(used - late - info["true_loss"], abs=1e-9)


SHIPPED = ("home-broadband", "lte-generated", "drop-and-download", "lossy-wifi", "congested-uplink", "satellite")


def scores(scenario: Scenario, *, of_the_moment: bool) -> dict[str, float]:
    """Mean rewards of senders at ten times the capacity, at almost nothing, and at 0.9 times the capacity."""
    env = CallEnv(scenario, rate=("10kbps", "200Mbps"))
    env.reset(options={"seed": 1})
    _, _, infos = drive(env, -1.0, options={"seed": 1})
    capacity = np.array([info["capacity_bps"] for info in infos])
    capacities = capacity if of_the_moment else np.full(len(infos), capacity.mean())
    shares = {"silent": -1.0, "greedy": 10.0, "steady": 0.9}
    result = {}
    for name, share in shares.items():
        _, rewards, _ = drive(
            env,
            lambda step, share=share: (
                -1.0 if share < 0 else env.terms.to_action(max(int(capacities[step] * share), 10_000))
            ),
            options={"seed": 1},
        )
        result[name] = float(np.mean(rewards))
    return result


def greedy_source(scenario: Scenario) -> Scenario:
    """The scenario with a source that fills any rate, so that only the action limits it."""
    flow = next(flow.name for flow in scenario.flows if flow.media is not None)
    # RTCP gets a share of the session bandwidth, which is by default the largest rate
    changes = {"video": {"source": "greedy", "max": "200Mbps"}, "max_rate": "200Mbps", "feedback.bandwidth": "2.5Mbps"}
    return scenario.with_changes({f"flows.{flow}.media.{key}": value for key, value in changes.items()})


@pytest.mark.parametrize("name", SHIPPED)
def test_neither_greed_nor_silence_pays(name: str) -> None:
    rewards = scores(greedy_source(Scenario.load(name)), of_the_moment=True)
    assert rewards["greedy"] < rewards["steady"], rewards
    assert rewards["silent"] < rewards["steady"], rewards


def test_a_policy_as_a_controller_decides_what_it_decided_in_the_environment(tmp_path: Any) -> None:
    weights = np.random.default_rng(2).normal(0, 1, (5, len(FEATURES)))

    def decide(observation: Any) -> float:
        return float(np.tanh((observation * weights).sum()))

    # its stop keeps a controller from deciding once more at the last instant, where the environment has no step
    flow = {"duration": "20s", "flows.call.stop": "20s"}
    env = CallEnv(home(**flow))
    observation, _ = env.reset(options={"seed": 9})
    over = False
    while not over:
        observation, _, _, over, _ = env.step([decide(observation)])
    stepped = env.finish()
    file = tmp_path / "mine.py"
    file.write_text(
        "import numpy as np\n"
        "from tidegate.control.agent import Terms, controller\n"
        f"weights = np.random.default_rng(2).normal(0, 1, (5, {len(FEATURES)}))\n"
        "def policy():\n"
        f"    return controller(lambda seen: np.tanh((seen * weights).sum()), Terms.from_dict({env.terms.to_dict()!r}))\n"
    )
    run = tidegate.run(home(**flow, **{"flows.call.media.controller": f"python:{file}:policy"}), seed=9)
    assert run.digest == stepped.digest
    assert len(set(run.table("decisions").to_numpy("target_bps"))) > 20, "it decided something"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("lambda seen: float('nan')", "the policy's action is not a number"),
        ("lambda seen: 1 / 0", "the policy raised ZeroDivisionError"),
        ("lambda seen: 'up'", "the policy raised ValueError"),
        ("lambda seen: [0.1, 0.2]", "the policy returned 2 numbers; expected one from -1 to 1"),
        (
            "lambda seen: seen.reshape(7, 11).sum()",
            r"cannot reshape .*; the observation has the shape \(5, 11\), from history = 5 in its terms .*broken.py, line 4",
        ),
    ],
)
def test_a_policy_that_fails_ends_its_run_with_the_reason(tmp_path: Any, body: str, reason: str) -> None:
    file = tmp_path / "broken.py"
    file.write_text(f"from tidegate.control.agent import controller\n\ndef policy():\n    return controller({body})\n")
    with pytest.raises(RunError, match=reason):
        tidegate.run(home(**{"flows.call.media.controller": f"python:{file}:policy"}))


def test_many_at_once_give_what_each_alone_gives() -> None:
    listed = [home(), home(**{"links.uplink.capacity": "1Mbps", "duration": "3s"})]
    together = CallVectorEnv(listed, num_envs=5, threads=3)
    alone = [CallEnv(listed) for _ in range(5)]
    observations, infos = together.reset(seed=11)
    states = [env.reset(seed=11 + number) for number, env in enumerate(alone)]
    assert infos["seed"].tolist() == [info["seed"] for _, info in states]
    over = [False] * 5
    actions = np.random.default_rng(5).uniform(-1, 1, (60, 5, 1)).astype(np.float32)
    resets = 0
    for action in actions:
        observations, rewards, terminated, truncated, infos = together.step(action)
        for number, env in enumerate(alone):
            if over[number]:
                expected, reward, over[number] = env.reset()[0], 0.0, False
                resets += 1
                assert not infos["_time_s"][number]
            else:
                expected, reward, ended, cut, info = env.step(action[number])
                over[number] = ended or cut
                assert {key: infos[key][number] for key in info} == info
            assert np.array_equal(observations[number], expected)
            assert rewards[number] == reward
            assert (terminated[number] or truncated[number]) == over[number]
    assert resets > 0
    together.close()


def test_gymnasium_makes_many_by_the_same_name() -> None:
    envs = gymnasium.make_vec("tidegate/Call-v0", num_envs=2, vectorization_mode="vector_entry_point", scenario=home())
    observations, _ = envs.reset(seed=1)
    assert observations.shape == (2, 5, len(FEATURES))


@pytest.mark.parametrize(
    "name",
    [
        "lte-generated",
        "lossy-wifi",
        "cell-with-outages",
        "app-limited-pause",
        "rfc8867-5.6-long-tcp",
        "l4s-access",
        "starlink",
        "group-mixed",
    ],
)
def test_observations_are_inside_their_space(name: str) -> None:
    scenario = Scenario.load(name)
    if not any(flow.media for flow in scenario.flows):
        with pytest.raises(InputError, match="no media flow"):
            CallEnv(scenario)
        return
    env = CallEnv(scenario, rate=("10kbps", "50Mbps"), reward=lambda info: 0.0)
    rng = np.random.default_rng(0)
    observations, _, _ = drive(env, lambda step: rng.uniform(-1.5, 1.5), seed=1)
    assert all(env.observation_space.contains(observation) for observation in observations)


def test_scenarios_are_drawn_and_can_be_chosen() -> None:
    env = CallEnv(cases_of("smoke"), rate=("100kbps", "2Mbps"))
    drawn = {env.reset(seed=seed)[1]["scenario"] for seed in range(40)}
    assert drawn == {scenario.name for scenario in cases_of("smoke")}
    chosen = sorted(drawn)[1]
    assert env.reset(options={"scenario": chosen})[1]["scenario"] == chosen
    assert env.reset(options={"scenario": 2, "seed": 8})[1]["seed"] == 8


def test_windows_of_recordings_are_scenarios(tmp_path: Any) -> None:
    for number in range(2):
        rows = "\n".join(str(time) for time in range(0, 120_000, 4 + number))
        (tmp_path / f"trace{number}.up").write_text(rows + "\n")
    windows = windows_of(tmp_path, count=3, length="10s", changes={"flows.call.media.video": {"max": "8Mbps"}})
    assert len(windows) == 3
    _, _, infos = drive(CallEnv(windows), -1.0, options={"scenario": 0})
    assert len(infos) == 100
    assert infos[50]["capacity_bps"] == pytest.approx(3e6 if "trace0" in windows[0].name else 2.4e6, rel=0.1)


def wrong(match: str, call: Any) -> None:
    with pytest.raises((InputError, RunError), match=match) as error:
        call()
    assert "\n" not in str(error.value)


def test_what_does_not_fit_is_said() -> None:
    env = CallEnv(home())
    wrong(r"no episode is under way; call reset\(\)", lambda: env.step([0.0]))
    env.reset()
    wrong(r"shape \(2,\); expected one number from -1 to 1, of shape \(1,\)", lambda: env.step([0.0, 1.0]))
    wrong("not a number", lambda: env.step([float("nan")]))
    wrong("found the action 'fast'", lambda: env.step("fast"))  # type: ignore[arg-type]
    wrong("options: scenario: found 7", lambda: env.reset(options={"scenario": 7}))
    wrong("options: found speed; available: scenario and seed", lambda: env.reset(options={"speed": 1}))
    wrong("seed: found 'x'", lambda: env.reset(options={"seed": "x"}))
    wrong("scenario: found 3; expected a scenario", lambda: CallEnv(["home-broadband", 3]))  # type: ignore[list-item]
    wrong("scenario: found none; expected one", lambda: CallEnv([]))
    wrong("scenario: found none", lambda: gymnasium.make("tidegate/Call-v0"))
    wrong("scenario: found none", lambda: CallVectorEnv(num_envs=2))
    wrong("home-broadband", lambda: CallEnv("home-brodband"))
    wrong("flow: found 'cal'.*did you mean call", lambda: CallEnv(home(), flow="cal"))
    wrong("history: found 0", lambda: CallEnv(home(), history=0))
    wrong("interval: found", lambda: CallEnv(home(), interval="0s"))
    wrong("action: found 'speed'", lambda: CallEnv(home(), action="speed"))  # type: ignore[arg-type]
    wrong("expected a minimum above zero and below the maximum", lambda: CallEnv(home(), rate=("2Mbps", "1Mbps")))
    wrong("expected a factor above 1", lambda: CallEnv(home(), action="change", factor=0.5))
    wrong("reward: found 1", lambda: CallEnv(home(), reward=1))  # type: ignore[arg-type]
    wrong("at least one interval", lambda: CallEnv(home(), interval="11s").reset())
    bare = home(**{"flows.call.media.feedback": {"format": "none"}})
    wrong('feedback.format: found "none"; expected', lambda: CallEnv(bare).reset())
    faster = home(**{"flows.call.media.max_rate": "1Mbps"})
    wrong("do not fit into one space .*; give the same for all", lambda: CallEnv([home(), faster]))
    wide = home(**{"links.uplink.capacity": "infinite"})
    wrong("known capacity.*; give reward=", lambda: CallEnv(wide).reset())
    envs = CallVectorEnv(home(), num_envs=2)
    wrong(r"call reset\(\)", lambda: envs.step(np.zeros((2, 1))))
    envs.reset()
    wrong(
        r"shape \(3, 1\); expected one number from -1 to 1 for each, of shape \(2, 1\)",
        lambda: envs.step(np.zeros((3, 1))),
    )
    wrong("not a number", lambda: envs.step(np.full((2, 1), np.nan)))
    wrong("num_envs: found 0", lambda: CallVectorEnv(home(), num_envs=0))


def test_after_the_end_only_a_reset_goes_on() -> None:
    env = CallEnv(home(duration="1s"))
    drive(env, 0.0)
    wrong(r"this episode is over; call reset\(\)", lambda: env.step([0.0]))
    env.finish()
    wrong(r"call reset\(\)", lambda: env.step([0.0]))
    wrong(r"call reset\(\)", env.finish)
    env.reset()
    env.close()
    wrong(r"call reset\(\)", lambda: env.step([0.0]))


def test_any_controller_can_be_paid_as_an_agent_is() -> None:
    env = CallEnv(home())
    action = float(np.float32(env.terms.to_action("1Mbps")))
    _, rewards, _ = drive(env, action, options={"seed": 5})
    fixed = f"fixed:rate={env.terms.to_rate(action) / 1000}kbps"
    assert rewards_of(fixed, home(), seed=5) == rewards
    paid = rewards_of("gcc", home(), seed=5, reward=lambda info: info["received_bps"])
    assert len(paid) == 100
    run = tidegate.run(home(), seed=5)
    assert np.mean(paid) == pytest.approx(run.metrics()["receive_rate_bps"], rel=1e-9)


@pytest.mark.slow
def test_neither_greed_nor_silence_pays_on_recorded_networks() -> None:
    changes = {"links.bottleneck.delay": "25ms"}
    for scenario in windows_of(
        shared() / "traces", count=40, length="30s", between=("300kbps", "8Mbps"), changes=changes
    ):
        rewards = scores(greedy_source(scenario), of_the_moment=True)
        assert max(rewards["greedy"], rewards["silent"]) < rewards["steady"], (scenario.name, rewards)


EXAMPLES = ROOT / "docs" / "examples"


def test_the_trained_example_decides_as_a_controller_what_it_decides_in_the_environment() -> None:
    module = load(EXAMPLES / "ppo_policy.py")
    flow = {"duration": "10s", "flows.call.stop": "10s"}
    settings, decide = module.learned()
    env = CallEnv(home(**flow), rate=settings.rate)
    observation, _ = env.reset(options={"seed": 2})
    over = False
    while not over:
        observation, _, _, over, _ = env.step([decide(observation)])
    name = f"python:{EXAMPLES / 'ppo_policy.py'}:policy"
    limits = {"min_rate": "100kbps", "max_rate": "8Mbps", "feedback.bandwidth": "2.5Mbps", "controller": name}
    run = tidegate.run(home(**flow, **{f"flows.call.media.{key}": value for key, value in limits.items()}), seed=2)
    assert run.digest == env.finish().digest


@pytest.mark.slow
def test_the_trained_example_beats_the_best_constant_rate_and_gcc_where_it_was_trained() -> None:
    example = load(EXAMPLES / "train_ppo.py")
    training, held = example.windows(str(shared() / "traces"), 160)
    constants = {rate: example.score(f"fixed:{rate}", training).mean() for rate in example.CONSTANTS}
    best = max(constants, key=lambda rate: constants[rate])
    policy = example.score(f"python:{EXAMPLES / 'ppo_policy.py'}:policy", held)
    for rival in (f"fixed:{best}", "gcc"):
        less = tidegate.results.stats.Interval.of(policy - example.score(rival, held))
        assert less.half is not None
        assert less.mean - less.half > 0, (rival, less)


def test_the_trained_example_is_the_same_controller_as_an_onnx_model(tmp_path: Any) -> None:
    pytest.importorskip("onnx", reason="needs onnx, which makes models: pip install onnx")
    onnxruntime = pytest.importorskip("onnxruntime", reason='needs ONNX Runtime: pip install "tidegate[onnx]"')
    load(EXAMPLES / "train_ppo.py").to_onnx(EXAMPLES / "ppo_policy.npz", tmp_path / "policy.onnx")
    terms, decide = load(EXAMPLES / "ppo_policy.py").learned()
    env = CallEnv(home(**{"links.uplink.capacity": "1Mbps"}), rate=terms.rate)
    rng = np.random.default_rng(3)
    observations, _, _ = drive(env, lambda step: rng.uniform(-1, 0.6), options={"seed": 2})
    session = onnxruntime.InferenceSession(str(tmp_path / "policy.onnx"))
    actions = [session.run(None, {"seen": observation.reshape(1, -1)})[0].item() for observation in observations]
    # the model computes in float32, and the environment clips its action
    assert np.clip(actions, -1, 1) == pytest.approx([decide(observation) for observation in observations], abs=1e-5)
    assert len(set(actions)) > 50, "it decides something"
    run = tidegate.run(home(**{"flows.call.media.controller": f"onnx:{tmp_path / 'policy.onnx'}"}), seed=2)
    assert run.metrics()["packets_sent"] > 1000


def test_random_scenarios_give_observations_inside_their_space(tmp_path: Any) -> None:
    swarm_scenarios.files(tmp_path)
    done = 0
    for seed in range(120):
        try:
            scenario = Scenario.from_dict(swarm_scenarios.scenario(seed), tmp_path)
            env = CallEnv(scenario, rate=("10kbps", "20Mbps"), reward=lambda info: 0.0)
            env.reset(seed=seed)
        except InputError as error:
            assert str(error)
            continue  # no call in it, or one that no agent can steer
        rng = np.random.default_rng(seed)
        observations, _, infos = drive(env, lambda step, rng=rng: rng.uniform(-1, 1), seed=seed)
        assert all(env.observation_space.contains(observation) for observation in observations), seed
        assert all(np.isfinite(value) for info in infos for key, value in info.items() if key != "capacity_bps"), seed
        assert env.finish().digest
        done += 1
    assert done > 40


def test_how_far_an_agent_may_go_changes_nothing_of_the_feedback() -> None:
    # RTCP is 5 % of the session bandwidth, which is by default the largest rate (RFC 3550 section 6.2)
    shares = []
    for max_rate in ("2.5Mbps", "200Mbps"):
        env = CallEnv(home(), rate=("30kbps", max_rate))
        drive(env, env.terms.to_action("1Mbps"), options={"seed": 1})
        shares.append(env.finish().metrics()["feedback_rate_bps"])
    assert shares[1] == pytest.approx(shares[0], rel=0.02)


def test_many_go_on_in_a_forked_process_whose_threads_are_not_there() -> None:
    code = """
import os, sys, warnings
import numpy as np
from tidegate.gym import CallVectorEnv
warnings.simplefilter("ignore")  # of Python 3.12 and later: there are threads, and that is the question
def told(envs): return [one.tolist() for one in envs.step(np.full((3, 1), 0.5))[:2]]
envs = CallVectorEnv("home-broadband", num_envs=3, threads=3)
envs.reset(seed=1); told(envs)
reading, writing = os.pipe()
child = os.fork()
seen = repr(told(envs)).encode()
if not child: os.write(writing, seen); os._exit(0)
os.close(writing); os.waitpid(child, 0)
with os.fdopen(reading, "rb") as pipe: sys.exit(pipe.read() != seen)
"""
    done = subprocess.run([sys.executable, "-c", code], env=environment(), timeout=60, check=False, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
