"""Manifests made from a policy: what lint says of the two together, and what a cluster reads."""

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from adapter.policy.document import Policy
from adapter.policy.lint import lint_around
from adapter.policy.load import read_policies
from adapter.policy.manifests import (
    Registration,
    Scaler,
    api_service,
    autoscalers,
    scaled_objects,
)
from adapter.policy.objects import Landscape, read_objects

POLICY = """\
apiVersion: leadtime.dev/v1alpha1
kind: ScalingPolicy
metadata: {name: NAME, namespace: SPACE}
spec:
  target: {kind: Deployment, name: llama-70b}
  source: {SOURCE}
  replicas: {min: LEAST, max: MOST}
"""
PODS = "pods: {port: 8000}"
PROMETHEUS = "prometheus: {url: http://prometheus.monitoring:9090}"


def text_of(
    name: str = "chat",
    namespace: str = "inference",
    *,
    source: str = PODS,
    least: int = 2,
    most: int = 24,
) -> str:
    wanted = {"NAME": json.dumps(name), "SPACE": json.dumps(namespace), "SOURCE": source}
    text = POLICY.replace("LEAST", str(least)).replace("MOST", str(most))
    for word, value in wanted.items():
        text = text.replace(word, value)
    return text


def policy_of(text: str) -> Policy:
    placed, findings = read_policies(text, "policy.yaml")
    assert not findings
    return placed[0].policy


def findings_of(text: str, manifest: str) -> list[str]:
    """Return what lint says of the objects around the policy, every severity."""
    placed, findings = read_policies(text, "policy.yaml")
    assert not findings
    found = lint_around(Landscape(placed, read_objects(manifest, "made.yaml")))
    return [f"{finding.code.id} {finding.message}" for finding in found]


def documents(manifest: str) -> list[Any]:
    return list(yaml.safe_load_all(manifest))


@pytest.mark.parametrize(
    "source", [PODS, PROMETHEUS, "pods: {interval: 10s}", "pods: {interval: 11s}"]
)
@pytest.mark.parametrize("scaler", [Scaler(), Scaler(secret=None), Scaler(mutual=True)])
def test_lint_finds_nothing_in_a_scaled_object(source: str, scaler: Scaler):
    text = text_of(source=source)

    assert findings_of(text, scaled_objects([policy_of(text)], scaler)) == []


@pytest.mark.parametrize("source", [PODS, PROMETHEUS])
def test_lint_finds_nothing_in_an_hpa_and_its_api_service(source: str):
    text = text_of(source=source)
    manifest = autoscalers([policy_of(text)]) + "---\n" + api_service(Registration())

    assert findings_of(text, manifest) == []


@given(
    name=st.from_regex(r"[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True),
    namespace=st.sampled_from(["default", "on", "null", "1e3", "n", "123", "a-b"]),
    least=st.integers(1, 50),
    above=st.integers(0, 50),
)
def test_any_name_and_bounds_are_read_back_and_pass_lint(name, namespace, least, above):
    """`on`, `null` or `1e3` without quotes would be something else than a name."""
    text = text_of(name, namespace, least=least, most=least + above)
    policy = policy_of(text)

    for manifest, low, high in (
        (scaled_objects([policy], Scaler(secret=None)), "minReplicaCount", "maxReplicaCount"),
        (autoscalers([policy]), "minReplicas", "maxReplicas"),
    ):
        (made,) = documents(manifest)
        assert (made["metadata"]["name"], made["metadata"]["namespace"]) == (name, namespace)
        assert (made["spec"][low], made["spec"][high]) == (least, least + above)
        assert findings_of(text, manifest) == []


def test_a_scaled_object_asks_for_the_count_as_it_is():
    _, made = documents(scaled_objects([policy_of(text_of())], Scaler()))
    spec = made["spec"]

    assert spec["scaleTargetRef"] == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": "llama-70b",
    }
    assert spec["pollingInterval"] == 5
    assert spec["fallback"] == {
        "failureThreshold": 3,
        "replicas": 2,
        "behavior": "currentReplicasIfHigher",
    }
    assert not {"idleReplicaCount", "cooldownPeriod"} & set(spec)
    behavior = spec["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
    still = {"tolerance": "0", "stabilizationWindowSeconds": 0}
    assert behavior == {"scaleUp": still, "scaleDown": still}
    assert spec["triggers"] == [
        {
            "type": "external",
            "metricType": "AverageValue",
            "metadata": {
                "scalerAddress": "leadtime.leadtime.svc:9090",
                "enableTLS": "true",
                "policy": "chat",
            },
            "authenticationRef": {"name": "leadtime-keda-tls"},
        }
    ]


def test_every_value_of_a_triggers_metadata_is_text():
    """KEDA's metadata is a map of strings; a policy named 123 is one too."""
    policy = policy_of(text_of("123"))
    made = documents(scaled_objects([policy], Scaler()))[-1]

    assert all(isinstance(value, str) for value in made["spec"]["triggers"][0]["metadata"].values())


def test_a_slow_source_is_pushed():
    text = text_of(source=PROMETHEUS)
    manifest = scaled_objects([policy_of(text)], Scaler())

    assert documents(manifest)[-1]["spec"]["triggers"][0]["type"] == "external-push"
    assert "# Pushed: the policy looks every 15 s" in manifest


@pytest.mark.parametrize(
    ("mutual", "parameters"),
    [(False, ["caCert"]), (True, ["caCert", "tlsClientCert", "tlsClientKey"])],
)
def test_the_authentication_stands_once_in_a_namespace(mutual: bool, parameters):  # noqa: FBT001 - a parameter
    policies = [
        policy_of(text_of(name, namespace))
        for name, namespace in (("a", "one"), ("b", "one"), ("c", "two"))
    ]
    made = documents(scaled_objects(policies, Scaler(mutual=mutual)))

    assert [(one["kind"], one["metadata"]["namespace"]) for one in made] == [
        ("TriggerAuthentication", "one"),
        ("TriggerAuthentication", "two"),
        ("ScaledObject", "one"),
        ("ScaledObject", "one"),
        ("ScaledObject", "two"),
    ]
    assert [ref["parameter"] for ref in made[0]["spec"]["secretTargetRef"]] == parameters
    assert {ref["name"] for ref in made[0]["spec"]["secretTargetRef"]} == {"leadtime-keda-tls"}


def test_in_plain_text_there_is_nothing_to_authenticate_with():
    (made,) = documents(scaled_objects([policy_of(text_of())], Scaler("127.0.0.1:9090", None)))

    assert "authenticationRef" not in made["spec"]["triggers"][0]
    assert made["spec"]["triggers"][0]["metadata"] == {
        "scalerAddress": "127.0.0.1:9090",
        "policy": "chat",
    }


def test_an_hpa_selects_one_policy_and_its_target_is_one():
    (made,) = documents(autoscalers([policy_of(text_of())]))

    assert made["spec"]["metrics"] == [
        {
            "type": "External",
            "external": {
                "metric": {
                    "name": "leadtime-desired-replicas",
                    "selector": {"matchLabels": {"policy": "chat"}},
                },
                "target": {"type": "AverageValue", "averageValue": "1"},
            },
        }
    ]


def test_an_api_service_trusts_a_given_ca_or_what_is_injected():
    (given_one,) = documents(api_service(Registration("adapter", "scaling", ca_bundle="Q0E=")))
    (injected,) = documents(api_service(Registration()))

    assert given_one["spec"]["caBundle"] == "Q0E="
    assert given_one["spec"]["service"] == {"name": "adapter", "namespace": "scaling", "port": 443}
    assert "annotations" not in given_one["metadata"]
    assert injected["metadata"]["annotations"] == {
        "cert-manager.io/inject-ca-from": "leadtime/leadtime-serving"
    }
    assert "caBundle" not in injected["spec"]
