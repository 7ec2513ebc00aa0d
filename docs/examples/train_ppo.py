"""Trains a policy with PPO of Stable-Baselines3 on windows of recorded networks, and says how it does on others.

    pip install "tidegate[gym]" stable-baselines3
    python docs/examples/train_ppo.py FOLDER --minutes 10

FOLDER holds recordings of networks, in any format that `tidegate trace` reads. The windows of every fourth
file are held out. The policy goes to `ppo_policy.npz` beside this file, of which `ppo_policy.py` makes a
controller. What is printed are mean rewards on the held-out windows, each with the same world's seed: of the
policy, of the constant rate that did best on the training windows, and of gcc.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

from tidegate.gym import CallEnv, rewards_of, windows_of
from tidegate.results import stats

HERE = Path(__file__).resolve().parent
RATE = ("100kbps", "8Mbps")
CALL = {"links.bottleneck.delay": "25ms", "flows.call.media.video": {"max": "8Mbps"}}
CONSTANTS = ["150kbps", "250kbps", "400kbps", "600kbps", "900kbps", "1.3Mbps", "2Mbps", "3Mbps", "4.5Mbps", "6.5Mbps"]


def windows(folder: str, count: int):
    """Windows to train on, and windows of other files."""
    found = windows_of(folder, count=count, length="30s", between=("400kbps", "8Mbps"), changes=CALL)
    files = sorted({one.links[0].capacity.trace for one in found})
    held = set(files[3::4])
    return [[one for one in found if (one.links[0].capacity.trace in held) is wanted] for wanted in (False, True)]


def train(scenarios, minutes: float, settings: dict, out: Path) -> None:
    """Trains for so long, and writes the policy."""
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.env_util import make_vec_env

    class Until(BaseCallback):
        end = time.monotonic() + 60 * minutes

        def _on_step(self) -> bool:
            return time.monotonic() < self.end

        def _on_rollout_end(self) -> None:
            paid = self.model.rollout_buffer.rewards.mean()
            left = max(self.end - time.monotonic(), 0)
            print(f"{self.num_timesteps:9} steps, mean reward {paid:+.3f}, {left:4.0f} s left", flush=True)

    torch.set_num_threads(1)
    envs = make_vec_env(lambda: CallEnv(scenarios, **settings), n_envs=16, seed=1)
    model = PPO(
        "MlpPolicy",
        envs,
        policy_kwargs={"net_arch": [32, 32], "log_std_init": -1.0},
        n_steps=512,
        batch_size=1024,
        n_epochs=6,
        learning_rate=lambda left: 1e-3 * max(left, 0.1),
        gamma=0.95,
        gae_lambda=0.9,
        ent_coef=0.0,
        seed=1,
        device="cpu",
    )
    model.learn(10_000_000, callback=Until())
    network = model.policy.mlp_extractor.policy_net
    layers = [network[0], network[2], model.policy.action_net]
    arrays = {f"weight{at}": layer.weight.detach().numpy() for at, layer in enumerate(layers)}
    arrays |= {f"bias{at}": layer.bias.detach().numpy() for at, layer in enumerate(layers)}
    np.savez_compressed(out, terms=json.dumps(CallEnv(scenarios, **settings).terms.to_dict()), **arrays)


def to_onnx(policy: Path, out: Path) -> None:
    """Writes a policy as a model that `onnx:FILE` takes."""
    from onnx import TensorProto, checker, helper, numpy_helper, save

    from tidegate.control.agent import Terms
    from tidegate.control.learned import metadata

    with np.load(policy) as saved:
        terms = Terms.from_dict(json.loads(str(saved["terms"])))
        parts = [(saved[f"weight{at}"].T, saved[f"bias{at}"]) for at in range(3)]
    nodes, tensors, last = [], [], "seen"
    for at, part in enumerate(parts):
        tensors += [numpy_helper.from_array(one.copy(), f"{name}{at}") for name, one in zip("wb", part, strict=True)]
        nodes.append(helper.make_node("Gemm", [last, f"w{at}", f"b{at}"], [f"sum{at}"]))
        nodes.append(helper.make_node("Tanh", [f"sum{at}"], [last := f"layer{at}"]))
    # the last layer is cut at -1 and 1 by what takes it
    nodes[-1] = helper.make_node("Identity", ["sum2"], ["action"])
    seen = helper.make_tensor_value_info("seen", TensorProto.FLOAT, [1, len(parts[0][0])])
    action = helper.make_tensor_value_info("action", TensorProto.FLOAT, [1, 1])
    graph = helper.make_graph(nodes, "policy", [seen], [action], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    helper.set_model_props(model, metadata(terms))
    checker.check_model(model)
    save(model, str(out))


def score(controller: str, scenarios) -> np.ndarray:
    """The mean reward of a controller in each scenario."""
    return np.array([np.mean(rewards_of(controller, one, seed=1, rate=RATE)) for one in scenarios])


def shown(values: np.ndarray) -> str:
    """A mean with its 95 % interval."""
    found = stats.Interval.of(values)
    return f"{found.mean:+.3f} ± {found.half or 0:.3f}"


def main() -> None:
    """Trains, and compares."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", help="recordings of networks")
    parser.add_argument("--minutes", type=float, default=10.0, help="how long to train; 0: compare what is there")
    parser.add_argument("--windows", type=int, default=160, help="how many windows of 30 s")
    parser.add_argument("--onnx", type=Path, help="also write the policy as a model for onnx:FILE (needs onnx)")
    given = parser.parse_args()
    training, held = windows(given.folder, given.windows)
    print(f"{len(training)} windows to train on, {len(held)} of other files", flush=True)
    if given.minutes:
        train(training, given.minutes, {"rate": RATE}, HERE / "ppo_policy.npz")
    if given.onnx:
        to_onnx(HERE / "ppo_policy.npz", given.onnx)
    constants = {rate: score(f"fixed:{rate}", training).mean() for rate in CONSTANTS}
    best = max(constants, key=lambda rate: constants[rate])
    found = {
        "policy": score(f"python:{HERE / 'ppo_policy.py'}:policy", held),
        f"constant {best}": score(f"fixed:{best}", held),
        "gcc": score("gcc", held),
    }
    for name, paid in found.items():
        less = found["policy"] - paid
        print(f"{name:18} mean reward {paid.mean():+.3f}", end="")
        print("" if name == "policy" else f"; the policy has {shown(less)} more, and more in {np.mean(less > 0):.0%}")


if __name__ == "__main__":
    main()
