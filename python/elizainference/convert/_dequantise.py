"""The types of tensors in a GGUF file, and their values as floats. The layouts are those of ggml's ggml-common.h.

In plain Python, since a conversion happens once: a hundred million values take about half a minute.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class TensorType:
    """A type: blocks of `block` values in `size` bytes each.

    Attributes:
      values: the floats of some blocks.
    """

    name: str
    block: int
    size: int
    values: Callable[[bytes], array[float]]

    def bytes_of(self, elements: int) -> int:
        """Of so many values, a multiple of the block."""
        return elements // self.block * self.size


# A byte's two halves, for bytes.translate.
_LOW = bytes(byte & 15 for byte in range(256))
_HIGH = bytes(byte >> 4 for byte in range(256))


def _f32(data: bytes) -> array[float]:
    return array("f", struct.unpack(f"<{len(data) // 4}f", data))


def _f16(data: bytes) -> array[float]:
    return array("f", struct.unpack(f"<{len(data) // 2}e", data))


def _bf16(data: bytes) -> array[float]:
    wide = bytearray(2 * len(data))
    wide[2::4], wide[3::4] = data[0::2], data[1::2]
    return _f32(bytes(wide))


def _blocks(data: bytes, size: int) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


def _nibbles(packed: bytes) -> bytes:
    return packed.translate(_LOW) + packed.translate(_HIGH)


def _with_high_bits(packed: bytes, high: bytes) -> list[int]:
    bits = int.from_bytes(high, "little")
    return [nibble | (bits >> i & 1) << 4 for i, nibble in enumerate(_nibbles(packed))]


def _q4_0(data: bytes) -> array[float]:
    out = array("f")
    for block in _blocks(data, 18):
        (d,) = struct.unpack_from("<e", block)
        out.extend([d * (q - 8) for q in _nibbles(block[2:])])
    return out


def _q4_1(data: bytes) -> array[float]:
    out = array("f")
    for block in _blocks(data, 20):
        d, m = struct.unpack_from("<2e", block)
        levels = [d * q + m for q in range(16)]
        out.extend([levels[q] for q in _nibbles(block[4:])])
    return out


def _q5_0(data: bytes) -> array[float]:
    out = array("f")
    for block in _blocks(data, 22):
        (d,) = struct.unpack_from("<e", block)
        out.extend([d * (q - 16) for q in _with_high_bits(block[6:], block[2:6])])
    return out


def _q5_1(data: bytes) -> array[float]:
    out = array("f")
    for block in _blocks(data, 24):
        d, m = struct.unpack_from("<2e", block)
        out.extend([d * q + m for q in _with_high_bits(block[8:], block[4:8])])
    return out


def _q8_0(data: bytes) -> array[float]:
    out = array("f")
    for block in _blocks(data, 34):
        d, *q = struct.unpack("<e32b", block)
        out.extend([d * x for x in q])
    return out


def _scales_k4(packed: bytes) -> tuple[list[int], list[int]]:
    """The eight scales and minima of a Q4_K or Q5_K block, six bits each."""
    scales = [packed[i] & 63 for i in range(4)]
    minima = [packed[i + 4] & 63 for i in range(4)]
    scales += [packed[i + 8] & 15 | packed[i] >> 6 << 4 for i in range(4)]
    minima += [packed[i + 8] >> 4 | packed[i + 4] >> 6 << 4 for i in range(4)]
    return scales, minima


def _q4_k(data: bytes) -> array[float]:
    out = array("f")
    for block in _blocks(data, 144):
        d, dmin = struct.unpack_from("<2e", block)
        scales, minima = _scales_k4(block[4:16])
        for pair in range(4):
            packed = block[16 + 32 * pair : 48 + 32 * pair]
            for part, nibbles in enumerate((packed.translate(_LOW), packed.translate(_HIGH))):
                scale, minimum = d * scales[2 * pair + part], dmin * minima[2 * pair + part]
                levels = [scale * q - minimum for q in range(16)]
                out.extend([levels[q] for q in nibbles])
    return out


def _q5_k(data: bytes) -> array[float]:
    out = array("f")
    for block in _blocks(data, 176):
        d, dmin = struct.unpack_from("<2e", block)
        scales, minima = _scales_k4(block[4:16])
        high = block[16:48]
        for pair in range(4):
            packed = block[48 + 32 * pair : 80 + 32 * pair]
            for part, nibbles in enumerate((packed.translate(_LOW), packed.translate(_HIGH))):
                group = 2 * pair + part
                scale, minimum = d * scales[group], dmin * minima[group]
                levels = [scale * q - minimum for q in range(32)]
                out.extend([levels[q | (h >> group & 1) << 4] for q, h in zip(nibbles, high, strict=True)])
    return out


def _q6_k(data: bytes) -> array[float]:
    out = array("f")
    for block in _blocks(data, 210):
        scales = struct.unpack_from("<16b", block, 192)
        (d,) = struct.unpack_from("<e", block, 208)
        for half in range(2):
            low, high = block[64 * half : 64 * half + 64], block[128 + 32 * half : 160 + 32 * half]
            for quarter in range(4):
                nibbles = low[32 * (quarter & 1) :][:32].translate(_HIGH if quarter > 1 else _LOW)
                for part in range(2):
                    scale = d * scales[8 * half + 2 * quarter + part]
                    cut = slice(16 * part, 16 * part + 16)
                    out.extend(
                        [
                            scale * ((q | (h >> 2 * quarter & 3) << 4) - 32)
                            for q, h in zip(nibbles[cut], high[cut], strict=True)
                        ]
                    )
    return out


# By their number in the file.
TYPES = {
    0: TensorType("F32", 1, 4, _f32),
    1: TensorType("F16", 1, 2, _f16),
    2: TensorType("Q4_0", 32, 18, _q4_0),
    3: TensorType("Q4_1", 32, 20, _q4_1),
    6: TensorType("Q5_0", 32, 22, _q5_0),
    7: TensorType("Q5_1", 32, 24, _q5_1),
    8: TensorType("Q8_0", 32, 34, _q8_0),
    12: TensorType("Q4_K", 256, 144, _q4_k),
    13: TensorType("Q5_K", 256, 176, _q5_k),
    14: TensorType("Q6_K", 256, 210, _q6_k),
    30: TensorType("BF16", 1, 2, _bf16),
}
