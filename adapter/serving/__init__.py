"""The world, answered: external.metrics.k8s.io, probes, own metrics, TLS and authorization.

What belongs: wire formats and who may ask. What does not: computing anything; every answer is
read from ``controller.Board``, so that no two faces can disagree.
"""
