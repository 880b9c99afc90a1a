"""The side door that KEDA knocks at: its external scaler, over gRPC.

KEDA calls us without the API server in between, so where KEDA runs, and owns
``external.metrics.k8s.io`` already, this is the road to take.
"""
