"""The parts of ``leadtime demo``: a cluster's worth of stand-ins around the real adapter.

What belongs: the story (who asks for how many tokens, when), the kubelet and router stand-ins,
the HTTP faces of the simulated engines, the aggregator's side of the wire, and what people see.
What does not: scraping, deciding, serving, engine physics and the HPA's rules; those are the
product's and the simulator's own, and the demo is a proof only because it uses them.
"""
