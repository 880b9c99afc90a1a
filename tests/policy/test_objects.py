"""The objects around a policy: what is read of a manifest, and the borders of the rules."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.policy.lint import lint_around
from adapter.policy.load import read_policies
from adapter.policy.objects import (
    KubeObject,
    Landscape,
    containers,
    engine_of,
    flag,
    gpus_of,
    nearest,
    read_objects,
    share,
    whole,
    words_of,
)
from adapter.policy.scaler import Scaler, milli_of


def an_object(text: str) -> KubeObject:
    (one,) = read_objects(text, "m.yaml")
    return one


def judged(*texts: str, free_gpus: int | None = None) -> list[str]:
    """Return the codes that these documents, read together, deserve."""
    text = "\n---\n".join(texts)
    placed, _ = read_policies(text, "m.yaml")
    landscape = Landscape(placed, read_objects(text, "m.yaml"), free_gpus=free_gpus)
    return [finding.code for finding in lint_around(landscape)]


HPA = """
kind: HorizontalPodAutoscaler
metadata: {name: chat, namespace: %s}
spec:
  scaleTargetRef: {kind: Deployment, name: chat}
  minReplicas: 2
  maxReplicas: %s
  metrics:
  - type: External
    external:
      metric: {name: LEADTIME-desired-replicas, selector: {matchLabels: {policy: chat}}}
      target: {type: AverageValue, averageValue: 1}
  behavior: {scaleUp: {tolerance: "0"}, scaleDown: {tolerance: "0", stabilizationWindowSeconds: 0}}
"""

POLICY = """
apiVersion: leadtime.dev/v1alpha1
kind: ScalingPolicy
metadata: {name: chat, namespace: a}
spec:
  target: {kind: Deployment, name: chat}
  replicas: {min: 2, max: 24}
  source: {static: {urls: [http://127.0.0.1:8000/metrics]}}
"""


def test_objects_of_other_kinds_are_passed_over():
    assert read_objects("kind: Namespace\n---\nkind: Secret\n---\n- a\n---\n", "m.yaml") == ()


def test_objects_in_a_list_are_read_one_by_one():
    text = "kind: List\nitems: [{kind: Pod, metadata: {name: a}}, {kind: Secret}, 3]\n"

    assert [one.shown for one in read_objects(text, "m.yaml")] == ["Pod/a"]


@pytest.mark.parametrize("text", ["a: [\n", "\ufffd", "kind: Pod\n" * 2_000_000])
def test_what_cannot_be_read_is_left_to_the_reader_of_policies(text):
    found = read_objects(text, "m.yaml")

    assert found == () or {one.kind for one in found} == {"Pod"}


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["spec", "metadata", "name", "kind", "metrics", "behavior", "triggers",
                         "template", "containers", "external", "rules", "subjects"]),
        inner, max_size=4),
    max_leaves=12,
), st.sampled_from(["HorizontalPodAutoscaler", "ScaledObject", "Deployment", "APIService",
                    "PodDisruptionBudget", "ClusterRole", "ClusterRoleBinding", "ResourceQuota",
                    "LeaderWorkerSet", "CustomResourceDefinition"]))  # fmt: skip
def test_no_manifest_whatever_its_shape_breaks_a_rule(body, kind):
    document = {**body, "kind": kind} if isinstance(body, dict) else {"kind": kind, "spec": body}

    judged(POLICY, HPA % ("a", 24), json.dumps(document))


def test_a_value_of_the_wrong_shape_is_unknown():
    one = an_object("kind: Pod\nspec: {a: true, b: x, c: [1], d: 2}\n")

    assert [one.number("spec", key) for key in "abcde"] == [None, None, None, 2.0, None]
    assert (one.count("spec", "c"), one.count("spec", "d")) == (1, 0)
    assert one.mapping("spec", "d") == {}
    assert one.text("spec") == ""


def test_the_words_of_a_script_are_read_like_arguments():
    text = (
        "kind: Pod\nspec: {containers: [{command: [sh, -c, 'exec vllm serve m --x 3'], args: a}]}\n"
    )
    one = an_object(text)
    (path,) = containers(one)

    assert words_of(one, path) == ("sh", "-c", "exec", "vllm", "serve", "m", "--x", "3", "a")
    assert engine_of(one) == "vllm"


@pytest.mark.parametrize(
    ("words", "value"),
    [(["--x", "3"], "3"), (["--x=3"], "3"), (["--x"], ""), (["--y", "3"], None), (["--x="], "")],
)
def test_a_flag_is_read_in_both_spellings(words, value):
    assert flag(words, "x") == value


@pytest.mark.parametrize(
    ("value", "up", "found"),
    [(3, True, 3), ("25%", True, 3), ("25%", False, 2), ("4", True, 4), ("x", True, None),
     (True, True, None), (None, True, None)],
)  # fmt: skip
def test_a_share_is_rounded_as_kubernetes_rounds_it(value, up, found):
    assert share(value, 10, up=up) == found


@pytest.mark.parametrize(
    ("text", "milli"), [("1", 1000), ("1000m", 1000), ("0.5", 500), ("1k", 1_000_000), ("x", None)]
)
def test_a_quantity_is_read_in_milli(text, milli):
    assert milli_of(text) == milli


def test_a_near_name_is_offered_and_a_far_one_is_not():
    assert nearest("chatt", ["chat", "x"]) == "; did you mean chat?"
    assert nearest("chatt", ["x"]) == ""


def test_the_gpus_of_a_group_are_those_of_all_its_pods():
    text = """
kind: LeaderWorkerSet
spec:
  leaderWorkerTemplate:
    size: %s
    workerTemplate: {spec: {containers: [{resources: {limits: {nvidia.com/gpu: 8}}}]}}
"""
    assert gpus_of(an_object(text % "3")) == 24
    assert gpus_of(an_object(text % "'{{ size }}'")) == 8
    assert gpus_of(an_object("kind: Deployment\n")) == 0


def test_bounds_that_a_template_has_yet_to_fill_in_are_unknown():
    scaler = Scaler.of(an_object(HPA % ("a", "'{{ max }}'")))

    assert scaler.most is None
    assert judged(HPA % ("a", "'{{ max }}'")) == []


def test_a_scaled_object_without_a_maximum_has_that_of_keda():
    assert Scaler.of(an_object("kind: ScaledObject\nspec: {}\n")).most == 100


def test_an_hpa_in_another_namespace_is_another_policys():
    """The policy of namespace a may ask for 24; the HPA of b has a policy of its own."""
    assert judged(POLICY, HPA % ("a", 12)) == ["LT206"]
    assert judged(POLICY, HPA % ("b", 12)) == ["LT210"]


def test_two_policies_for_one_target_are_no_policy_to_judge_by():
    other = POLICY.replace("{name: chat,", "{name: chat2,")

    assert judged(POLICY, other, HPA % ("a", 12)) == []


def test_a_selector_that_two_policies_carry_is_added_up():
    labelled = POLICY.replace("namespace: a}", "namespace: a, labels: {team: x}}")
    other = labelled.replace("{name: chat,", "{name: chat2,")
    hpa = (HPA % ("a", 24)).replace("{policy: chat}", "{team: x}")

    assert judged(labelled, other, hpa) == ["LT210"]
    assert judged(labelled, hpa) == []


def test_a_selector_by_label_cannot_be_judged_without_the_policies():
    assert judged((HPA % ("a", 24)).replace("{policy: chat}", "{team: x}")) == []


def test_a_policy_that_is_nowhere_can_only_be_added():
    policy = POLICY.replace("namespace: a", "namespace: c")

    assert judged(policy, HPA % ("a", 24)) == ["LT210"]


def test_free_gpus_of_the_nodes_are_told_where_no_quota_tells_them():
    deployment = """
kind: Deployment
metadata: {name: other}
spec: {template: {spec: {containers: [{resources: {limits: {nvidia.com/gpu: 8}}}]}}}
"""
    assert judged(deployment) == []
    assert judged(deployment, free_gpus=7) == ["LT303"]
    assert judged(deployment, free_gpus=8) == []


def test_percentages_that_are_none_are_not_judged():
    text = "kind: Deployment\nspec: {strategy: {rollingUpdate: {maxUnavailable: some}}}\n"

    assert judged(text) == []


def test_a_stateful_set_replaces_one_at_a_time():
    text = """
kind: StatefulSet
metadata: {name: s}
spec: {template: {spec: {containers: [{resources: {limits: {nvidia.com/gpu: 8}}}]}}}
"""
    assert judged(text, free_gpus=0) == []


def test_a_version_of_a_definition_that_nobody_scales_is_not_judged():
    definition = (
        "kind: CustomResourceDefinition\nspec: {names: {kind: X}, versions: [{name: v1}]}\n"
    )

    assert judged(definition, HPA % ("a", 24)) == []


def test_an_external_trigger_of_somebody_else_is_not_ours():
    text = """
kind: ScaledObject
metadata: {name: chat}
spec:
  scaleTargetRef: {name: chat}
  triggers: [{type: external, metadata: {scalerAddress: "other:1"}}, {type: cron}]
"""
    assert judged(text) == []


def test_scale_up_policies_that_cannot_be_read_are_not_judged():
    hpa = (HPA % ("a", 24)).replace('scaleUp: {tolerance: "0"}', "scaleUp: {tolerance: 0, %s}")

    assert judged(hpa % "policies: [{type: Pods, value: x, periodSeconds: 60}]") == []
    assert judged(hpa % "policies: []") == []


@pytest.mark.parametrize(
    ("budget", "codes"),
    [
        ("maxUnavailable: 1", []),
        ("maxUnavailable: 0%", ["LT306"]),
        ("minAvailable: 1", []),
        ("minAvailable: 2", ["LT306"]),
        ("minAvailable: x", []),
        ("unhealthyPodEvictionPolicy: AlwaysAllow", []),
    ],
)
def test_a_budget_must_let_one_go(budget, codes):
    workload = """
kind: LeaderWorkerSet
metadata: {name: chat}
spec: {replicas: 2, leaderWorkerTemplate: {workerTemplate: {metadata: {labels: {app: chat}}}}}
"""
    text = f"kind: PodDisruptionBudget\nmetadata: {{name: b}}\nspec:\n  {budget}\n"

    assert judged(workload, text + "  selector: {matchLabels: {app: chat}}\n") == codes
    assert judged(workload, text + "  selector: {matchLabels: {app: other}}\n") == []
    assert judged(workload, text) == []


def test_a_quota_of_other_things_limits_no_gpus():
    quota = "kind: ResourceQuota\nmetadata: {name: q}\nspec: {hard: {cpu: 4}}\n"
    workload = """
kind: Deployment
metadata: {name: chat}
spec: {template: {spec: {containers: [{resources: {limits: {nvidia.com/gpu: 8}}}]}}}
"""
    assert judged(HPA % ("a", 24), workload, quota) == ["LT302"]


def test_a_readers_role_that_the_files_do_not_hold_is_trusted():
    binding = """
kind: ClusterRoleBinding
metadata: {name: b}
roleRef: {name: %s}
subjects: [{kind: ServiceAccount, name: horizontal-pod-autoscaler, namespace: kube-system}]
"""
    other = "kind: ClusterRole\nmetadata: {name: other}\nrules: [{apiGroups: [apps], verbs: x}]\n"

    assert judged(binding % "somewhere-else", other) == []
    assert judged(binding % "other", other) == ["LT401"]


def test_another_api_service_is_nobodys_business_here():
    text = "kind: APIService\nmetadata: {name: v1beta1.metrics.k8s.io}\nspec: {}\n"

    assert judged(text, HPA % ("a", 24)) == []


def test_a_pod_with_a_triton_is_read_like_a_workload():
    text = """
kind: Pod
metadata: {name: t}
spec: {containers: [{image: triton, command: [tritonserver, --cache-config, "redis,host=r"]}]}
"""
    assert judged(text) == ["LT502"]


def test_an_engine_behind_a_policy_is_known_whatever_its_image_is_called():
    workload = """
kind: Deployment
metadata: {name: chat, namespace: a}
spec: {template: {spec: {containers: [{image: registry/own}]}}}
"""
    assert judged(workload) == []
    assert judged(POLICY, workload) == ["LT302"]
    assert judged(POLICY.replace("  target: {kind: Deployment, name: chat}\n", ""), workload) == []


def test_a_probe_without_http_or_exec_has_no_timeout_to_judge():
    workload = """
kind: Deployment
metadata: {name: chat, namespace: a}
spec: {template: {spec: {containers: [{image: x, readinessProbe: {tcpSocket: {port: 1}}}]}}}
"""
    assert judged(POLICY, workload) == []


def test_a_keda_cpu_trigger_without_a_type_is_named_all_the_same():
    text = """
kind: ScaledObject
metadata: {name: chat, namespace: a}
spec:
  scaleTargetRef: {name: chat}
  minReplicaCount: 2
  triggers: [{}]
"""
    assert judged(POLICY, text) == ["LT208"]


@pytest.mark.parametrize(
    "metric",
    [
        "{type: ContainerResource, containerResource: {name: cpu}}",
        "{}",
        "{object: {metric: {name: x}}}",
    ],
)
def test_any_other_metric_of_an_hpa_is_named(metric):
    hpa = (HPA % ("a", 24)).replace("  metrics:\n", f"  metrics:\n  - {metric}\n")

    assert judged(hpa) == ["LT208"]


@pytest.mark.parametrize("most", [".inf", "-.inf", ".nan", "1e300", "9" * 400])
def test_a_maximum_that_no_cluster_takes_is_not_known(most):
    assert Scaler.of(an_object(HPA % ("a", most))).most is None
    assert judged(HPA % ("a", most)) == []


@pytest.mark.parametrize("text", ["\u00b2", "-1", "1.5", "", "9" * 10, " 4"])
def test_what_is_no_plain_count_is_none(text):
    assert whole(text) is None
    assert share(f"{text}%", 4, up=True) is None


def test_superscripts_for_gpus_are_no_gpus():
    pod = "kind: Pod\nspec: {containers: [{resources: {limits: {nvidia.com/gpu: '\u00b2'}}}]}\n"

    assert gpus_of(an_object(pod)) == 0


@pytest.mark.parametrize("most", [99_999, 2_147_483_647])
@pytest.mark.parametrize("tolerance", ["0.1", "999999k"])
def test_dead_zones_of_a_maximum_without_limit_are_found_at_once(most, tolerance):
    text = HPA.replace('{tolerance: "0"}', f'{{tolerance: "{tolerance}"}}') % ("a", most)

    assert judged(text) == ["LT203"]


def test_a_quantity_of_a_thousand_digits_is_none():
    assert milli_of("9" * 1000) is None


@pytest.mark.parametrize(
    ("leader", "worker", "size", "gpus"), [(0, 8, 3, 16), (1, 8, 3, 17), (None, 8, 3, 24)]
)
def test_a_group_has_the_gpus_of_one_leader_and_of_its_workers(leader, worker, size, gpus):
    def template(number: int) -> str:
        asked = f"{{limits: {{nvidia.com/gpu: {number}}}}}"
        return f"{{spec: {{containers: [{{resources: {asked}}}]}}}}"

    own = "" if leader is None else f"leaderTemplate: {template(leader)}, "
    group = f"{{size: {size}, {own}workerTemplate: {template(worker)}}}"

    text = f"kind: LeaderWorkerSet\nspec: {{leaderWorkerTemplate: {group}}}\n"
    assert gpus_of(an_object(text)) == gpus


@pytest.mark.parametrize(
    ("image", "words", "engine"),
    [
        ("vllm/vllm-openai:v1", "", "vllm"),
        ("registry:5000/mine", "python3 -m vllm.entrypoints.openai.api_server", "vllm"),
        ("mine", "nsys profile --trace=cuda -- sglang serve", "sglang"),
        ("vllm-project/router:v1", "--engine x", ""),
        ("mine", "python3 -m sglang_router.launch_router", ""),
        ("mine", "--backend vllm", ""),
        ("mine", "--backend=vllm -vllm release=vllm", ""),
        ("vllm/gateway-of-none/vllm-openai", "", "vllm"),
    ],
)
def test_an_engine_is_known_by_image_or_command_and_not_by_an_option(image, words, engine):
    one = json.dumps({"image": image, "command": words.split()})

    assert engine_of(an_object(f"kind: Pod\nspec: {{containers: [{one}]}}\n")) == engine
