"""One desired-replica signal per LLM fleet, from what its inference engines report.

Rooms, lowest first; a room imports only from rooms above it in this list:

* ``fleet``       what is there: exposition text, engine vocabularies, replicas, the snapshot
* ``scaling``     the decision: signals, combination, stabilization, limits; pure
* ``policy``      what the operator asked for: the ScalingPolicy document, loading, lint
* ``controller``  the loop, its ports, the board of latest decisions
* ``sources``     the world, read: clock, scrapes, recordings, state stores
* ``serving``     the world, answered: external.metrics.k8s.io, probes, own metrics
* ``simulator``   the same loop against simulated engines and a simulated HPA
* ``cli``         one verb per file; the only room that wires the others together
"""

__version__ = "0.1.0"
