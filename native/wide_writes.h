// Writes of a wide RBM to devices, N synapses of one lane at once; see writer.h.
#pragma once
#include "units.h"
#include "writer.h"

namespace FLEXPHASE_ISA {
namespace {

template <class Lane>
struct WideWrites {
    using Ask = Writer<N>::Ask;

    Lane& lane;
    const Writer<N>& writer = lane.writer;
    const int64_t V = lane.V, H = lane.H, Hp = lane.Hp;
    int part = 0;                      // of the generators
    BellQueue<N> queue[kParts] = {};
    int64_t parameter = 0, count = N;  // the first of the N in the order of JAX, and how many count

    F uniform() {
        if (__builtin_expect(lane.job.device.given != nullptr, 0)) return given(0) * kUnit;
        return FLEXPHASE_ISA::uniform<N>(lane.write_rng[part]);
    }
    F bell(int which) {
        if (__builtin_expect(lane.job.device.given != nullptr, 0)) return given(which);
        return queue[part].next(lane.write_rng[part]);
    }
    F given(int which) const {
        const DeviceJob& d = lane.job.device;
        const int64_t row = (lane.now * lane.job.lanes + lane.l) * 3 + which;
        F x{};
        for (int64_t k = 0; k < count; k++) x[k] = d.given[row * d.parameters + parameter + k];
        return x;
    }
    // For n parameters from number `first` on, N at a time; the padding draws too, so that all
    // widths draw alike.
    template <class Visit>
    void each(int64_t n, int64_t first, Visit visit) {
        for (int64_t j = 0; j < whole(n); j += N) {
            part = j / N % kParts;
            parameter = first + j;
            count = n - j < 0 ? 0 : n - j < N ? n - j : N;
            visit(j);
        }
    }

    // The same change is asked of all active synapses. Returns: have the drives of hidden units
    // changed?
    bool write(float rate) {
        const F change = splat<N>(rate);
        const Ask asked = writer.ask(change);
        if (writer.loses() && asked.down[0] == 0.0f) return false;
        const bool blurs = writer.blurs() && !lane.job.device.given;
        const Writer<N>::Blur blur = writer.blur(change);
        I wrote{};
        auto row = [&](float* theta, int64_t n, int64_t first, const float* s) {
            each(n, first, [&](int64_t j) {
                const F old = at(theta, j);
                at(theta, j) = blurs ? writer.blurred(old, blur, bell(2), at(s, j))
                                     : writer.write(old, change, asked, at(s, j) != 0.0f, *this);
                wrote |= at(theta, j) != old;
            });
        };
        for (int64_t k = 0; k < lane.count; k++)
            row(lane.W + lane.active[k] * Hp, H, lane.active[k] * H, lane.h);
        row(lane.c, H, V * H + V, lane.h);
        const bool drives_changed = any<N>(wrote);
        if (lane.job.visible_bias) row(lane.a, V, V * H, lane.v);
        return drives_changed;
    }

    // Every synapse is asked for a change of its own, and forgets it.
    void write_remembered() {
        auto row = [&](float* theta, float* acc, int64_t n, int64_t first) {
            each(n, first, [&](int64_t j) {
                const F sum = at(acc, j), change = -(lane.eta * sum), old = at(theta, j);
                at(theta, j) = writer.write(old, change, writer.ask(change), sum != 0.0f, *this);
                at(acc, j) = splat<N>(0);
            });
        };
        for (int64_t i = 0; i < V; i++) row(lane.W + i * Hp, lane.acc_W + i * Hp, H, i * H);
        row(lane.a, lane.acc_a, V, V * H);
        row(lane.c, lane.acc_c, H, V * H + V);
    }
};

}  // namespace
}  // namespace FLEXPHASE_ISA
