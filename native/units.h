// Vectors along the units of one lane. Sums run over sixteen partial sums on every instruction set,
// so that all give the same bits.
#pragma once
#include "simd.h"

namespace FLEXPHASE_ISA {
namespace {

constexpr int N = kWidth, kStreams = 16, kParts = kStreams / N;
using F = Vec<N>::F;
using I = Vec<N>::I;

INLINE int64_t whole(int64_t units) { return (units + kStreams - 1) / kStreams * kStreams; }
INLINE F& at(float* p, int64_t i) { return *(F*)(p + i); }
INLINE const F& at(const float* p, int64_t i) { return *(const F*)(p + i); }

// The same for memory that need not be aligned.
typedef float Loose __attribute__((vector_size(4 * N), aligned(4)));
INLINE F load(const float* p) { return *(const Loose*)p; }
INLINE void store(float* p, F x) { *(Loose*)p = x; }

// The sum of sixteen partial sums, in a fixed order.
INLINE float total(const F* part) {
#if defined(FLEXPHASE_ISA_avx512)
    const __m512 p = (__m512)part[0];
    const __m256 s8 = _mm256_add_ps(_mm512_castps512_ps256(p), _mm512_extractf32x8_ps(p, 1));
    const __m128 s4 = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
#elif defined(FLEXPHASE_ISA_avx2)
    const __m256 s8 = (__m256)(part[0] + part[1]);
    const __m128 s4 = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
#else
    const F s4 = (part[0] + part[2]) + (part[1] + part[3]);
#endif
    return (s4[0] + s4[2]) + (s4[1] + s4[3]);
}

// Numbers that are too small count as zero while this lives: what has decayed for thousands of
// steps must not slow us down.
struct FlushToZero {
#if defined(__SSE2__)
    unsigned before = __builtin_ia32_stmxcsr();
    FlushToZero() { __builtin_ia32_ldmxcsr(before | 0x8040); }
    ~FlushToZero() { __builtin_ia32_ldmxcsr(before); }
#endif
};

}  // namespace
}  // namespace FLEXPHASE_ISA
