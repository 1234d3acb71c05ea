"""What the tests know of this processor."""


def fewer_bits():
    """Returns the words for products of fewer bits in a plan: bf16 where they are faster than f32, or else 8 bits."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        words = set(file.read().split())
    has_bf16 = {"amx_tile", "amx_bf16"} <= words or {"AuthenticAMD", "avx512_bf16"} <= words
    return "in bf16" if has_bf16 else "8-bit"
