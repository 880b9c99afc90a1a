from adapter.sources.static import StaticTargets
from tests.build import T0


async def test_every_address_is_one_replica_that_nobody_vouches_for():
    urls = ("http://b:8000/metrics", "http://a:8000/metrics")

    roster = await StaticTargets(urls).roster(T0)

    assert [(each.uid, each.url, each.phase) for each in roster.targets] == [
        ("http://b:8000/metrics", "http://b:8000/metrics", None),
        ("http://a:8000/metrics", "http://a:8000/metrics", None),
    ]
    assert roster.spec_replicas is None


async def test_credentials_are_used_and_never_shown():
    """The name stands in logs, in answers to the HPA and in the state on disk."""
    url = "http://reader:s3cr@t@engine:8000/metrics?name=a@b"

    (target,) = (await StaticTargets([url]).roster(T0)).targets

    assert target.url == url
    assert (target.uid, target.name) == ("http://engine:8000/metrics?name=***",) * 2


async def test_addresses_that_differ_only_in_a_hidden_value_are_two_replicas():
    urls = ("http://gate/m?engine=1", "http://gate/m?engine=2", "http://gate/m")

    roster = await StaticTargets(urls).roster(T0)

    assert [target.uid for target in roster.targets] == [
        "http://gate/m?engine=***",
        "http://gate/m?engine=*** (2)",
        "http://gate/m",
    ]
    assert tuple(target.url for target in roster.targets) == urls
