"""The simulator's speed is measured on work that is really done."""

from adapter.cli.benchmarks import simulate


def test_both_rates_are_measured_and_the_busy_one_is_promised(monkeypatch):
    monkeypatch.setattr(simulate, "REQUESTS", 200)

    light, busy = simulate.measure(within=0.0)

    assert (light.name, busy.name) == ("light.requestsPerSecond", "busy.requestsPerSecond")
    assert (light.at_least, busy.at_least) == (None, 150_000)
    assert min(light.value, busy.value) > 1000
