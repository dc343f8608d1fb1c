// Writes to devices, N synapses at a time; see device.h.
#pragma once
#include "device.h"
#include "simd.h"

namespace FLEXPHASE_ISA {
namespace {

// The square root, which rounds alike everywhere.
template <int N>
INLINE typename Vec<N>::F root(typename Vec<N>::F x) {
    using F = typename Vec<N>::F;
#if defined(__AVX512F__)
    if constexpr (N == 16) return (F)_mm512_sqrt_ps((__m512)x);
#endif
#if defined(__AVX2__)
    if constexpr (N == 8) return (F)_mm256_sqrt_ps((__m256)x);
    if constexpr (N == 4) return (F)_mm_sqrt_ps((__m128)x);
#endif
    for (int k = 0; k < N; k++) x[k] = __builtin_sqrtf(x[k]);
    return x;
}

// -2 log(x / 2^24) for x above 0, off by 3e-7 at most beside rounding.
template <int N>
INLINE typename Vec<N>::F minus_2_log(typename Vec<N>::F x) {
    using F = typename Vec<N>::F;
    using I = typename Vec<N>::I;
    const I bits = (I)x - 0x4b3504f3;  // of 2^24 sqrt(1/2): the rest lies between that and sqrt(2)
    const F exponent = __builtin_convertvector(bits >> 23, F);
    const F y = (F)((bits & 0x7fffff) + 0x3f3504f3) - 1.0f;
    F p = splat<N>(-0.236549705f);
    for (const float next :
         {0.378039718f, -0.41209349f, 0.497626781f, -0.666065991f, 1.00003934f, -2.00000644f})
        p = fma<N>(p, y, splat<N>(next));
    return fma<N>(exponent, splat<N>(-1.38629436f), p * y);
}

// sin(2 pi x) for |x| up to 1/4.
template <int N>
INLINE typename Vec<N>::F sin_turns(typename Vec<N>::F x) {
    const auto square = x * x;
    auto p = splat<N>(39.7607231f);
    for (const float next : {-76.5812836f, 81.602478f, -41.3416824f, 6.28318548f})
        p = fma<N>(p, square, splat<N>(next));
    return p * x;
}

// cos(2 pi x) for |x| up to 1/4.
template <int N>
INLINE typename Vec<N>::F cos_turns(typename Vec<N>::F x) {
    const auto square = x * x;
    auto p = splat<N>(56.242382f);
    for (const float next : {-85.2403336f, 64.9345932f, -19.739172f, 0.99999994f})
        p = fma<N>(p, square, splat<N>(next));
    return p;
}

// Two independent numbers of the bell curve.
template <int N>
struct Bells {
    typename Vec<N>::F first, second;
};

// From two draws (Box and Muller): the length, a quarter of a turn either way, and a side.
template <int N>
INLINE Bells<N> bells(Rng<N>& g) {
    using F = typename Vec<N>::F;
    using I = typename Vec<N>::I;
    const I u = bits24<N>(g) | 1;
    const typename Vec<N>::U r = bits32<N>(g);
    const F length = root<N>(minus_2_log<N>(__builtin_convertvector(u, F)));
    const F side = (F)((typename Vec<N>::U)length ^ (r & 0x80000000u));
    const F x = __builtin_convertvector((I)(r << 1) >> 8, F);
    const F turn = fma<N>(x, splat<N>(0x1p-25f), splat<N>(0x1p-26f));
    return {length * sin_turns<N>(turn), side * cos_turns<N>(turn)};
}

// One at a time; the second of a pair is kept for the next call.
template <int N>
struct BellQueue {
    typename Vec<N>::F kept{};
    bool full = false;

    typename Vec<N>::F next(Rng<N>& g) {
        full = !full;
        if (!full) return kept;
        const Bells<N> pair = bells<N>(g);
        kept = pair.second;
        return pair.first;
    }
};

// The numbers of the devices of N synapses: of N lanes, or of one lane N times.
template <int N>
struct Writer {
    using F = typename Vec<N>::F;
    using I = typename Vec<N>::I;

    bool on = false, stochastic = false, levels = false;
    bool steps = false, bounded = false, noisy = false, uneven = false, lopsided = false;
    F range{}, step{}, inverse{}, highest{}, noise{}, proportional{}, asymmetry{};

    template <class Lane>
    Writer(const DeviceJob& device, Lane lane)
        : on(device.on), stochastic(device.stochastic), levels(device.levels) {
        steps = device.step;
        bounded = device.range;
        noisy = device.noise;
        uneven = device.proportional;
        lopsided = device.asymmetry;
        for (int k = 0; k < N; k++) {
            if (bounded) range[k] = device.range[lane(k)];
            if (steps) step[k] = device.step[lane(k)];
            if (noisy) noise[k] = device.noise[lane(k)];
            if (uneven) proportional[k] = device.proportional[lane(k)];
            if (lopsided) asymmetry[k] = device.asymmetry[lane(k)];
        }
        if (steps) inverse = 1.0f / step;
        if (levels) highest = whole(range * inverse);
    }

    // The nearest whole number, ties to even; from 2^23 on all numbers are whole. Zero is +0.
    static F whole(F x) {
        const F magic = splat<N>(0x1p23f), size = x < 0.0f ? -x : x;
        const F near = (size + magic) - magic;
        return size < magic ? (x < 0.0f ? 0.0f - near : near) : x;
    }

    // What is left of a change.
    F response(F change) const {
        if (!lopsided) return change;
        return change * (change > 0.0f ? 1.0f + asymmetry : 1.0f - asymmetry);
    }
    // A change as a whole number of steps: `down`, or with that chance (of 2^24) `up`.
    struct Ask {
        F down, up, chance;
    };
    Ask ask(F change) const {
        if (levels) return rounded(response(change));
        const Ask pulses = steps ? rounded(change) : Ask{change, change, F{}};
        return {response(pulses.down), response(pulses.up), pulses.chance};
    }
    Ask rounded(F change) const {
        const F q = change / step;
        if (!stochastic) {
            const F near = whole(q) * step;
            return {near, near, F{}};
        }
        const F size = q < 0.0f ? -q : q, near = whole(size);
        const F below = near > size ? near - 1.0f : near;
        const F one = q < 0.0f ? -step : step;
        return {below * one, (below + 1.0f) * one, (size - below) * kUnit};
    }

    // Is a change of no whole step lost for certain?
    bool loses() const { return steps && !stochastic && !(uneven && levels); }

    // Weights after a write of `inc`, where `wrote`.
    F moved(F w, F inc, I wrote) const {
        F x = w + inc;
        if (levels) x = within(whole(x * inverse), highest) * step;
        return wrote ? x : w;
    }
    static F within(F x, F limit) {
        x = x < -limit ? -limit : x;
        return x > limit ? limit : x;
    }

    // Without steps, all that happens to a change is noise. Both kinds together are one bell.
    bool blurs() const { return !steps && (noisy || uneven); }
    struct Blur {
        F mean, sd;
    };
    Blur blur(F change) const {
        const F mean = response(change), own = proportional * mean;
        const F sd = root<N>(noise * noise + own * own);
        return {mean, sd < 1e18f ? sd : splat<N>(1e18f)};  // finite, also times 0
    }
    // `active` is 0 or 1.
    F blurred(F w, const Blur& change, F bell, F active) const {
        const F x = gate<N>(fma<N>(change.sd, bell, change.mean), active, w);
        return bounded ? within(x, range) : x;
    }

    // Weights where a change is asked for, `active`; `draw` gives random numbers.
    template <class Draw>
    F write(F w, F change, Ask asked, I active, Draw& draw) const {
        if (uneven && levels)
            asked = rounded(response(change) * (1.0f + proportional * draw.bell(1)));
        F inc = asked.down;
        if (steps && stochastic) inc = draw.uniform() < asked.chance ? asked.up : asked.down;
        if (uneven && !levels) inc = inc * (1.0f + proportional * draw.bell(1));
        const I wrote = active & (inc != 0.0f);
        F x = moved(w, inc, wrote);
        if (noisy) x = wrote ? x + noise * draw.bell(2) : x;
        if (bounded) x = wrote ? within(x, range) : x;
        return x;
    }
};

}  // namespace
}  // namespace FLEXPHASE_ISA
