"""The system's clock: the only module that reads it."""

import asyncio
import time

from adapter.fleet.units import Timestamp


class SystemClock:
    """Wall-clock time; waits by the monotonic clock, so that a jump cannot stall or spin it."""

    def now(self) -> Timestamp:
        """Return the seconds since the Unix epoch."""
        return Timestamp(time.time())

    async def sleep_until(self, moment: Timestamp) -> None:
        """Return when the time from now to ``moment`` has passed, however the clock is set."""
        await asyncio.sleep(max(0.0, moment - time.time()))
