// Writes of a small RBM to devices, all lanes of a group at once; see writer.h. What a lane draws
// must not depend on its neighbours.
#pragma once
#include "lane_draws.h"

namespace FLEXPHASE_ISA {
namespace {

template <int N>
struct SmallWrites {
    using F = typename Vec<N>::F;
    using I = typename Vec<N>::I;
    using U = typename Vec<N>::U;
    using Ask = typename Writer<N>::Ask;

    Walk<N>& walk;
    F *W, *a, *c;
    const F *v, *h;
    I* on;  // scratch: h as a mask
    const Writer<N>& writer = walk.writer;
    const int64_t V = walk.V, H = walk.H;
    const bool visible_bias = walk.job.visible_bias;

    // The same change is asked of all active synapses of a lane. Each lane goes its own way: where
    // less than a step is asked for and chance alone decides, rarely; else always.
    void write(F rate) {
        const bool given = walk.job.device.given;
        const I learns = rate != 0.0f;
        if (writer.blurs() && !given) return write_blurred(rate, learns);
        const Ask asked = writer.ask(rate);
        const bool by_chance =
            writer.steps && writer.stochastic && !writer.noisy && !writer.uneven && !given;
        const I none = asked.down == 0.0f, rarely = by_chance ? learns & none : I{};
        const I always = learns & ~(writer.loses() ? none : rarely);
        if (any<N>(rarely)) {
            if (any<N>(rarely & (asked.chance > kUnit / 64)))
                write_rarely<false>(asked, rarely);
            else
                write_rarely<true>(asked, rarely);
        }
        if (any<N>(always)) write_always(rate, asked, always);
    }

    void write_always(F rate, const Ask& asked, I always) {
        LaneDraws<N> draw(walk);
        auto move = [&](F& theta, I active) {
            theta = writer.write(theta, rate, asked, active & always, draw);
            draw.parameter++;
        };
        for (int64_t i = 0; i < V; i++)
            for (int64_t j = 0; j < H; j++) move(W[i * H + j], (v[i] * h[j]) != 0.0f);
        for (int64_t i = 0; i < V; i++) move(a[i], visible_bias ? v[i] != 0.0f : I{});
        for (int64_t j = 0; j < H; j++) move(c[j], h[j] != 0.0f);
        walk.write_rng = draw.after(always);
    }

    // All parameters, two at a time: `draw()` makes `first` and `second`, `visit` gets one of them
    // and whether the parameter is active, in the words of `row_on`, `on_v` and `on_h`.
    template <class RowOn, class OnV, class OnH, class Draw, class Visit>
    void in_pairs(RowOn row_on, OnV on_v, OnH on_h, Draw draw, Visit visit) {
        auto row = [&](F* theta, int64_t n, auto active) {
            for (int64_t j = 0; j < n; j += 2) {
                const auto drawn = draw();
                visit(theta[j], drawn.first, active(j));
                if (j + 1 < n) visit(theta[j + 1], drawn.second, active(j + 1));
            }
        };
        for (int64_t i = 0; i < V; i++) row(W + i * H, H, row_on(i));
        if (visible_bias) row(a, V, on_v);
        row(c, H, on_h);
    }

    // A change and its noise, to all active synapses.
    void write_blurred(F rate, I learns) {
        Rng<N> g = walk.write_rng;
        typename Writer<N>::Blur change = writer.blur(rate);
        change.sd = learns ? change.sd : splat<N>(0);
        in_pairs(
            [&](int64_t i) { return [this, x = v[i]](int64_t j) { return x * h[j]; }; },
            [&](int64_t i) { return v[i]; }, [&](int64_t j) { return h[j]; },
            [&] { return bells<N>(g); },
            [&](F& theta, F bell, F active) {
                theta = writer.blurred(theta, change, bell, active);
            });
        walk.write_rng = chosen<N>(learns, g, walk.write_rng);
    }

    struct Halves {
        I first, second;  // 16 bits of one draw for each of two synapses
    };
    // Most synapses are left alone: one comparison each, with 16 of the 24 bits of the chance.
    // Where they do not decide, 8 more are drawn. To ask first whether a step is taken at all
    // (`seldom`) changes the speed, not the result.
    template <bool seldom>
    void write_rarely(const Ask& asked, I lanes) {
        Rng<N> g = walk.write_rng;
        const I chance = whole_above(asked.chance), high = chance >> 8, below = (high + 1) & lanes;
        auto visit = [&](F& theta, I drawn, I limit) {
            if (seldom && __builtin_expect(!any_less<N>(drawn, limit), 1)) return;
            I wrote = drawn < limit;
            const I undecided = wrote & (drawn == high);
            wrote &= ~undecided;
            if (__builtin_expect(any<N>(undecided), 0)) {
                Rng<N> copy = g;
                wrote |= decided(undecided, chance, copy);
                g = copy;
            }
            theta = writer.moved(theta, asked.up, wrote);
            if (writer.bounded && !writer.levels)
                theta = wrote ? writer.within(theta, writer.range) : theta;
        };
        auto draw = [&] {
            const U drawn = bits32<N>(g);
            return Halves{(I)(drawn >> 16), (I)(drawn & 0xffffu)};
        };
        for (int64_t j = 0; j < H; j++) on[j] = below & (h[j] != 0.0f);
        in_pairs(
            [&](int64_t i) {
                return [this, mask = v[i] != 0.0f](int64_t j) { return mask & on[j]; };
            },
            [&](int64_t i) { return below & (v[i] != 0.0f); }, [&](int64_t j) { return on[j]; },
            draw, visit);
        walk.write_rng = chosen<N>(lanes, g, walk.write_rng);
    }
    OUT_OF_LINE static I decided(I undecided, I chance, Rng<N>& g) {
        const Rng<N> before = g;
        const I wrote = undecided & ((bits24<N>(g) & 255) < (chance & 255));
        g = chosen<N>(undecided, g, before);
        return wrote;
    }
    // The smallest whole number that is not below x.
    static I whole_above(F x) {
        const I down = __builtin_convertvector(x, I);
        return down - (__builtin_convertvector(down, F) < x);
    }

    // A remembered sum, with the present term added; lanes of `now` are written, then forget.
    void write_remembered(F minus, I now, F* acc_W, F* acc_a, F* acc_c) {
        LaneDraws<N> draw(walk);
        auto move = [&](F& theta, F& acc, F r, F s) {
            const F sum = gate<N>(r, s, acc), change = -(walk.eta * sum);
            theta = writer.write(theta, change, writer.ask(change), now, draw);
            acc = now ? splat<N>(0) : sum;
            draw.parameter++;
        };
        for (int64_t i = 0; i < V; i++)
            for (int64_t j = 0; j < H; j++)
                move(W[i * H + j], acc_W[i * H + j], minus * v[i], h[j]);
        const F bias = splat<N>(visible_bias ? 1 : 0);
        for (int64_t i = 0; i < V; i++) move(a[i], acc_a[i], minus * v[i], bias);
        for (int64_t j = 0; j < H; j++) move(c[j], acc_c[j], minus, h[j]);
        walk.write_rng = draw.after(now);
    }
};

}  // namespace
}  // namespace FLEXPHASE_ISA
