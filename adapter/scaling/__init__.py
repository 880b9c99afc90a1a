"""The decision: from a policy and a snapshot to one replica count, with its reasons.

Pure and deterministic. No I/O, no clock, no randomness, no environment, no logging: the time is
``fleet.at``, the past is ``ScalingState``, the story is ``Decision.steps``. What belongs: each
signal's YAML section beside its demand, capacity, stabilization, limits, the HPA's arithmetic.
What does not: the document around the sections (``policy``) and anything that observes or
publishes. ``controller.loop`` alone calls :func:`adapter.scaling.evaluate.evaluate`.
"""
