"""Documents of a file: which are ours, and what is wrong with them in plain words."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.policy.finding import Severity
from adapter.policy.load import check_together, read_files, read_policies
from adapter.policy.parse import MAX_FINDINGS
from adapter.policy.source_text import MAX_SENTENCE
from tests.policy.build import (
    HEAD,
    REPLICAS,
    STATIC,
    a_policy,
    findings,
    marked,
    read,
    the_finding,
    the_policy,
)

HPA = "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: chat}\n"


def test_a_good_file_gives_its_policies_and_no_finding():
    placed, found = read(a_policy() + "---\n" + a_policy().replace("chat", "code"))

    assert found == ()
    assert [one.policy.metadata.name for one in placed] == ["chat", "code"]


def test_json_is_yaml():
    text = (
        '{"apiVersion": "leadtime.dev/v1alpha1", "kind": "ScalingPolicy",'
        ' "metadata": {"name": "chat"}, "spec": {"replicas": {"min": 1, "max": 2},'
        ' "source": {"static": {"urls": ["http://127.0.0.1/metrics"]}}}}'
    )

    assert the_policy(text).policy.spec.replicas.max == 2


def test_all_that_is_wrong_is_said_in_one_run_sorted_by_place():
    text = a_policy(
        "mode: aktiv",
        "staleAfter: 5",
        "signals: {kvCache: {target: 80}}",
        "scaleUp: {maxStep: 0}",
        replicas="  replicas: {min: 0}\n",
        source="  source: {static: {urls: [ftp://x], interval: 0s}}\n",
    )

    found = findings(text)

    assert [(finding.line, finding.code, marked(finding)) for finding in found] == [
        (5, "LT007", "aktiv"),
        (6, "LT007", "5"),
        (7, "LT007", "80"),
        (8, "LT007", "0"),
        (9, "LT006", "replicas"),
        (9, "LT007", "0"),
        (10, "LT007", "ftp://x"),
        (10, "LT007", "0s"),
    ]


@pytest.mark.parametrize(
    ("line", "message", "note", "fix"),
    [
        (
            "staleAfter: 300",
            "staleAfter is 300, expected a duration like 90s, 5m or 1h30m, above 0",
            "a bare number has no unit",
            "staleAfter: 5m",
        ),
        ("staleAfter: 1d", "staleAfter is 1d", "GEP-2257 knows h, m, s and ms", "staleAfter: 24h"),
        ("staleAfter: 1.5h", "is 1.5h", "in whole numbers", "staleAfter: 1h30m"),
        ("staleAfter: 1h 30min", "is 1h 30min", "GEP-2257", "staleAfter: 1h30m"),
        ("staleAfter: 5 minutes", "is 5 minutes", "GEP-2257", "staleAfter: 5m"),
        ("staleAfter: 2W", "is 2W", "GEP-2257", "staleAfter: 336h"),
        ("staleAfter: 1:30", "is 1:30", "minutes and seconds are written 1m30s", ""),
        ("staleAfter: 0s", "is 0s", "longer than nothing", ""),
        ("staleAfter: 0", "is 0", "a bare number has no unit", ""),
        ("staleAfter: -5m", "is -5m", "", ""),
        ("staleAfter: 5 fortnights", "is 5 fortnights", "", ""),
        ("staleAfter: 999999999w", "is 999999999w", "GEP-2257", ""),
        ('staleAfter: ""', 'staleAfter is "", expected a duration', "", ""),
        ("staleAfter:", "staleAfter is empty, expected a duration", "", ""),
        ("staleAfter: [5m]", "staleAfter is a list, expected a duration", "", ""),
        ("staleAfter: {a: 1}", "staleAfter is a section, expected a duration", "", ""),
        (
            "scaleDown: {delay: 1d}",
            "scaleDown.delay is 1d, expected auto or a duration like 90s, 5m or 1h30m",
            "GEP-2257",
            "delay: 24h",
        ),
        ("scaleDown: {delay: Auto}", "delay is Auto", "did you mean auto?", "delay: auto"),
        ("scaleDown: {delayFactor: .nan}", "is .nan, expected a number above 0 and at", "", ""),
        ("scaleDown: {delayFactor: .inf}", "is .inf, expected a number above 0 and at", "", ""),
        ("scaleDown: {onlyIdle: yes}", "onlyIdle is yes", "read alike", "onlyIdle: true"),
        ("scaleDown: {onlyIdle: Off}", "onlyIdle is Off", "read alike", "onlyIdle: false"),
        ('scaleDown: {onlyIdle: "true"}', 'onlyIdle is "true"', "in quotes", "onlyIdle: true"),
        ("scaleDown: {onlyIdle: on}", "onlyIdle is on", "read alike", "onlyIdle: true"),
        ("scaleDown: {onlyIdle: N}", "onlyIdle is N", "read alike", "onlyIdle: false"),
        ("scaleDown: {onlyIdle: 1}", "onlyIdle is 1, expected true or false", "", ""),
        ("signals: {queue: {headroom: 90}}", "headroom is 90", "not per cent", "headroom: 0.9"),
        ("signals: {queue: {headroom: 90%}}", "headroom is 90%", "per cent", "headroom: 0.9"),
        ("signals: {ttft: {quantile: 95}}", "above 0 and below 1", "per cent", "quantile: 0.95"),
        ("signals: {ttft: {quantile: 1}}", "quantile is 1, expected a number above 0", "", ""),
        ("signals: {queue: {headroom: 0}}", "headroom is 0, expected a number above 0", "", ""),
        ("signals: {ttft: {quantile: 100}}", "quantile is 100", "", ""),
        ('signals: {ttft: {quantile: "0.9"}}', 'is "0.9"', "in quotes", "quantile: 0.9"),
        ("signals: {kvCache: {target: 800}}", "target is 800", "", ""),
        ("signals: {kvCache: 5}", "signals.kvCache is 5, expected a section with target", "", ""),
        ("signals: []", "is a list, expected a section with queue, kvCache and ttft", "", ""),
        (
            "signals: {queue: {targetInFlight: -1}}",
            "signals.queue.targetInFlight is -1, expected auto or a number above 0",
            "",
            "",
        ),
        (
            "scaleUp: {maxStep: 0%}",
            "scaleUp.maxStep is 0%, expected a whole number at least 1 or a share like 100%",
            "",
            "",
        ),
        ('scaleUp: {maxStep: "4"}', 'maxStep is "4"', "in quotes it is text", "maxStep: 4"),
        ("standby: {floor: 2.0}", "floor is 2.0", "without a decimal point", "floor: 2"),
        ("standby: {floor: 2.5}", "floor is 2.5, expected a whole number at least 0", "", ""),
        ("standby: {floor: 1_000}", "floor is 1_000", "digits only", "floor: 1000"),
        ("standby: {floor: true}", "floor is true", "", ""),
        ("mode: Advisory", "active, advisory or off", "did you mean advisory?", "mode: advisory"),
        ("mode: false", "mode is false, expected active, advisory or off", "", ""),
        ("model: 70", "model is 70, expected text", "it is a number", 'model: "70"'),
        ("model: true", "model is true, expected text", "it is a boolean", 'model: "true"'),
        ("model: null", "", "", ""),
        ('model: ""', 'model is "", expected text', "", ""),
        ("target: {kind: Deployment, name: Llama}", "the name of a Kubernetes object", "", ""),
    ],
)
def test_a_value_that_does_not_fit_is_met_with_what_would(line, message, note, fix):
    """Value, expectation, reason and the line to write; never pydantic's words."""
    text = a_policy(line)
    if not message:
        assert findings(text) == ()
        return

    finding = the_finding(text)

    assert finding.code == "LT007"
    assert message in finding.message
    assert note in finding.note
    assert bool(note) == bool(finding.note)
    assert finding.fix == fix
    assert "function-before" not in finding.message
    assert "Input should" not in finding.message


@pytest.mark.parametrize(
    ("value", "shown", "note", "fix"),
    [
        ("1", "1", "without quotes it is a number, not text", 'team: "1"'),
        ("false", "false", "without quotes it is a boolean, not text", 'team: "false"'),
        ("~", "~", "without quotes it is nothing, not text", 'team: "~"'),
        ("", "empty", "", ""),
    ],
)
def test_label_values_are_text_as_in_kubernetes(value, shown, note, fix):
    text = a_policy().replace("{name: chat}", f"{{name: chat, labels: {{team: {value}}}}}")

    finding = the_finding(text)

    assert finding.message == f"metadata.labels.team is {shown}, expected text"
    assert (finding.note, finding.fix) == (note, fix)


def test_a_key_without_a_value_is_pointed_at_itself():
    finding = the_finding(a_policy("staleAfter:"))

    assert marked(finding) == "staleAfter"


def test_minimum_zero_is_refused_with_the_reason():
    """production-stack#1003: a pool at zero has nothing that could ask for its return."""
    finding = the_finding(a_policy(replicas="  replicas: {min: 0, max: 3}\n"))

    assert "an empty pool has no engine to read load from" in finding.sentence
    assert finding.fix == "min: 1"


def test_one_value_is_not_a_list_of_one():
    source = "  source: {static: {urls: http://a/metrics}}\n"

    finding = the_finding(a_policy(source=source))

    assert finding.message == (
        "source.static.urls is http://a/metrics, expected a list, "
        "each item an address like http://host:8000/path"
    )
    assert finding.fix == "urls: [http://a/metrics]"


def test_the_list_item_that_is_wrong_is_pointed_at():
    source = "  source: {static: {urls: [http://a/metrics, 5, /metrics]}}\n"

    numeric, relative = findings(a_policy(source=source))

    assert numeric.message.startswith("source.static.urls[1] is 5, expected an address like")
    assert numeric.fix == '"5"'
    assert marked(relative) == "/metrics"


def test_a_list_item_that_is_a_section_is_pointed_at_where_it_begins():
    source = "  source: {static: {urls: [http://a/metrics, {b: c}]}}\n"

    finding = the_finding(a_policy(source=source))

    assert marked(finding) == "{"
    assert "urls[1] is a section" in finding.message


@pytest.mark.parametrize(
    ("lines", "message", "fix"),
    [
        ("scaledown: {}", "unknown key scaledown in spec, did you mean scaleDown?", "scaleDown:"),
        ("scale_down: {}", "did you mean scaleDown?", "scaleDown:"),
        ("stale-after: 2m", "did you mean staleAfter?", "staleAfter: 2m"),
        ("stalAfter: 2m", "did you mean staleAfter?", "staleAfter: 2m"),
        (
            "signals: {queue: {target_in_flight: 8}}",
            "unknown key target_in_flight in signals.queue, did you mean targetInFlight?",
            "targetInFlight: 8",
        ),
        (
            "scaleUp: {delay: 5m}",
            "unknown key delay in scaleUp, which is a key of scaleDown",
            "move it to scaleDown",
        ),
        (
            "scaleUp: {interval: 5m}",
            "a key of source.pods and source.prometheus and source.static",
            "move it to source.pods and source.prometheus and source.static",
        ),
        ("signals: {mode: active}", "which is a key of spec", "move it to spec"),
        (
            "replica: {min: 2}",
            "unknown key replica in spec beside replicas",
            "leave it out, or write what it says under replicas",
        ),
        ("minReplicas: 2", "the word of an HPA or of KEDA", "write it as replicas.min"),
        ("cooldownPeriod: 300", "the word of an HPA", "write it as scaleDown.delay"),
        (
            "standby: {spare: 1}",
            "unknown key spare in standby",
            "coverage, history, floor or ceiling",
        ),
        ("scaleUp: {on: 1}", "unknown key on in scaleUp", "write maxStep, or leave it out"),
    ],
)
def test_an_unknown_key_is_met_with_the_key_that_was_meant(lines, message, fix):
    finding = the_finding(a_policy(lines))

    assert finding.code == "LT005"
    assert message in finding.message
    assert fix in finding.fix


def test_what_the_api_server_writes_is_called_so():
    """The output of kubectl get -o yaml is not a file to keep."""
    uid, status = findings(
        a_policy().replace("name: chat", "name: chat, uid: 5f0c") + "status: {desired: 3}\n"
    )

    assert "which the API server writes" in status.message
    assert "unknown key uid in metadata, which the API server writes" in uid.message


@pytest.mark.parametrize(
    ("text", "where", "message", "fix"),
    [
        (HEAD + REPLICAS, "spec", "spec has no source, which is required", "pods: {port: 8000}"),
        (HEAD + STATIC, "spec", "spec has no replicas, which is required", "{min: 2, max: 8}"),
        (
            a_policy(replicas="  replicas: {min: 2}\n"),
            "replicas",
            "replicas has no max, which is required: a whole number at least 1",
            "add max: 8",
        ),
        (
            a_policy("target: {kind: Deployment}"),
            "target",
            "target has no name, which is required: the name of a Kubernetes object",
            "add name: llama-70b",
        ),
        (
            a_policy().replace("metadata: {name: chat}\n", ""),
            "a",
            "the document has no metadata, which is required: a section with name",
            "add metadata: {name: llama-70b, namespace: inference}",
        ),
        (
            a_policy().replace("apiVersion: leadtime.dev/v1alpha1\n", ""),
            "k",
            "the document has no apiVersion, which is required: leadtime.dev/v1alpha1",
            "add apiVersion: leadtime.dev/v1alpha1",
        ),
        (
            a_policy().replace("kind: ScalingPolicy\n", ""),
            "a",
            "the document has no kind, which is required: ScalingPolicy",
            "add kind: ScalingPolicy",
        ),
    ],
)
def test_a_missing_key_is_asked_for_at_the_section_that_lacks_it(text, where, message, fix):
    finding = the_finding(text)

    assert finding.code == "LT006"
    assert marked(finding) == where
    assert message in finding.message
    assert fix in finding.fix


@pytest.mark.parametrize(
    ("text", "at", "message", "fix"),
    [
        (
            a_policy(replicas="  replicas: {min: 8, max: 2}\n"),
            "2",
            "replicas: max 2 is below min 8",
            "raise max or lower min",
        ),
        (
            a_policy("standby: {floor: 4, ceiling: 2}"),
            "2",
            "standby: ceiling 2 is below floor 4",
            "raise ceiling or lower floor",
        ),
        (
            a_policy(source="  source: {static: {}}\n"),
            "static",
            "source.static: give either urls (at least one) or directory, not both",
            "",
        ),
        (
            a_policy(source="  source: {static: {urls: [http://a/m], directory: d}}\n"),
            "d",
            "not both",
            "",
        ),
        (
            a_policy(source="  source: {static: {urls: [http://a/m, http://a/m]}}\n"),
            "urls",
            "source.static: an address stands twice in urls",
            "each one is a replica",
        ),
        (
            a_policy(source="  source: {static: {urls: [http://a/m, http://u:p@a/m]}}\n"),
            "urls",
            "source.static: an address stands twice in urls",
            "each one is a replica",
        ),
        *(
            (
                a_policy(source=f"  source: {{prometheus: {{url: http://p, {there}: f}}}}\n"),
                "f",
                f"source.prometheus: {there} without {lacks}",
                "give both, or neither",
            )
            for there, lacks in (("certFile", "keyFile"), ("keyFile", "certFile"))
        ),
        (
            a_policy(source="  source: {}\n"),
            "source",
            "source: give exactly one of pods, prometheus, static; found none",
            "",
        ),
        (
            a_policy(source="  source: {pods: {}, static: {directory: d}}\n"),
            "static",
            "found pods and static",
            "",
        ),
    ],
)
def test_values_that_exclude_each_other_are_named_together(text, at, message, fix):
    finding = the_finding(text)

    assert finding.code == "LT008"
    assert marked(finding) == at
    assert message in finding.message
    assert finding.fix == fix


@pytest.mark.parametrize("word", ["off", "Off", "OFF"])
def test_off_without_quotes_is_understood_and_warned_about(word):
    """Kubectl would send ``mode: false``; here it is the word that stands there."""
    text = a_policy(f"mode: {word}")

    placed, (finding, *_) = read(text)

    if word == "off":
        assert placed[0].policy.spec.mode == "off"
        assert (finding.code, finding.severity) == ("LT012", Severity.WARNING)
        assert finding.message == "mode: without quotes kubectl reads off as false"
        assert finding.fix == 'mode: "off"'
    else:
        assert finding.fix == "mode: off"


def test_off_in_quotes_is_fine():
    assert the_policy(a_policy('mode: "off"')).policy.spec.mode == "off"


def test_words_that_kubectl_takes_for_booleans_are_found_in_lists_and_labels():
    text = a_policy(source="  source: {prometheus: {url: http://p:9090, labels: {gpu: yes}}}\n")

    finding = the_finding(text)

    assert (
        finding.message == "source.prometheus.labels.gpu: without quotes kubectl reads yes as true"
    )


@pytest.mark.parametrize(
    ("old", "new", "code", "fix"),
    [
        ("leadtime.dev/v1alpha1", "leadtime.dev/v1", "LT009", "apiVersion: leadtime.dev/v1alpha1"),
        ("leadtime.dev/v1alpha1", "example.com/v1", "LT009", ""),
        ("kind: ScalingPolicy", "kind: Scalingpolicy", "LT009", "kind: ScalingPolicy"),
        ("kind: ScalingPolicy", "kind: Policy", "LT009", ""),
        ("kind: ScalingPolicy", "kind: ScalingPolicyList", "LT009", "kind: ScalingPolicy"),
    ],
)
def test_what_is_almost_a_policy_is_not_passed_over(old, new, code, fix):
    finding = the_finding(a_policy().replace(old, new))

    assert finding.code == code
    assert finding.fix == fix


def test_a_mistyped_kind_without_a_version_is_recognized():
    text = a_policy().replace("apiVersion: leadtime.dev/v1alpha1\n", "")

    missing, mistyped = findings(text.replace("ScalingPolicy", "ScallingPolicy"))

    assert (missing.code, mistyped.code) == ("LT006", "LT009")


def test_a_policy_without_its_two_first_lines_is_recognized():
    text = "spec:\n  source: {pods: {}}\n"

    assert [finding.code for finding in findings(text)] == ["LT006"] * 4


def test_policies_inside_a_list_are_not_passed_over():
    """What ``kubectl get scalingpolicies -o yaml`` prints."""
    items = "".join(f"  {line}\n" for line in a_policy().splitlines())
    text = "apiVersion: v1\nkind: List\nitems:\n-" + items[1:]

    finding = the_finding(text)

    assert finding.code == "LT009"
    assert "stand in a list" in finding.message


@pytest.mark.parametrize(
    "other",
    [
        HPA,
        "apiVersion: workload.serving.volcano.sh/v1alpha1\nkind: AutoscalingPolicy\nspec: {}\n",
        "apiVersion: v1\nkind: List\nitems: [{kind: Pod}, 5]\n",
        "apiVersion: v1\nkind: PodList\nitems: {}\n",
        "apiVersion: v1\nkind: ConfigMap\ndata: !Ref x\n",
        "replicaCount: 2\nimage: {tag: 0777}\nimage: again\n",
        "- op: replace\n  path: /spec\n",
        "just text\n",
    ],
)
def test_documents_of_others_are_left_alone_whatever_is_in_them(other):
    """Kubeconform skips what it has no schema for; so do we, beside a policy without a word."""
    placed, found = read(other + "---\n" + a_policy())

    assert len(placed) == 1
    assert found == ()


def test_a_file_with_documents_of_others_only_is_told_so():
    other = "kind: Secret\n"

    finding = the_finding(other + "---\n- 5\n---\na: 1\n---\n" + other)

    assert (finding.code, finding.severity) == ("LT011", Severity.INFO)
    assert finding.message == (
        "no ScalingPolicy in the file, only Secret, a document that is no section "
        "and a document without a kind; nothing was checked"
    )


@pytest.mark.parametrize("text", [HPA, "kind: List\nitems:\n- {kind: Deployment}\n"])
def test_a_file_of_the_objects_around_policies_is_not_empty(text):
    assert findings(text) == ()


@pytest.mark.parametrize(
    "text", ["", "\n", "# only a comment\n", "---\n---\n", "\ufeff", "---\n~\n"]
)
def test_an_empty_file_is_a_warning(text):
    """The file that was not saved, the template that rendered to nothing."""
    finding = the_finding(text)

    assert (finding.code, finding.severity) == ("LT011", Severity.WARNING)
    assert (finding.line, finding.column) == (1, 1)


def test_the_same_name_twice_is_found_over_files_with_both_places():
    placed, found = read_files(
        {"a.yaml": a_policy().encode(), "b.yaml": b"# two\n" + a_policy().encode()}
    )

    (finding,) = found
    assert len(placed) == 2
    assert (finding.file, finding.line, finding.code) == ("b.yaml", 4, "LT010")
    assert finding.message == "policy default/chat stands twice, first at a.yaml:3:18"


def test_the_same_name_in_another_namespace_is_another_policy():
    other = a_policy().replace("{name: chat}", "{name: chat, namespace: b}")
    placed, _ = read(a_policy() + "---\n" + other)

    assert check_together(placed) == ()


def test_bytes_that_are_no_text_become_a_finding_of_their_file():
    placed, found = read_files({"a.yaml": b"\xff\xfe\x00", "b.yaml": a_policy().encode()})

    assert len(placed) == 1
    assert [(finding.file, finding.code) for finding in found] == [("a.yaml", "LT002")]


def test_a_policy_with_an_error_is_left_out_and_its_neighbours_are_not():
    placed, found = read(
        a_policy("x: 1") + "---\n" + a_policy().replace("chat", "code") + "---\n" + a_policy("- 1")
    )

    assert [one.policy.metadata.name for one in placed] == ["code"]
    assert [finding.code for finding in found] == ["LT005", "LT001"]


def test_what_a_file_holds_cannot_flood_the_screen():
    """A thousand keys that no policy has, and one of a thousand characters."""
    keys = [f"key{number}: 1" for number in range(1000)]

    assert len(findings(a_policy(*keys))) == MAX_FINDINGS
    assert len(the_finding(a_policy(f"{'k' * 1000}: 1")).message) == MAX_SENTENCE + 1


def test_long_values_are_shown_short():
    finding = the_finding(a_policy(f"mode: {'x' * 500}"))

    assert f"mode is {'x' * 60}…, expected" in finding.message


@pytest.mark.parametrize(
    "url",
    [
        "http://[::1",
        "http://host:99999/metrics",
        "http://host:0/metrics",
        "http://host:eighty/metrics",
        "http://user:pass@/metrics",
        "http://@/",
        "http://\u2100.com/metrics",
    ],
)
def test_an_address_that_nobody_could_connect_to_is_refused(url):
    """The pattern lets them pass; each would fail at every scrape, or before the first one."""
    finding = the_finding(a_policy(source=f'  source: {{static: {{urls: ["{url}"]}}}}\n'))

    assert finding.code == "LT007"
    assert "expected an address like http://host:8000/path" in finding.message


@pytest.mark.parametrize(
    "line",
    [
        "source: {static: {urls: [http://reader:s3cret@host:99999/metrics]}}",
        "source: {static: {urls: ['http://reader:s3cret@ho st/metrics']}}",
        "source: {static: {urls: ['http://reader:s3/cret@host/metrics', 7]}}",
        f"source: {{static: {{urls: [http://{'r' * 60}:s3cret@host:0x1/metrics]}}}}",
        f"source: {{static: {{urls: [http://r:{'s3cret' * 20}@host:0x1/metrics]}}}}",
        "source: {static: {url: http://reader:s3cret@host/metrics}}",
        "source: {prometheus: {url: https://reader:s3cret@host:http/}}",
    ],
)
def test_no_finding_shows_the_credentials_of_an_address(line):
    """Findings stand in the log, in CI's output and in answers; the caret stays in place."""
    found = findings(a_policy(line, source=""))

    assert found
    for finding in found:
        shown = (finding.message, finding.fix, finding.note, finding.excerpt)
        assert not [text for text in shown if "s3" in text or "cret" in text]
        assert len(finding.excerpt) == len(f"  {line}")
        assert "host" in finding.excerpt or "ho st" in finding.excerpt


def test_values_over_several_lines_are_pointed_at_where_they_begin():
    finding = the_finding(a_policy("staleAfter: |", "  five", "  minutes"))

    assert (finding.line, finding.column) == (5, 15)
    assert 'staleAfter is "five\\nminutes\\n", expected' in finding.message


FRAGMENTS = st.sampled_from(
    [
        *a_policy("staleAfter: 5m", "scaleDown: {delay: auto, onlyIdle: true}").splitlines(
            keepends=True
        ),
        *[
            "---\n",
            "...\n",
            "- ",
            ": ",
            "{",
            "}",
            "[",
            "]",
            "&a ",
            "*a",
            "<<: *a\n",
            "!!int ",
            "? ",
        ],
        *[
            "\t",
            "\n",
            "\r",
            "\x85",
            "\u2028",
            "'",
            '"',
            "|\n",
            ">\n",
            "%YAML 1.1\n",
            "{{ x }}",
            "#",
        ],
        *[
            "min: 0\n",
            "1d",
            "0777",
            "off",
            ".nan",
            "null",
            "\x00",
            "\ufffd",
            "\ud800",
            "é",
            "\U0001d518",
        ],
        *["kind: ScalingPolicy\n", "  ", "    ", "source:\n", "items: [", "kind: List\n", "80%"],
    ]
)


@settings(max_examples=400, deadline=None)
@given(st.lists(FRAGMENTS, max_size=30).map("".join) | st.text(max_size=200))
def test_no_text_raises_and_every_finding_points_into_it(text):
    """Whatever a file holds: findings with a place, sorted, and never an exception."""
    placed, found = read_policies(text, "f.yaml")

    assert placed or found
    assert list(found) == sorted(found)
    lines = text.removeprefix("\ufeff")
    for finding in found:
        assert finding.message
        assert finding.line >= 1
        assert finding.excerpt in lines
        assert 1 <= finding.column <= len(finding.excerpt) + 1


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_a_policy_with_one_piece_changed_never_raises(data):
    text = a_policy(
        "staleAfter: 5m", "scaleDown:", "  delay: auto", "signals: {ttft: {window: 1m}}"
    )
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 8)))

    placed, found = read_policies(text[:start] + data.draw(FRAGMENTS) + text[end:], "f.yaml")

    assert placed or found
