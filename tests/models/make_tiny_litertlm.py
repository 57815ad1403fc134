"""Makes tiny_gemma3.litertlm: a Gemma 3 of random weights (2 layers, 512 tokens) that LiteRT-LM 0.18 runs.

    pip install torch==2.13.0+cpu transformers==5.24.0 litert-torch==0.10.0 litert-lm-builder==0.18.1
    python make_tiny_litertlm.py FOLDER        # about a minute; FOLDER/model.litertlm

Two runs give models that say the same, in files that do not: each has its time and a UUID.
"""

from __future__ import annotations

import io
import os
import random
import sys
import types
from pathlib import Path

WORDS = (
    "the quick brown fox jumps over lazy dog hello world what is your name I am Eliza "
    "a small model that runs on device and speaks with you about many things today"
).split()

TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}"
    "<start_of_turn>{{ 'model' if m['role']=='assistant' else m['role'] }}\n{{ m['content'] }}<end_of_turn>\n"
    "{% endfor %}{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)


def make_vocabulary(folder: Path) -> int:
    """Trains a SentencePiece vocabulary with Gemma's special tokens; its size."""
    import sentencepiece

    chance = random.Random(0)
    sentences = [" ".join(chance.choice(WORDS) for _ in range(12)) + "." for _ in range(2000)]
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences),
        model_writer=model,
        vocab_size=512,
        model_type="bpe",
        byte_fallback=True,
        character_coverage=1.0,
        hard_vocab_limit=False,
        pad_id=0,
        eos_id=1,
        bos_id=2,
        unk_id=3,
        pad_piece="<pad>",
        eos_piece="<eos>",
        bos_piece="<bos>",
        user_defined_symbols=["<start_of_turn>", "<end_of_turn>"],
        add_dummy_prefix=False,
        remove_extra_whitespaces=False,
        normalization_rule_name="identity",
        minloglevel=2,
    )
    (folder / "tokenizer.model").write_bytes(model.getvalue())
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue()).get_piece_size()


def make_checkpoint(folder: Path, vocabulary_size: int) -> None:
    """Saves a model of random weights, and its tokenizer, as transformers does."""
    import torch
    import transformers

    torch.manual_seed(0)
    config = transformers.Gemma3TextConfig(
        vocab_size=vocabulary_size,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=32,
        max_position_embeddings=512,
        sliding_window=128,
        layer_types=["sliding_attention", "full_attention"],
        query_pre_attn_scalar=32,
        pad_token_id=0,
        eos_token_id=1,
        bos_token_id=2,
        tie_word_embeddings=True,
    )
    model = transformers.Gemma3ForCausalLM(config).eval().float()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim > 1:
                # Tied weights as large as the layers' would make it repeat its last token for ever.
                parameter.normal_(0, 0.02 if "embed" in name else 0.2)
        model.model.norm.weight.fill_(30.0)
    model.generation_config.eos_token_id = 1
    model.save_pretrained(folder, safe_serialization=True)
    tokenizer = transformers.GemmaTokenizer(vocab_file=str(folder / "tokenizer.model"))
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)


def import_exporter() -> types.ModuleType:
    """litert-torch's exporter. It imports TensorFlow's schema without depending on it: ai-edge-litert has the same."""
    from ai_edge_litert import schema_py_generated

    names = ["tensorflow", "tensorflow.lite", "tensorflow.lite.python"]
    for name in names:
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__path__ = []
    sys.modules["tensorflow.lite.python"].schema_py_generated = schema_py_generated
    sys.modules["tensorflow.lite.python.schema_py_generated"] = schema_py_generated
    from litert_torch.generative.export_hf import export

    for name in [*names, "tensorflow.lite.python.schema_py_generated"]:
        del sys.modules[name]
    return export


def main() -> None:
    os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}
    output = Path(sys.argv[1]).absolute()
    checkpoint = output / "checkpoint"
    checkpoint.mkdir(parents=True)
    make_checkpoint(checkpoint, make_vocabulary(checkpoint))
    import_exporter().export(
        model=str(checkpoint),
        output_dir=str(output),
        prefill_lengths=[32, 128],
        cache_length=512,
        quantization_recipe="dynamic_wi8_afp32",
        externalize_embedder=False,
        use_jinja_template=False,
        bundle_litert_lm=True,
        tokenizer_path_override=str(checkpoint / "tokenizer.model"),
    )


if __name__ == "__main__":
    main()
