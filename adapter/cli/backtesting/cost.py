"""Replica-hours as GPU-hours and money, where the reader said what a replica is."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Prices:
    """What a replica-hour is worth; None where it was not said."""

    gpus_per_replica: int | None = None
    per_gpu_hour: float | None = None
    """Of whatever currency: without GPUs per replica, of one replica."""

    def gpu_hours(self, replica_hours: float) -> float | None:
        """Return the GPU-hours, or None where nobody said how many GPUs a replica has."""
        return None if self.gpus_per_replica is None else replica_hours * self.gpus_per_replica

    def cost(self, replica_hours: float) -> float | None:
        """Return the price, or None where nobody said what an hour costs."""
        if self.per_gpu_hour is None:
            return None
        return replica_hours * (self.gpus_per_replica or 1) * self.per_gpu_hour
