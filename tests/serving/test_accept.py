"""The Accept header: who gets JSON, and who a 406."""

import pytest

from adapter.serving.external_metrics.accept import accepts_aggregated, check_accepts_json
from adapter.serving.external_metrics.status import StatusError

AGGREGATOR = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
)
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.mark.parametrize(
    "accept",
    [
        "",
        "application/json",
        "application/vnd.kubernetes.protobuf, */*",
        "application/json, */*",
        "application/*",
        "text/html, application/xhtml+xml, */*;q=0.8",
        "APPLICATION/JSON; charset=utf-8",
        f"{TABLE},application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json",
        " , ",
    ],
)
def test_whoever_can_read_json_gets_it(accept: str):
    """The first of them is the HPA's own header: never 406 for that."""
    check_accepts_json(accept)


@pytest.mark.parametrize(
    ("accept", "message"),
    [
        ("text/html", "406: Not Acceptable\n\nAvailable representations: application/json"),
        ("application/yaml", "406: Not Acceptable\n\nAvailable representations: application/json"),
        (
            "application/json;q=0",
            "406: Not Acceptable\n\nAvailable representations: application/json",
        ),
        (TABLE, "only the following media types are accepted: application/json"),
        (AGGREGATOR, "only the following media types are accepted: application/json"),
    ],
)
def test_whoever_cannot_read_json_is_told_what_there_is(accept: str, message: str):
    with pytest.raises(StatusError) as refused:
        check_accepts_json(accept)

    assert refused.value.status.code == 406
    assert refused.value.status.message == message


@pytest.mark.parametrize(
    ("accept", "aggregated"),
    [
        (AGGREGATOR, True),
        ("application/json; g=apidiscovery.k8s.io; v=v2; as=APIGroupDiscoveryList", True),
        (AGGREGATOR.split(",")[1], False),
        ("application/json", False),
        (TABLE, False),
        ("", False),
    ],
)
def test_the_aggregated_document_is_for_those_who_name_its_version(accept: str, aggregated: bool):  # noqa: FBT001 - a parameter
    assert accepts_aggregated(accept) is aggregated
