"""One file per engine. To add one: write its file, add its name to ENGINES."""

from adapter.fleet.dialect import Dialect
from adapter.fleet.engines.dynamo import DYNAMO
from adapter.fleet.engines.lmdeploy import LMDEPLOY
from adapter.fleet.engines.sglang import SGLANG
from adapter.fleet.engines.tgi import TGI
from adapter.fleet.engines.triton import TRITON
from adapter.fleet.engines.trtllm import TRTLLM
from adapter.fleet.engines.vllm import VLLM

ENGINES: tuple[Dialect, ...] = (TRITON, VLLM, SGLANG, TRTLLM, LMDEPLOY, TGI, DYNAMO)
"""In the order of detection: what embeds another engine stands before it (Triton's vLLM backend),
what wraps one stands after it (a Dynamo worker and IBM's TGI adapter pass vLLM's own series on)."""
