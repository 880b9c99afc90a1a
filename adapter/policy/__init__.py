"""What the operator asked for: the ScalingPolicy document, its findings, lint and schema.

Pure: text in, policies and findings out. What belongs: the document around ``scaling``'s
sections, loading with file:line:column, lint rules by family, JSON Schema. What does not: reading
files or directories (``sources``), and any use of the policy's numbers (``scaling``).
"""
