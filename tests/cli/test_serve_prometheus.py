"""``leadtime serve`` over a policy whose numbers come from a Prometheus."""

from pathlib import Path

import pytest

from adapter.sources.clock import SystemClock
from tests.build import T0
from tests.cli.adapters import adapter
from tests.sources.prometheus_answers import Store, an_engine, an_up
from tests.sources.servers import serving

POLICY = """\
apiVersion: leadtime.dev/v1alpha1
kind: ScalingPolicy
metadata: {{name: chat, namespace: inference}}
spec:
  engine: vllm
  target: {{kind: Deployment, name: chat}}
  source:
    prometheus: {{url: "{url}", labels: {{namespace: inference}}, interval: 1s}}
  replicas: {{min: 1, max: 24}}
  signals:
    queue: {{targetInFlight: 8, headroom: 1.0}}
    kvCache: null
    ttft: null
  staleAfter: 2s
"""


class Live(Store):
    """Two pods, each scraped half a second ago, with 16 requests running."""

    def __init__(self) -> None:
        super().__init__([], [])
        self.broken = False

    def reply(self, path: str, form: dict[str, list[str]]) -> object:
        ago = T0 - SystemClock().now() + 0.5
        self.ups = [an_up("a"), an_up("b")]
        self.engines = [one for pod in ("a", "b") for one in an_engine(pod, ago=ago, running="14")]
        if self.broken:
            return {"status": "error", "error": "query processing would load too many samples"}
        return super().reply(path, form)


@pytest.mark.slow
async def test_a_policy_over_a_prometheus_is_served_and_an_error_is_no_load(tmp_path: Path):
    """32 in flight for 8 a replica: 4. When it refuses, the count stands and is then withdrawn."""
    store, policies = Live(), tmp_path / "policies"
    policies.mkdir()
    async with serving(store.answer) as url:
        policy = POLICY.format(url=url.removesuffix("/metrics"))
        (policies / "chat.yaml").write_text(policy)
        async with adapter(policies) as running:
            await running.until_replicas(4)
            store.broken = True
            await running.until_replicas(None)
            _, answer = await running.metric()

    assert "too many samples" in answer["message"]
