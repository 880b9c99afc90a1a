"""The ScalingPolicy document as people write it."""

from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from adapter.fleet.units import Seconds
from adapter.policy.address import checked_address, without_credentials
from adapter.scaling.duration import PositiveDuration, default_duration
from adapter.scaling.section import ContradictionError, Section
from adapter.scaling.spec import ScalingSpec

API_VERSION: Final = "leadtime.dev/v1alpha1"
KIND: Final = "ScalingPolicy"

Name = Annotated[
    str,
    Field(
        pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$",
        title="a name of at most 63 lower-case letters, digits and -",
    ),
]
"""A DNS label: it is also a label value in selectors and part of file names."""

ObjectName = Annotated[
    str,
    Field(
        pattern=r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$",
        title="the name of a Kubernetes object",
    ),
]
"""Names of workloads may be longer than a label and hold dots."""

PortNumber = Annotated[int, Field(ge=1, le=65535)]
PortName = Annotated[
    str,
    Field(
        pattern=r"^([a-z0-9]-?)*[a-z](-?[a-z0-9])*$",
        max_length=15,
        title="the name of a port",
    ),
]
HttpUrl = Annotated[
    str,
    Field(pattern=r"^https?://[^\s/?#]+[^\s]*$", title="an address like http://host:8000/path"),
    AfterValidator(checked_address),
]
Text = Annotated[str, Field(min_length=1, title="text")]


class Metadata(Section):
    """``metadata:``, as of every Kubernetes object."""

    name: Name = Field(examples=["llama-70b"])
    """The policy's name; the HPA selects it with ``policy: NAME``."""

    namespace: Name = "default"
    """The namespace of the scale target, and of the HPA that asks."""

    labels: dict[str, str] = Field(default_factory=dict)
    """Kubernetes labels; carried, not read."""

    annotations: dict[str, str] = Field(default_factory=dict)
    """Kubernetes annotations; carried, not read."""


class Target(Section):
    """``target:``, the object whose ``/scale`` is driven."""

    api_version: Text = "apps/v1"
    """For example ``apps/v1``, ``leaderworkerset.x-k8s.io/v1``."""

    kind: Text = Field(examples=["Deployment", "StatefulSet", "LeaderWorkerSet"])
    """Any kind with ``/scale``: Deployment, StatefulSet, LeaderWorkerSet, …"""

    name: ObjectName = Field(examples=["llama-70b"])
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

    port: PortNumber | PortName = 8000
    """Number or name of the container port that serves metrics."""

    path: str = Field(default="/metrics", pattern=r"^/[^\s]*$", title="a path that begins with /")
    """Path of the metrics endpoint."""

    interval: PositiveDuration = default_duration("5s")
    """How often every pod is scraped, and how often a decision is made."""


class PrometheusSource(Section):
    """``source.prometheus:``, reading from a Prometheus or anything that speaks its API."""

    url: HttpUrl = Field(examples=["http://prometheus.monitoring:9090"])
    """Base address."""

    labels: dict[str, str] = Field(default_factory=dict)
    """Labels that every series of the target carries."""

    interval: PositiveDuration = default_duration("15s")
    """How often it is asked, and how often a decision is made; not below its scrape interval."""

    timeout: PositiveDuration | None = None
    """How long one answer may take; default: the interval, 10 s at the most."""

    replica_label: Text | None = None
    """The label whose values are the replicas; default: ``pod``, or else ``instance``."""

    tenant: Text | None = None
    """Sent as ``X-Scope-OrgID``: the tenant of a Mimir or Cortex."""

    token_file: Text | None = None
    """A file with a bearer token; read again at each question, so that it may rotate."""

    ca_file: Text | None = None
    """A file with the authorities that vouch for its certificate; default: the system's."""

    cert_file: Text | None = None
    """A file with the client's certificate, for mutual TLS; with ``keyFile``."""

    key_file: Text | None = None
    """A file with the key of ``certFile``."""

    @model_validator(mode="after")
    def _whole_pair(self) -> "PrometheusSource":
        if (self.cert_file is None) != (self.key_file is None):
            there, lacks = ("certFile", "keyFile") if self.cert_file else ("keyFile", "certFile")
            raise ContradictionError(f"{there} without {lacks}: give both, or neither", at=there)
        return self


class StaticSource(Section):
    """``source.static:``, fixed addresses or recorded dumps; either ``urls`` or ``directory``."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {"required": ["urls"], "properties": {"urls": {"minItems": 1}}},
                {"required": ["directory"], "properties": {"directory": {"type": "string"}}},
            ]
        }
    )

    urls: tuple[HttpUrl, ...] = Field(default=(), json_schema_extra={"uniqueItems": True})
    """One metrics address per replica."""

    directory: Text | None = None
    """A directory of recorded dumps: each ``*.prom`` file is one replica."""

    interval: PositiveDuration = default_duration("5s")
    """How often every address is scraped, and how often a decision is made."""

    timeout: PositiveDuration | None = None
    """How long one scrape may take; default: the interval, 10 s at the most."""

    @model_validator(mode="after")
    def _one_of(self) -> "StaticSource":
        if bool(self.urls) == (self.directory is not None):
            raise ContradictionError(
                "give either urls (at least one) or directory, not both", at="directory"
            )
        if len(set(map(without_credentials, self.urls))) != len(self.urls):
            raise ContradictionError(
                "an address stands twice in urls: each one is a replica", at="urls"
            )
        return self


class Source(Section):
    """``source:``, exactly one of its keys."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {"required": [kind], "properties": {kind: {"type": "object"}}}
                for kind in ("pods", "prometheus", "static")
            ]
        }
    )

    pods: PodsSource | None = None
    """Scrape the target's pods directly."""

    prometheus: PrometheusSource | None = None
    """Ask a Prometheus, or anything that speaks its API."""

    static: StaticSource | None = None
    """Scrape fixed addresses, or read recorded dumps."""

    @model_validator(mode="after")
    def _one_of(self) -> "Source":
        given = [name for name in ("pods", "prometheus", "static") if getattr(self, name)]
        if len(given) != 1:
            said = " and ".join(given) or "none"
            raise ContradictionError(
                f"give exactly one of pods, prometheus, static; found {said}",
                at=given[-1] if given else "",
            )
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

    model: Text | None = Field(default=None, examples=["meta-llama/Llama-3.3-70B-Instruct"])
    """The model as the engine names it; needed when an endpoint serves several."""

    source: Source = Field(examples=[{"pods": {"port": 8000}}])
    """Where the metrics come from."""


class Policy(Section):
    """One YAML document of kind ScalingPolicy."""

    api_version: Literal["leadtime.dev/v1alpha1"]
    """Group and version of the document."""

    kind: Literal["ScalingPolicy"]
    """What the document is."""

    metadata: Metadata = Field(examples=[{"name": "llama-70b", "namespace": "inference"}])
    """Name and namespace."""

    spec: PolicySpec = Field(
        examples=[{"replicas": {"min": 2, "max": 8}, "source": {"pods": {"port": 8000}}}]
    )
    """What is scaled, by which signals, within which bounds."""
