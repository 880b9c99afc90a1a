"""The world, read: clock, scrapes, recordings, state stores, policy files.

Adapters behind the controller's ports. What belongs: I/O with bounds (time, size, connections),
and turning every failure into data. What does not: decisions, and knowing ``serving`` or
``simulator``, its siblings.
"""
