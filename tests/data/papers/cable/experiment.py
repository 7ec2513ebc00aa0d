"""UDP at constant rates over one cable, against closed forms."""

from collections.abc import Mapping
from typing import Any

from tidegate import Flow, Link, Scenario, Udp
from tidegate.paper import Drawing, Measure, Outcome, Plan, Sheet, Table, Then
from tidegate.paper import Experiment as Base
from tidegate.runs import Run, RunJob

RATES = (1, 2, 4, 8)  # Mb/s


def scenario(rate: int, duration: str, pattern: str = "cbr") -> Scenario:
    return Scenario(
        name="cable",
        duration=duration,
        sending_jitter="off",
        record="summary",
        links=[Link(name="cable", capacity="2Mbps", delay="10ms", queue={"packets": 10})],
        flows=[Flow(name="udp", udp=Udp(rate=f"{rate}Mbps", packet_size="1000B", pattern=pattern))],
    )


def summary(run: Run) -> Mapping[str, Any]:
    return {**run.metrics(), "digest": run.digest}


class Experiment(Base):
    quick_seeds = 2
    full_seeds = 3

    def jobs(self, plan: Plan) -> dict[Any, Then[Run, Mapping[str, Any]]]:
        jobs = {
            (rate, seed): Then(RunJob(scenario(rate, "4s"), seed), summary) for rate in RATES for seed in plan.seeds
        }
        jobs |= {("poisson", seed): Then(RunJob(scenario(1, "4s", "poisson"), seed), summary) for seed in plan.seeds}
        if not plan.quick:
            jobs["long", 1] = Then(RunJob(scenario(1, "20s"), 1), summary)
        return jobs

    def outcome(self, plan: Plan, done: Mapping[Any, Mapping[str, Any]]) -> Outcome:
        def over(key: Any, metric: str, scale: float, unit: str) -> Measure:
            return Measure.of([done[key, seed][metric] * scale for seed in plan.seeds], unit, metric)

        measures = {}
        for rate in RATES:
            measures[f"received.{rate}"] = over(rate, "receive_rate_bps", 1e-3, "kbit/s")
            measures[f"loss.{rate}"] = over(rate, "loss_fraction", 100, "%")
            measures[f"delay.{rate}"] = over(rate, "one_way_delay_ms_p50", 1, "ms")
        measures["jittered.1"] = over("poisson", "one_way_delay_ms_mean", 1, "ms")
        if not plan.quick:
            measures["received.long"] = Measure.exact(done["long", 1]["receive_rate_bps"] / 1e3, "kbit/s")
        return Outcome(
            measures,
            tables=[
                Table(
                    "delays",
                    "Delays | by rate",
                    ["rate", "delay (ms)"],
                    [[f"{rate} <Mb/s>", measures[f"delay.{rate}"]] for rate in RATES],
                )
            ],
            figures=[self.figure(measures)],
            notes=["Sending jitter is off."],
            digests={f"{key}, seed {seed}": result["digest"] for (key, seed), result in done.items()},
        )

    def figure(self, measures: Mapping[str, Measure]) -> Drawing:
        sheet = Sheet("Figure 1", "What is <lost>", x="Rate (Mb/s)", y="Loss (%)", ylim=(0, 100))
        sheet.bars("cable", {str(rate): measures[f"loss.{rate}"] for rate in RATES})
        return sheet.published("cable", ["1", "2", "4"], [0, 0, 50]).drawing("loss", "Loss of UDP.")
