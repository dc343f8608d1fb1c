// Vectors of N floats, one for each of N lanes or units. Everything rounds alike on every
// instruction set: what is fused says so (`fma`), or has an exact product because one factor is 0
// or 1 (`gate`).
#pragma once
#include <cstdint>
#include <initializer_list>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace FLEXPHASE_ISA {
namespace {

#if defined(FLEXPHASE_ISA_avx512)
constexpr int kWidth = 16;
#elif defined(FLEXPHASE_ISA_avx2)
constexpr int kWidth = 8;
#else
constexpr int kWidth = 4;  // SSE2, NEON, or whatever the compiler makes of it
#endif

template <int N>
struct Vec {
    typedef float F __attribute__((vector_size(4 * N), aligned(4 * N)));
    typedef int32_t I __attribute__((vector_size(4 * N), aligned(4 * N)));
    typedef uint32_t U __attribute__((vector_size(4 * N), aligned(4 * N)));
};

#define INLINE static inline __attribute__((always_inline))
// For what happens once a phase: it stays out of the loop over the ticks.
#define OUT_OF_LINE __attribute__((noinline))

// The casts between vectors of one size keep the bits.
template <int N>
INLINE typename Vec<N>::F splat(float x) {
    return typename Vec<N>::F{} + x;
}

// a * s + c where s is 0 or 1 in every slot: no rounding in the product, so fused and not fused
// agree.
template <int N>
INLINE typename Vec<N>::F gate(typename Vec<N>::F a, typename Vec<N>::F s, typename Vec<N>::F c) {
#if defined(__AVX512F__)
    if constexpr (N == 16)
        return (typename Vec<N>::F)_mm512_fmadd_ps((__m512)a, (__m512)s, (__m512)c);
#endif
#if defined(__FMA__)
    if constexpr (N == 8)
        return (typename Vec<N>::F)_mm256_fmadd_ps((__m256)a, (__m256)s, (__m256)c);
#endif
    return a * s + c;
}

#if defined(__FMA__) || defined(__FP_FAST_FMAF)
constexpr bool kHasFma = true;
#else
constexpr bool kHasFma = false;  // SSE2: a call for each slot
#endif

// a * b + c, rounded once; or, where not `fused`, twice.
template <int N, bool fused = true>
INLINE typename Vec<N>::F fma(typename Vec<N>::F a, typename Vec<N>::F b, typename Vec<N>::F c) {
    using F = typename Vec<N>::F;
    if constexpr (!fused) return a * b + c;
#if defined(__AVX512F__)
    if constexpr (N == 16) return (F)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#endif
#if defined(__FMA__)
    if constexpr (N == 8) return (F)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
    if constexpr (N == 4) return (F)_mm_fmadd_ps((__m128)a, (__m128)b, (__m128)c);
#endif
    for (int k = 0; k < N; k++) c[k] = __builtin_fmaf(a[k], b[k], c[k]);
    return c;
}

template <int N>
INLINE bool any(typename Vec<N>::I m) {
#if defined(__AVX512F__)
    if constexpr (N == 16) return _mm512_test_epi32_mask((__m512i)m, (__m512i)m) != 0;
#endif
#if defined(__AVX2__)
    if constexpr (N == 8) return !_mm256_testz_si256((__m256i)m, (__m256i)m);
#endif
    int32_t r = 0;
    for (int k = 0; k < N; k++) r |= m[k];
    return r != 0;
}

// Is a slot of a below that of b?
template <int N>
INLINE bool any_less(typename Vec<N>::I a, typename Vec<N>::I b) {
#if defined(__AVX512F__)
    if constexpr (N == 16) return _mm512_cmplt_epi32_mask((__m512i)a, (__m512i)b) != 0;
#endif
    return any<N>(a < b);
}

// min(max(x, -86), 86); NaN stays.
template <int N>
INLINE typename Vec<N>::F within_86(typename Vec<N>::F x) {
    using F = typename Vec<N>::F;
    const F lo = splat<N>(-86.0f), hi = splat<N>(86.0f);
#if defined(__AVX512F__)
    if constexpr (N == 16)
        return (F)_mm512_min_ps((__m512)hi, _mm512_max_ps((__m512)lo, (__m512)x));
#endif
#if defined(__AVX2__)
    if constexpr (N == 8) return (F)_mm256_min_ps((__m256)hi, _mm256_max_ps((__m256)lo, (__m256)x));
#endif
    x = x < lo ? lo : x;
    return x > hi ? hi : x;
}

// e^-x = 2^t = 2^n 2^r with n = round(t) and r in [-1/2, 1/2]; the minimax polynomial is off
// by 7.5e-8 at most, and |t| stays below 125.
template <int N, bool fused = true>
INLINE typename Vec<N>::F exp_minus(typename Vec<N>::F x) {
    using F = typename Vec<N>::F;
    using I = typename Vec<N>::I;
    x = within_86<N>(x);
    // 1.5 2^23: adding it rounds to an integer, which is then in the low bits.
    const F magic = splat<N>(12582912.0f);
    const F log2_e = splat<N>(-1.44269504f);
    const F shifted = fma<N, fused>(x, log2_e, magic);
    const F r = fma<N, fused>(x, log2_e, magic - shifted);
    F p = splat<N>(1.32764725e-3f);
    for (const float next :
         {9.67554096e-3f, 5.55071309e-2f, 2.40221202e-1f, 6.93146944e-1f, 1.00000012f})
        p = fma<N, fused>(p, r, splat<N>(next));
    return (F)((I)p + ((I)shifted << 23));  // times 2^n: n is added to the exponent
}

// Noise is uniform on the whole numbers below this; scaling by a power of two changes no
// comparison.
constexpr float kUnit = 0x1p24f;

// 1 with probability sigmoid(x): u < 1 / (1 + e^-x) without the division. False, hence 0, where x
// is NaN. Where fused arithmetic is slow the other kind decides, except so close to the threshold
// that the two, which differ by 1e-6 at most, might not agree.
template <int N>
INLINE typename Vec<N>::F coin(typename Vec<N>::F x, typename Vec<N>::F u) {
    const auto unit = splat<N>(kUnit);
    auto scaled = fma<N, kHasFma>(u, exp_minus<N, kHasFma>(x), u);
    if constexpr (!kHasFma)
        if (any<N>((scaled > unit * 0.99999f) & (scaled < unit * 1.00001f)))
            scaled = fma<N>(u, exp_minus<N>(x), u);
    return scaled < unit ? splat<N>(1.0f) : splat<N>(0.0f);
}

// xoshiro128+ (Blackman and Vigna), one generator per slot: the variant made for floats, of which
// the 24 upper bits are taken.
template <int N>
struct Rng {
    using U = typename Vec<N>::U;
    U s0, s1, s2, s3;
};

template <int N>
INLINE typename Vec<N>::U rotl(typename Vec<N>::U x, int k) {
    return (x << k) | (x >> (32 - k));
}

// Slot by slot: where the mask is set those of a, else those of b.
template <int N>
INLINE Rng<N> chosen(typename Vec<N>::I mask, const Rng<N>& a, const Rng<N>& b) {
    return {mask ? a.s0 : b.s0, mask ? a.s1 : b.s1, mask ? a.s2 : b.s2, mask ? a.s3 : b.s3};
}

template <int N>
INLINE typename Vec<N>::U bits32(Rng<N>& g) {
    const auto r = g.s0 + g.s3;
    const auto t = g.s1 << 9;
    // Exclusive or of three: one instruction in AVX-512.
    g = {g.s0 ^ g.s3 ^ g.s1, g.s1 ^ g.s2 ^ g.s0, g.s2 ^ g.s0 ^ t, rotl<N>(g.s3 ^ g.s1, 11)};
    return r;
}

template <int N>
INLINE typename Vec<N>::I bits24(Rng<N>& g) {
    return (typename Vec<N>::I)(bits32<N>(g) >> 8);
}

template <int N>
INLINE typename Vec<N>::F uniform(Rng<N>& g) {
    return __builtin_convertvector(bits24<N>(g), typename Vec<N>::F);
}

}  // namespace
}  // namespace FLEXPHASE_ISA
