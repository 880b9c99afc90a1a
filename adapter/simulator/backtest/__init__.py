"""A policy on a load that was: the same loop, over hours or weeks, in seconds.

``load`` is what was asked of the fleet, ``requests`` and ``fluid`` play it, ``outcome`` is what
came of it. How it is printed or drawn belongs to the command line.
"""
