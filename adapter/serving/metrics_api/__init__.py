"""One policy as plain JSON: what KEDA's ``metrics-api`` scaler reads, and a person with curl."""

from typing import Final

PATH: Final = "/api/v1/namespaces/{namespace}/policies/{policy}"
