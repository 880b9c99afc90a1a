"""What goes wrong in a run, when, and for how long."""

from collections.abc import Callable
from dataclasses import dataclass

from adapter.fleet.units import Seconds, Timestamp
from adapter.simulator.world import World

Change = Callable[[World], None]


@dataclass(frozen=True, slots=True)
class Fault:
    """A change of the world ``after`` it began, and the change back where there is one."""

    after: Seconds
    begin: Change
    length: Seconds | None = None
    end: Change | None = None

    def put_down(self, world: World) -> None:
        """Put it on the world's agenda, before it is played."""
        starts = Timestamp(world.begin + self.after)
        world.agenda.at(starts, lambda _: self.begin(world))
        end = self.end
        if end is not None and self.length is not None:
            world.agenda.at(Timestamp(starts + self.length), lambda _: end(world))


def scrape_gap(*, after: Seconds, length: Seconds) -> Fault:
    """Return a time in which no pod answers a scrape."""

    def begin(world: World) -> None:
        world.scraper.broken = True

    def end(world: World) -> None:
        world.scraper.broken = False

    return Fault(after, begin, length, end)


def staleness(*, after: Seconds, length: Seconds, delay: Seconds) -> Fault:
    """Return a time in which answers are ``delay`` old and dated anew, as by a caching proxy."""

    def begin(world: World) -> None:
        world.scraper.delay = Seconds(world.scraper.delay + delay)

    def end(world: World) -> None:
        world.scraper.delay = Seconds(world.scraper.delay - delay)

    return Fault(after, begin, length, end)


def replica_dies(*, after: Seconds) -> Fault:
    """Return the end of the longest serving replica, with its node and all that it holds."""

    def begin(world: World) -> None:
        if world.deployment.serving:
            world.deployment.lose(world.deployment.serving[0])

    return Fault(after, begin)


def slow_loads(*, after: Seconds, length: Seconds, factor: float = 2.0) -> Fault:
    """Return a time in which every start takes ``factor`` times as long: a busy registry."""

    def begin(world: World) -> None:
        world.deployment.load_factor *= factor

    def end(world: World) -> None:
        world.deployment.load_factor /= factor

    return Fault(after, begin, length, end)


def long_prompts(*, after: Seconds, length: Seconds, factor: float = 2.0) -> Fault:
    """Return a time in which prompts are ``factor`` times as long: another product's users."""

    def begin(world: World) -> None:
        world.prompt_factor *= factor

    def end(world: World) -> None:
        world.prompt_factor /= factor

    return Fault(after, begin, length, end)


def clock_jump(*, after: Seconds, seconds: Seconds) -> Fault:
    """Return the adapter's clock being set by ``seconds``, forward above 0; the world goes on."""

    def begin(world: World) -> None:
        world.clock.off = Seconds(world.clock.off + seconds)

    return Fault(after, begin)
