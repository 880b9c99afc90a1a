"""The same loop against simulated engines, on real or virtual time.

What belongs: engine physics, workloads, load times, the HPA around the published number. What
does not: transports (a simulated engine renders exposition text; who serves it is wired in
``cli``) and any second copy of the decision: it runs ``controller.loop``.
"""
