"""The loop: observe, decide, remember, post; one supervised loop per policy.

What belongs: the ports (what the loop needs, in its own words), the loop, the supervisor, the
board of latest decisions, the errors that cross rooms. What does not: any transport or client
library; those are behind the ports, in ``sources`` and ``serving``.
"""
