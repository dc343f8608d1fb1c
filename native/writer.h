// Writes to devices, N synapses at a time; see device.h.
#pragma once
#include "device.h"
#include "simd.h"

namespace FLEXPHASE_ISA {
namespace {

// The natural logarithm of a normal number above 0, off by 2e-7 of it at most except near 1.
template <int N>
INLINE typename Vec<N>::F log_of(typename Vec<N>::F x) {
    using F = typename Vec<N>::F;
    using I = typename Vec<N>::I;
    const I bits = (I)x - 0x3f3504f3;  // of sqrt(1/2): the rest lies between that and sqrt(2)
    const F exponent = __builtin_convertvector(bits >> 23, F);
    const F y = (F)((bits & 0x7fffff) + 0x3f3504f3) - 1.0f;
    F p = splat<N>(8.74394551e-2f);
    for (const float next : {-1.43773302e-1f, 1.49490952e-1f, -1.65606961e-1f, 1.99569777e-1f,
                             -2.50021547e-1f, 3.33341837e-1f, -4.99999881e-1f, 1.0f})
        p = fma<N>(p, y, splat<N>(next));
    return fma<N>(exponent, splat<N>(0.693147181f), p * y);
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

// A number of the bell curve from two of `uniform` (Box and Muller).
template <int N>
INLINE typename Vec<N>::F bell_of(typename Vec<N>::F u1, typename Vec<N>::F u2) {
    using F = typename Vec<N>::F;
    F length = -2.0f * log_of<N>((u1 + 0.5f) * (1 / kUnit));
    for (int k = 0; k < N; k++) length[k] = __builtin_sqrtf(length[k]);
    const F turn = u2 * (1 / kUnit) - 0.5f, half = turn < 0.0f ? -turn : turn;
    return length * sin_turns<N>(0.25f - half);
}

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

    // The nearest whole number; beyond 2^22 all steps are whole.
    static F whole(F x) {
        const F magic = splat<N>(12582912.0f), near = (x + magic) - magic;
        const F size = x < 0.0f ? -x : x;
        return size < 4194304.0f ? near : x;
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
