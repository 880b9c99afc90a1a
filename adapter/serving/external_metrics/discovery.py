"""The constant documents of the API: what kube-apiserver asks before any metric is read."""

import hashlib
import json
from dataclasses import dataclass
from typing import Final

from adapter.serving.external_metrics import GROUP, VERSION

JSON: Final = "application/json"
AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

_GROUP_VERSION: Final = f"{GROUP}/{VERSION}"
_VERSION: Final = {"groupVersion": _GROUP_VERSION, "version": VERSION}
_GROUP: Final = {"name": GROUP, "versions": [_VERSION], "preferredVersion": _VERSION}


@dataclass(frozen=True, slots=True)
class Document:
    """A body that never changes while this process runs."""

    body: bytes
    content_type: str
    etag: str
    """Strong and quoted, as it stands in the header."""


def _document(value: object, content_type: str = JSON) -> Document:
    body = json.dumps(value, separators=(",", ":")).encode()
    return Document(body, content_type, f'"{hashlib.sha256(body).hexdigest()}"')


RESOURCES: Final = _document(
    {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": _GROUP_VERSION,
        "resources": [
            {
                "name": "externalmetrics",
                "singularName": "",
                "namespaced": True,
                "kind": "ExternalMetricValueList",
                "verbs": ["get"],
            }
        ],
    }
)
"""One placeholder whatever is served: a list per metric slows every kubectl (k/k#98801), an empty
one breaks it (k/k#111292), and more verbs than ``get`` set informers on us."""

GROUPS: Final = _document({"kind": "APIGroupList", "apiVersion": "v1", "groups": [_GROUP]})

ONE_GROUP: Final = _document({"kind": "APIGroup", "apiVersion": "v1", **_GROUP})

AGGREGATED_GROUPS: Final = _document(
    {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": [
            {
                "metadata": {"name": GROUP, "creationTimestamp": None},
                "versions": [
                    {
                        "version": VERSION,
                        "freshness": "Current",
                        "resources": [
                            {
                                "resource": "externalmetrics",
                                "responseKind": {
                                    "group": GROUP,
                                    "version": VERSION,
                                    "kind": "ExternalMetricValueList",
                                },
                                "scope": "Namespaced",
                                "singularResource": "",
                                "verbs": ["get"],
                            }
                        ],
                    }
                ],
            }
        ],
    },
    AGGREGATED,
)
"""Never without our item: an empty list is believed, and hides the resource (keda#6694)."""

OPENAPI_V2: Final = _document(
    {"swagger": "2.0", "info": {"title": GROUP, "version": VERSION}, "paths": {}}
)
"""Empty, but there: without it kube-apiserver logs an error for ever (k/k#90434)."""

OPENAPI_V3: Final = _document({"paths": {}})
