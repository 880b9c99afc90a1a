"""The ScalingPolicy document as people write it."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, model_validator

from adapter.fleet.units import Seconds
from adapter.scaling.duration import Duration, default_duration
from adapter.scaling.section import Section
from adapter.scaling.spec import ScalingSpec

Name = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")]
"""A DNS label: it is also a label value in selectors and part of file names."""


class Metadata(Section):
    """``metadata:``."""

    name: Name
    """The policy's name; the HPA selects it with ``policy: NAME``."""

    namespace: Name = "default"
    """The namespace of the scale target, and of the HPA that asks."""

    labels: dict[str, str] = Field(default_factory=dict)
    """Kubernetes labels; carried, not read."""

    annotations: dict[str, str] = Field(default_factory=dict)
    """Kubernetes annotations; carried, not read."""


class Target(Section):
    """``target:``, the object whose ``/scale`` is driven."""

    api_version: str = "apps/v1"
    """For example ``apps/v1``, ``leaderworkerset.x-k8s.io/v1``."""

    kind: str = Field(min_length=1)
    """Any kind with ``/scale``: Deployment, StatefulSet, LeaderWorkerSet, …"""

    name: Name
    """Its name, in the policy's namespace."""


class EngineName(StrEnum):
    """Which vocabulary the target's metrics are read with."""

    VLLM = "vllm"
    SGLANG = "sglang"
    TRITON = "triton"
    AUTO = "auto"
    """Told from the series' names, at each scrape."""


class PodsSource(Section):
    """``source.pods:``, scraping the target's pods directly."""

    port: int | str = 8000
    """Number or name of the container port that serves metrics."""

    path: str = Field(default="/metrics", pattern=r"^/")
    """Path of the metrics endpoint."""

    interval: Duration = default_duration("5s")
    """How often every pod is scraped, and how often a decision is made."""


class PrometheusSource(Section):
    """``source.prometheus:``, reading from a Prometheus or anything that speaks its API."""

    url: str = Field(pattern=r"^https?://")
    """Base address."""

    labels: dict[str, str] = Field(default_factory=dict)
    """Labels that every series of the target carries."""

    interval: Duration = default_duration("15s")
    """How often it is asked, and how often a decision is made."""


class StaticSource(Section):
    """``source.static:``, fixed addresses or recorded dumps."""

    urls: tuple[Annotated[str, Field(pattern=r"^https?://[^\s]+$")], ...] = ()
    """One metrics address per replica."""

    directory: str | None = None
    """A directory of recorded dumps: each ``*.prom`` file is one replica."""

    interval: Duration = default_duration("5s")
    """How often every address is scraped, and how often a decision is made."""

    timeout: Duration | None = None
    """How long one scrape may take; default: the interval, 10 s at the most."""

    @model_validator(mode="after")
    def _one_of(self) -> "StaticSource":
        if bool(self.urls) == (self.directory is not None):
            raise ValueError("give either urls (at least one) or directory, not both")
        if len(set(self.urls)) != len(self.urls):
            raise ValueError("an address stands twice in urls: each one is a replica")
        return self


class Source(Section):
    """``source:``, exactly one of its keys."""

    pods: PodsSource | None = None
    prometheus: PrometheusSource | None = None
    static: StaticSource | None = None

    @model_validator(mode="after")
    def _one_of(self) -> "Source":
        given = [name for name in ("pods", "prometheus", "static") if getattr(self, name)]
        if len(given) != 1:
            said = " and ".join(given) or "none"
            raise ValueError(f"give exactly one of pods, prometheus, static; found {said}")
        return self

    @property
    def interval(self) -> Seconds:
        """Return how often a decision is made."""
        return next(s.interval for s in (self.pods, self.prometheus, self.static) if s)


class PolicySpec(ScalingSpec):
    """``spec:``."""

    target: Target | None = None
    """What is scaled; may be left out only with a static source."""

    engine: EngineName = EngineName.AUTO
    """Which engine serves the target."""

    model: str | None = Field(default=None, min_length=1)
    """The model as the engine names it; needed when an endpoint serves several."""

    source: Source
    """Where the metrics come from."""


class Policy(Section):
    """One YAML document of kind ScalingPolicy."""

    api_version: Literal["leadtime.dev/v1alpha1"]
    kind: Literal["ScalingPolicy"]
    metadata: Metadata
    spec: PolicySpec
