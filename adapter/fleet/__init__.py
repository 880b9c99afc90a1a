"""What is there: exposition text, engine vocabularies, replicas, and one snapshot of them all.

Everything here is pure: values in, values out, the time an argument. What belongs: turning an
engine's ``/metrics`` text into canonical readings (one file per engine), comparing two readings,
and the value types of a fleet. What does not: fetching anything, reading a clock, or any opinion
about how many replicas are wanted. Every other room may import it; it imports none.
"""
