"""Lint rules, one file per family; a rule is a function listed in its family's tuple."""
