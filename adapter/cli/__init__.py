"""One verb per file; the only room that wires the others together.

A verb file has ``add_parser(verbs)`` and ``run(arguments) -> int``; heavy imports stand inside
``run`` so that ``leadtime lint --help`` starts fast. Exit codes: 0 fine, 1 findings or a bad
verdict, 2 usage or cannot run, 3 warnings only under ``--fail-on warning``, 130 on Ctrl-C.
"""
