"""Who may ask, with and without somebody to ask about it."""

import asyncio

import pytest

from adapter.controller.errors import SourceError
from adapter.fleet.units import Seconds
from adapter.serving.external_metrics.authn import ANONYMOUS, User
from adapter.serving.external_metrics.authz import (
    HPA_IDENTITIES,
    AllowListAuthorizer,
    Attributes,
    Gate,
)
from adapter.serving.external_metrics.status import StatusError
from tests.fakes import FakeClock

BOB = User("bob", ("system:authenticated",))


class Reviews:
    """Answers as it is told, and counts the questions."""

    def __init__(self, answer: bool | Exception = True) -> None:  # noqa: FBT001, FBT002 - a fake
        self.answer = answer
        self.asked: list[Attributes] = []

    async def allows(self, asked: Attributes) -> bool:
        self.asked.append(asked)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Silence:
    """Never answers."""

    async def allows(self, asked: Attributes) -> bool:
        await asyncio.Event().wait()
        raise AssertionError(asked)


def _metric(user: User, *, resource: str = "m", verb: str = "list") -> Attributes:
    return Attributes(user, verb, "/apis/…/m", "default", resource)


def _path(user: User, path: str, verb: str = "get") -> Attributes:
    return Attributes(user, verb, path)


async def test_masters_are_never_asked_about():
    """The availability probe must pass while the API server cannot answer a review."""
    reviews = Reviews(SourceError("API server away"))
    masters = User("system:kube-aggregator", ("system:masters",))

    assert await Gate(reviews, clock=FakeClock()).allows(_path(masters, "/apis"))
    assert reviews.asked == []


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
async def test_probes_are_never_asked_about(path: str):
    reviews = Reviews(answer=False)

    assert await Gate(reviews, clock=FakeClock()).allows(_path(ANONYMOUS, path))
    assert reviews.asked == []


@pytest.mark.parametrize("answer", [True, False])
async def test_an_answer_is_reused_for_ten_seconds(answer: bool):  # noqa: FBT001 - a parameter
    clock, reviews = FakeClock(), Reviews(answer)
    gate = Gate(reviews, clock=clock)

    first = await gate.allows(_metric(BOB))
    clock.pass_by(9.9)
    second = await gate.allows(_metric(BOB))
    clock.pass_by(0.2)
    reviews.answer = not answer
    third = await gate.allows(_metric(BOB))

    assert (first, second, third) == (answer, answer, not answer)
    assert len(reviews.asked) == 2


async def test_an_answer_is_reused_for_the_same_question_only():
    reviews = Reviews()
    gate = Gate(reviews, clock=FakeClock())

    for asked in (_metric(BOB), _metric(BOB, resource="n"), _metric(BOB, verb="watch")):
        assert await gate.allows(asked)

    assert len(reviews.asked) == 3


async def test_a_clock_set_back_makes_no_answer_last_longer():
    clock, reviews = FakeClock(), Reviews()
    gate = Gate(reviews, clock=clock)
    await gate.allows(_metric(BOB))

    clock.pass_by(-3600)
    await gate.allows(_metric(BOB))

    assert len(reviews.asked) == 2


async def test_what_is_remembered_is_bounded():
    """4096 questions fit; the next one makes room, and the first is asked anew."""
    reviews = Reviews()
    gate = Gate(reviews, clock=FakeClock())

    for number in [*range(4097), 0]:
        await gate.allows(_metric(BOB, resource=f"m{number}"))

    assert len(reviews.asked) == 4098


async def test_a_review_that_fails_is_an_error_and_never_an_allow():
    gate = Gate(Reviews(SourceError("API server: 403, verb create is missing")), clock=FakeClock())

    with pytest.raises(StatusError) as refused:
        await gate.allows(_metric(BOB))

    assert refused.value.status.code == 500
    assert "verb create is missing" in refused.value.status.message


async def test_a_review_that_never_ends_is_an_error():
    gate = Gate(Silence(), clock=FakeClock(), patience=Seconds(0.01))

    with pytest.raises(StatusError, match=r"no answer within 0\.01 s") as refused:
        await gate.allows(_metric(BOB))

    assert refused.value.status.code == 500


@pytest.mark.parametrize("name", sorted(HPA_IDENTITIES))
async def test_both_identities_of_the_hpa_may_list_metrics(name: str):
    """Row 22: an HPA controller that is forbidden scales nothing."""
    allowed = AllowListAuthorizer()

    assert await allowed.allows(_metric(User(name)))
    assert not await allowed.allows(_metric(User(name), verb="watch"))


async def test_only_those_listed_may_read_metrics():
    assert not await AllowListAuthorizer().allows(_metric(BOB))
    assert await AllowListAuthorizer(frozenset({"bob"})).allows(_metric(BOB))


@pytest.mark.parametrize(
    ("user", "path", "verb", "allowed"),
    [
        (BOB, "/apis", "get", True),
        (BOB, "/apis/external.metrics.k8s.io/v1beta1", "get", True),
        (BOB, "/openapi/v2", "get", True),
        (BOB, "/metrics", "get", True),
        (BOB, "/", "get", False),
        (BOB, "/apisx", "get", False),
        (BOB, "/apis", "post", False),
        (ANONYMOUS, "/apis", "get", False),
        (ANONYMOUS, "/metrics", "get", False),
    ],
)
async def test_discovery_is_open_to_everyone_who_is_authenticated(
    user: User,
    path: str,
    verb: str,
    allowed: bool,  # noqa: FBT001 - a parameter
):
    assert await AllowListAuthorizer().allows(_path(user, path, verb)) is allowed
