"""Who asks, told from a certificate and the headers behind it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from multidict import CIMultiDict, CIMultiDictProxy

from adapter.serving.external_metrics.authn import ANONYMOUS, RequestHeader, User, common_name
from adapter.serving.external_metrics.status import StatusError


def _headers(*pairs: tuple[str, str]) -> CIMultiDictProxy[str]:
    return CIMultiDictProxy(CIMultiDict(pairs))


def test_the_front_proxys_headers_are_the_identity():
    """Groups are repeated headers; extras lose their prefix, are lower-cased, then decoded."""
    headers = _headers(
        ("X-Remote-User", "system:serviceaccount:kube-system:horizontal-pod-autoscaler"),
        ("X-Remote-Group", "system:serviceaccounts"),
        ("X-Remote-Group", "system:authenticated"),
        ("X-Remote-Uid", "u-1"),
        ("X-Remote-Extra-Authentication.kubernetes.io%2fcredential-Id", "JTI=1"),
        ("x-remote-extra-scopes", "one"),
        ("X-Remote-Extra-Scopes", "two"),
        ("X-Remote-Extra-%4Aob", "trainer"),
    )

    user = RequestHeader().identify(headers, "front-proxy-client")

    assert user == User(
        "system:serviceaccount:kube-system:horizontal-pod-autoscaler",
        ("system:serviceaccounts", "system:authenticated"),
        "u-1",
        (
            ("Job", ("trainer",)),
            ("authentication.kubernetes.io/credential-id", ("JTI=1",)),
            ("scopes", ("one", "two")),
        ),
    )


def test_a_user_without_groups_is_authenticated_all_the_same():
    """The aggregator's legacy discovery comes without any group (contract §1.3)."""
    headers = _headers(("X-Remote-User", "system:kube-aggregator"))

    user = RequestHeader().identify(headers, "front-proxy-client")

    assert user.groups == ("system:authenticated",)


def test_an_anonymous_user_that_is_passed_on_stays_unauthenticated():
    headers = _headers(
        ("X-Remote-User", "system:anonymous"), ("X-Remote-Group", "system:unauthenticated")
    )

    user = RequestHeader().identify(headers, "front-proxy-client")

    assert user == ANONYMOUS


def test_headers_without_a_certificate_are_anybodys_claim():
    headers = _headers(("X-Remote-User", "admin"), ("X-Remote-Group", "system:masters"))

    assert RequestHeader().identify(headers, None) == ANONYMOUS


def test_a_certificate_under_another_name_is_refused():
    """Row 10: the CA signed ``aggregator``, and only ``front-proxy-client`` may speak."""
    headers = _headers(("X-Remote-User", "admin"))

    with pytest.raises(StatusError) as refused:
        RequestHeader().identify(headers, "aggregator")

    assert refused.value.status.code == 401
    assert refused.value.status.message == "Unauthorized"


def test_no_allowed_names_means_any_name_that_the_ca_signed():
    headers = _headers(("X-Remote-User", "admin"))

    user = RequestHeader(allowed_names=()).identify(headers, "aggregator")

    assert user.name == "admin"


@pytest.mark.parametrize("said", [[], [("X-Remote-User", "")], [("X-Remote-User", "  ")]])
def test_a_front_proxy_that_names_nobody_authenticates_nobody(said: list[tuple[str, str]]):
    headers = _headers(*said, ("X-Remote-Group", "system:masters"))

    assert RequestHeader().identify(headers, "front-proxy-client") == ANONYMOUS


def test_a_bearer_token_that_nobody_can_check_is_refused():
    """Treating it as anonymous would hide a wrong token behind a 403."""
    with pytest.raises(StatusError) as refused:
        RequestHeader().identify(_headers(("Authorization", "Bearer bad")), None)

    assert refused.value.status.code == 401


def test_the_headers_are_those_that_the_cluster_configured():
    request_header = RequestHeader(
        username_headers=("X-Empty", "X-Proxy-User"),
        group_headers=("X-Proxy-Group", "X-Proxy-Role"),
        extra_prefixes=("X-Proxy-Extra-",),
        uid_headers=("X-Proxy-Uid",),
    )
    headers = _headers(
        ("X-Proxy-User", "bob"),
        ("X-Remote-User", "admin"),
        ("X-Proxy-Group", "a"),
        ("X-Proxy-Role", "b"),
        ("X-Proxy-Extra-Team", "ml"),
        ("X-Remote-Extra-Team", "no"),
        ("X-Proxy-Uid", "7"),
    )

    user = request_header.identify(headers, "front-proxy-client")

    assert user == User("bob", ("a", "b", "system:authenticated"), "7", (("team", ("ml",)),))


@pytest.mark.parametrize(
    ("certificate", "name"),
    [
        (None, None),
        ({}, None),
        ({"subject": ()}, ""),
        ({"subject": ((("organizationName", "o"),), (("commonName", "cn"),))}, "cn"),
        ({"subject": ((("commonName", "first"),), (("commonName", "last"),))}, "last"),
    ],
)
def test_the_common_name_is_the_last_one(certificate: dict[str, object] | None, name: str | None):
    """Go takes the last one; another choice would let a certificate be two things at once."""
    assert common_name(certificate) == name


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["X-Remote-User", "X-Remote-Group", "x-remote-extra-%zz", "Accept"]),
            st.text(max_size=8),
        ),
        max_size=6,
    )
)
@settings(max_examples=200)
def test_nobody_is_authenticated_without_a_certificate(pairs: list[tuple[str, str]]):
    assert RequestHeader().identify(_headers(*pairs), None) == ANONYMOUS
