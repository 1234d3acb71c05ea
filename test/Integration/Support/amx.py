"""Code for a processor with AMX, on one without: tiles are arrays in memory, and the rest is compiled for AVX2.

moa-codegen writes LLVM IR for sapphirerapids. Here the instructions of tiles become calls of the C functions below, which do
what Intel's manual says of them (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, TDPBF16PS), and
LLVM compiles the rest for x86-64-v3. So reads outside of arrays show, and values are right but for the order of sums.
"""
import re
import shutil
import subprocess

PROCESSOR = "sapphirerapids"
WORDS = ("GenuineIntel avx2 fma bmi2 f16c avx512f avx512bw avx512cd avx512dq avx512vl avx512_vnni avx512_bf16 avx_vnni avx512_fp16 "
         "amx_tile amx_bf16 amx_int8")

TILES = r"""
#include <math.h>
#include <stdint.h>
#include <string.h>
static __thread struct { uint8_t rows[8]; uint16_t bytes[8]; uint8_t data[8][16][64]; } tiles;
void amx_ldtilecfg(const uint8_t *config) {
  memset(&tiles, 0, sizeof tiles);
  for (int k = 0; k < 8; ++k) {
    memcpy(&tiles.bytes[k], config + 16 + 2 * k, 2);
    tiles.rows[k] = config[48 + k];
  }
}
void amx_tilerelease(void) { memset(&tiles, 0, sizeof tiles); }
void amx_tilezero(int8_t tile) { memset(tiles.data[tile], 0, sizeof tiles.data[tile]); }
void amx_tileloadd64(int8_t tile, const char *from, int64_t stride) {
  for (int r = 0; r < tiles.rows[tile]; ++r)
    memcpy(tiles.data[tile][r], from + r * stride, tiles.bytes[tile]);
}
void amx_tilestored64(int8_t tile, char *to, int64_t stride) {
  for (int r = 0; r < tiles.rows[tile]; ++r)
    memcpy(to + r * stride, tiles.data[tile][r], tiles.bytes[tile]);
}
static float element(int tile, int row, int column) {
  uint16_t half;
  memcpy(&half, &tiles.data[tile][row][2 * column], 2);
  uint32_t bits = (half & 0x7f80 ? (uint32_t)half : half & 0x8000u) << 16; /* a subnormal number is 0 */
  float value;
  memcpy(&value, &bits, 4);
  return value;
}
void amx_tdpbf16ps(int8_t to, int8_t a, int8_t b) {
  for (int m = 0; m < tiles.rows[to]; ++m)
    for (int n = 0; n < tiles.bytes[to] / 4; ++n) {
      float even = 0, odd = 0, sum;
      for (int k = 0; k < tiles.bytes[a] / 4; ++k) {
        even = fmaf(element(a, m, 2 * k), element(b, k, 2 * n), even);
        odd = fmaf(element(a, m, 2 * k + 1), element(b, k, 2 * n + 1), odd);
      }
      memcpy(&sum, &tiles.data[to][m][4 * n], 4);
      sum += even + odd;
      if (fabsf(sum) < 0x1p-126f)
        sum = 0;
      memcpy(&tiles.data[to][m][4 * n], &sum, 4);
    }
}
"""

# x·2^⌊y⌋ where the mask says so, of vectors V with integers I.
SCALE = """
define <V> @amx_scalef_{kind}(<V> %x, <V> %y, <V> %other, {mask} %mask, i32 %rounding) {{
  %floor = call <V> @llvm.floor.{v}(<V> %y)
  %power = call <I> @llvm.fptosi.sat.{i}.{v}(<V> %floor)
  %scaled = call <V> @llvm.ldexp.{v}.{i}(<V> %x, <I> %power)
  %isNaN = fcmp uno <V> %y, %y
  %value = select <{n} x i1> %isNaN, <V> %y, <V> %scaled
  %chosen = bitcast {mask} %mask to <{n} x i1>
  %result = select <{n} x i1> %chosen, <V> %value, <V> %other
  ret <V> %result
}}
"""


def scale(kind):
    """The function in place of an instruction of AVX-512 for 16 floats ("ps") or 8 doubles ("pd")."""
    n, name, element = (16, "f32", "float") if kind == "ps" else (8, "f64", "double")
    text = SCALE.format(kind=kind, mask=f"i{n}", n=n, v=f"v{n}{name}", i=f"v{n}i32")
    return text.replace("<V>", f"<{n} x {element}>").replace("<I>", f"<{n} x i32>")


# The products of four unsigned and four signed bytes, added to each number (VPDPBUSD).
DOTS = """
define <16 x i32> @amx_vpdpbusd(<16 x i32> %sum0, <64 x i8> %a, <64 x i8> %b) {{
  %x = zext <64 x i8> %a to <64 x i32>
  %y = sext <64 x i8> %b to <64 x i32>
  %p = mul <64 x i32> %x, %y
{steps}  ret <16 x i32> %sum4
}}
""".format(steps="".join(
    f"  %p{k} = shufflevector <64 x i32> %p, <64 x i32> poison, <16 x i32> <{', '.join(f'i32 {4 * n + k}' for n in range(16))}>\n"
    f"  %sum{k + 1} = add <16 x i32> %sum{k}, %p{k}\n" for k in range(4)))

# LLVM's conversion to bf16, to nearest even, which not every library of a compiler has.
ROUND = """
define weak hidden bfloat @__truncsfbf2(float %x) {
  %bits = bitcast float %x to i32
  %upper = lshr i32 %bits, 16
  %odd = and i32 %upper, 1
  %half = add i32 %odd, 32767
  %sum = add i32 %bits, %half
  %rounded = lshr i32 %sum, 16
  %quiet = or i32 %upper, 64
  %isNaN = fcmp uno float %x, %x
  %chosen = select i1 %isNaN, i32 %quiet, i32 %rounded
  %narrow = trunc i32 %chosen to i16
  %result = bitcast i16 %narrow to bfloat
  ret bfloat %result
}
"""


def find_tool(name):
    """LLVM's tool of this name, or None."""
    return shutil.which(f"{name}-22") or shutil.which(name)


def without_amx(module):
    """The LLVM IR of a kernel with calls in place of what only a processor with AVX-512 and AMX has."""
    module = re.sub(r"^declare .*@llvm\.x86\.avx512\.mask\.scalef\.(p.)\.512.*$", lambda m: scale(m[1]), module, flags=re.M)
    module = re.sub(r"@llvm\.x86\.avx512\.mask\.scalef\.(p.)\.512", r"@amx_scalef_\1", module)
    module = re.sub(r"^declare .*@llvm\.x86\.avx512\.vpdpbusd\.512.*$", lambda _: DOTS, module, flags=re.M)
    module = module.replace("@llvm.x86.avx512.vpdpbusd.512", "@amx_vpdpbusd")
    module = re.sub(r"@llvm\.x86\.((?:ld)?tile\w+|tdpbf16ps)", r"@amx_\1", module)
    module = re.sub(r"^(declare .*@amx_.*?)(?: #\d+)?$", lambda m: m[1].replace(" immarg", ""), module, flags=re.M)
    module = re.sub(r'"(target-cpu|target-features|prefer-vector-width|tune-cpu)"(="[^"]*")?', "", module)
    # The processor is another one than the code asks for.
    module, count = re.subn(r"^(define [^\n]*@checkProcessor\([^\n]*\{)\n.*?^\}", "\\1\n  ret i32 0\n}", module, flags=re.M | re.S)
    assert count == 1, "the entry points ask for no processor"
    return module if re.search(r"^define .*@__truncsfbf2\(", module, re.M) else module + ROUND


def compile_object(ir, output):
    """Compiles the LLVM IR in the file `ir` to an object, which needs `tiles(…)` beside it."""
    with open(ir, encoding="utf-8") as file:
        module = without_amx(file.read())
    with open(ir, "w", encoding="utf-8") as file:
        file.write(module)
    subprocess.run([find_tool("llc"), "-O1", "-mcpu=x86-64-v3", "--relocation-model=pic", "--filetype=obj", ir, "-o", output], check=True)


def tiles(directory):
    """Writes the functions of tiles, and returns the path."""
    path = f"{directory}/tiles.c"
    with open(path, "w", encoding="utf-8") as file:
        file.write(TILES)
    return path
