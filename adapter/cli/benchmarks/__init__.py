"""What ``leadtime bench`` measures, one file per part, on loopback and in a bounded time.

What is measured is the product as it ships: its functions, or ``leadtime serve`` as a process of
its own with its load in a third. What belongs: the loads and the figures. What does not: anything
that the product needs in order to run.
"""
