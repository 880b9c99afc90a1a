"""What is on the stage: the policy and the HPA manifest, as an operator would write them."""

from typing import Final

from adapter.fleet.units import Seconds, Timestamp
from adapter.simulator.hpa import Behavior, HpaSpec, RatePolicy, Rules, Unit
from adapter.simulator.presets import PRESETS

NAMESPACE: Final = "inference"
NAME: Final = "llama-70b"
MODEL: Final = "meta-llama/Llama-3.3-70B-Instruct"

DAYBREAK: Final = Timestamp(1_796_108_400.0)
"""2026-12-01 07:00 UTC: every play begins on the same morning, so its decisions compare."""

PRESET: Final = next(known for known in PRESETS if known.name == "llama-3.1-70b-4xh100")
FIRST_REPLICAS: Final = 2
LOAD_TIME: Final = Seconds(60.0)
"""Weights on a local disk and a compile cache that is kept."""

POLICY: Final = f"""\
apiVersion: leadtime.dev/v1alpha1
kind: ScalingPolicy
metadata: {{name: {NAME}, namespace: {NAMESPACE}}}
spec:
  target: {{kind: Deployment, name: {NAME}}}
  engine: vllm
  model: {MODEL}
  source:
    pods: {{port: 8000, interval: 5s}}
  replicas: {{min: 2, max: 16}}
  signals:
    queue: {{targetInFlight: 64}}
  scaleDown: {{onlyIdle: false}}
  loadTime: {{default: 90s}}
  standby: {{floor: 1}}
"""
"""Everything else is a default: up at once, down after one measured load time (2 min at least).
Pods drain for two minutes when they are stopped, so none needs to be idle to go."""

_DIRECT: Final = Rules(Seconds(0.0), (RatePolicy(Unit.PERCENT, 1000),), tolerance=0.0)

HPA: Final = HpaSpec(min_replicas=2, max_replicas=16, behavior=Behavior(up=_DIRECT, down=_DIRECT))
"""AverageValue "1", both windows 0 and tolerance "0": the only delay is the policy's own."""
