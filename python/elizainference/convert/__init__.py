"""From one model format to another.

    from elizainference.convert import gguf_to_mlx

    gguf_to_mlx("SmolLM2-135M-Instruct.Q4_1.gguf", "bundle/text/SmolLM2-135M")

writes the directory that the MLX backend and mlx-lm read. Nothing but the standard library is needed.
"""

from elizainference.convert._mlx import DTYPES, count_values, gguf_to_mlx

__all__ = ["DTYPES", "count_values", "gguf_to_mlx"]
