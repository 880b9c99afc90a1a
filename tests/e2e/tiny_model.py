"""A language model small enough for two cores, made on the spot: no hub, no weights on disk.

Two layers of Qwen2 whose weights vLLM fills in by itself (``--load-format dummy``), over a
tokenizer of one token per byte: a prompt of n ASCII letters is exactly n tokens.
"""

import json
from pathlib import Path
from typing import Final

SPECIAL: Final = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
HEAD_DIM: Final = 64
"""vLLM's attention on the CPU dies at its first completion with 16."""

HEADS: Final = 16
KEY_VALUE_HEADS: Final = 2
FEED_FORWARD: Final = 4096
"""Wide, so that one core computes a step in 10 to 20 ms: slow enough that a request lasts for
several scrapes, and that the API server and the adapter keep up on the other core."""

LONGEST: Final = 2048


def write_model(directory: Path) -> Path:
    """Write the model's four files into ``directory``, and return it."""
    directory.mkdir(parents=True, exist_ok=True)
    vocabulary = {token: number for number, token in enumerate((*_bytes(), *SPECIAL))}
    files = {
        "config.json": _config(vocabulary),
        "generation_config.json": {"eos_token_id": vocabulary[SPECIAL[-1]]},
        "tokenizer.json": _tokenizer(vocabulary),
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "eos_token": SPECIAL[-1],
            "pad_token": SPECIAL[0],
            "model_max_length": LONGEST,
        },
    }
    for name, content in files.items():
        (directory / name).write_text(json.dumps(content))
    return directory


def _bytes() -> list[str]:
    """Return a letter for each byte: its own where it is printable, else one above 255."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in printable]
    return [chr(byte if byte in printable else 256 + others.index(byte)) for byte in range(256)]


def _tokenizer(vocabulary: dict[str, int]) -> dict[str, object]:
    """Return a byte-level BPE without a single merge, as the tokenizers library stores it."""
    by_bytes = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    return {
        "version": "1.0",
        "added_tokens": [
            {
                "id": vocabulary[token],
                "content": token,
                "special": True,
                **dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False),
            }
            for token in SPECIAL
        ],
        "pre_tokenizer": {**by_bytes, "use_regex": False},
        "decoder": {**by_bytes, "use_regex": False},
        "model": {"type": "BPE", "vocab": vocabulary, "merges": []},
    }


def _config(vocabulary: dict[str, int]) -> dict[str, object]:
    return {
        "architectures": ["Qwen2ForCausalLM"],
        "model_type": "qwen2",
        "torch_dtype": "float32",
        "vocab_size": len(vocabulary),
        "hidden_size": HEADS * HEAD_DIM,
        "intermediate_size": FEED_FORWARD,
        "num_hidden_layers": 2,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KEY_VALUE_HEADS,
        "max_position_embeddings": LONGEST,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "tie_word_embeddings": True,
        "bos_token_id": vocabulary[SPECIAL[0]],
        "eos_token_id": vocabulary[SPECIAL[-1]],
    }
