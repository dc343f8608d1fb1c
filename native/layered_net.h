// The relaxation of a layered network with symmetric weights: s_l += dt (rho(d_l) - s_l), where
// d_l = s_{l-1} W_l + c_l + feedback W_{l+1} s_{l+1}. Vectors run along the units.
#pragma once
#include <stddef.h>

#include "layered.h"
#include "units.h"

namespace FLEXPHASE_ISA {
namespace {

INLINE F madd(F a, F b, F c) { return fma<N>(a, b, c); }
INLINE F all(float x) { return splat<N>(x); }

INLINE void copy(float* to, const float* from, int64_t n) {
    __builtin_memcpy(to, from, (size_t)n * sizeof(float));
}
INLINE void clear(float* to, int64_t n) { __builtin_memset(to, 0, (size_t)n * sizeof(float)); }

struct Layer {
    int64_t below, units, wide, rows, stride;
    bool turned;
    Activation activation;
    float *W, *c, *m_W, *m_c;
    float *s, *s_kept;  // (replicas, wide)
    float* d;           // (replicas, wide): what the units receive

    void set(const LayeredLayer& from, int64_t lane) {
        below = from.below;
        units = from.units;
        wide = from.wide;
        rows = from.rows;
        stride = from.stride;
        turned = from.turned;
        activation = from.activation;
        W = from.W + lane * rows * stride;
        c = from.c + lane * wide;
        m_W = from.m_W ? from.m_W + lane * rows * stride : nullptr;
        m_c = from.m_c ? from.m_c + lane * wide : nullptr;
    }
};

// B rows of W, read once: sum += gain r W and dots += dot_gain W c.
template <int B>
INLINE void both_ways(const float* W, int64_t stride, const float* r, float gain, float* sum,
                      const float* c, float dot_gain, float* dots) {
    F factor[B], part[B][kParts];
    for (int b = 0; b < B; b++) {
        factor[b] = all(gain * r[b]);
        for (int p = 0; p < kParts; p++) part[b][p] = F{};
    }
    for (int64_t j = 0; j < stride; j += kStreams)
        for (int p = 0; p < kParts; p++) {
            const int64_t i = j + p * N;
            const F column = load(c + i);
            F s = load(sum + i);
            for (int b = 0; b < B; b++) {
                const F w = load(W + b * stride + i);
                s = madd(factor[b], w, s);
                part[b][p] = madd(w, column, part[b][p]);
            }
            store(sum + i, s);
        }
    for (int b = 0; b < B; b++) dots[b] += dot_gain * total(part[b]);
}

INLINE F sigmoid(F x) { return all(1) / (all(1) + exp_minus<N>(x)); }

struct Net {
    static constexpr int kBlock = kWidth == 16 ? 8 : kWidth == 8 ? 4 : 2;  // rows in registers

    int64_t layers, replicas;
    float dt, feedback;
    Layer layer[kMostLayers];

    Layer& top() { return layer[layers - 1]; }

    // What the units receive from the layers below and above; that of the first layer from the
    // input is in its `d` already.
    void receive() {
        for (int64_t l = 1; l < layers; l++)
            for (int64_t k = 0; k < replicas; k++)
                copy(layer[l].d + k * layer[l].wide, layer[l].c, layer[l].wide);
        for (int64_t l = 1; l < layers; l++) {
            int64_t r = 0;
            for (; r + kBlock <= layer[l].rows; r += kBlock) exchange<kBlock>(l, r);
            for (; r + 2 <= layer[l].rows; r += 2) exchange<2>(l, r);
            for (; r < layer[l].rows; r++) exchange<1>(l, r);
        }
    }
    template <int B>
    void exchange(int64_t l, int64_t r) {
        const Layer &up = layer[l], &down = layer[l - 1];
        const float* W = up.W + r * up.stride;
        for (int64_t k = 0; k < replicas; k++) {
            const float *s_up = up.s + k * up.wide, *s_down = down.s + k * down.wide;
            float *d_up = up.d + k * up.wide, *d_down = down.d + k * down.wide;
            if (up.turned)
                both_ways<B>(W, up.stride, s_up + r, feedback, d_down, s_down, 1, d_up + r);
            else
                both_ways<B>(W, up.stride, s_down + r, 1, d_up, s_up, feedback, d_down + r);
        }
    }

    void nudge(int64_t k, float strength, const float* target) {
        Layer& f = top();
        float* d = f.d + k * f.wide;
        const float* s = f.s + k * f.wide;
        for (int64_t j = 0; j < f.wide; j += N)
            store(d + j, madd(all(strength), load(target + j) - load(s + j), load(d + j)));
    }

    // All layers at once. Did anything change?
    bool relax() {
        bool changed = false;
        for (int64_t l = 0; l < layers; l++) changed |= relax(layer[l]);
        return changed;
    }
    bool relax(Layer& f) {
        const Activation& rho = f.activation;
        if (rho.curve == kSigmoid) return relax(f, [](F x) { return sigmoid(x); });
        if (rho.curve == kTanh) return relax(f, [](F x) { return sigmoid(x + x) * 2.0f - all(1); });
        const F offset = all(rho.offset), slope = all(rho.slope);
        const F low = all(rho.low), high = all(rho.high);
        return relax(f, [=](F x) {  // a NaN stays one
            x = madd(slope, x, offset);
            x = x < low ? low : x;
            return x > high ? high : x;
        });
    }
    template <class Rho>
    bool relax(Layer& f, Rho rho) {
        const F rate = all(dt);
        I changed{};
        for (int64_t k = 0; k < replicas; k++) {
            float *s = f.s + k * f.wide, *d = f.d + k * f.wide;
            for (int64_t j = 0; j < f.wide; j += N) {
                const F before = load(s + j);
                const F after = madd(rate, rho(load(d + j)) - before, before);
                changed |= after != before;
                store(s + j, after);
            }
            clear(s + f.units, f.wide - f.units);
        }
        return any<N>(changed);
    }
};

}  // namespace
}  // namespace FLEXPHASE_ISA
