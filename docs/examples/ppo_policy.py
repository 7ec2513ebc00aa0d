"""What `train_ppo.py` has learned, as a controller.

    tidegate compare gcc python:docs/examples/ppo_policy.py:policy --scenario drop-and-download

Two layers of 32 in numpy; no torch is needed. The file beside it holds the weights and the terms of the training.
"""

import json
from pathlib import Path

import numpy as np

from tidegate.control.agent import Terms, controller

HERE = Path(__file__).resolve().parent


def learned(file: str = "ppo_policy.npz"):
    """The terms of the training, and what decides; `file` is relative to this one."""
    with np.load(HERE / file) as saved:
        terms = Terms.from_dict(json.loads(str(saved["terms"])))
        layers = [(saved[f"weight{at}"], saved[f"bias{at}"]) for at in range(3)]

    def decide(seen):
        value = seen.reshape(-1).astype(np.float64)
        for weight, bias in layers[:-1]:
            value = np.tanh(weight @ value + bias)
        weight, bias = layers[-1]
        return float(np.clip(weight @ value + bias, -1.0, 1.0).item())

    return terms, decide


def policy(file: str = "ppo_policy.npz"):
    """A controller of a trained policy."""
    terms, decide = learned(file)
    return controller(decide, terms)
