// Many Boltzmann lanes along their tapes at once, one in each slot of a vector.
#pragma once
#include "boltzmann.h"
#include "walk.h"
#include "writer.h"

namespace FLEXPHASE_ISA {
namespace {

template <int N>
struct Walk {
    using F = typename Vec<N>::F;
    using I = typename Vec<N>::I;
    using U = typename Vec<N>::U;

    const RbmJob& job;
    const int64_t begin, count, V, H;
    I* x;  // bits of the stimulus
    I left{}, ticks{}, positive{}, slot{}, updates{};
    F weight[3] = {}, eta{};
    I apply[3] = {};
    Rng<N> rng{}, write_rng{};
    Writer<N> writer;
    int64_t now = 0;
    int32_t error = kFine;

    Walk(const RbmJob& job, int64_t begin, int64_t count)
        : job(job), begin(begin), count(count), V(job.visible), H(job.hidden),
          writer(job.device, [this](int k) { return lane(k); }) {}

    // Lane-major arrays to slots and back; slots without a lane repeat the last one and are not
    // written back.
    int64_t lane(int k) const { return begin + (k < count ? k : count - 1); }
    void load(F* to, const float* from, int64_t n) {
        for (int k = 0; k < N; k++)
            for (int64_t i = 0; i < n; i++) to[i][k] = from[lane(k) * n + i];
    }
    void store(const F* from, float* to, int64_t n) {
        for (int k = 0; k < count; k++)
            for (int64_t i = 0; i < n; i++) to[lane(k) * n + i] = from[i][k];
    }

    void read_rng(Rng<N>& to, const uint32_t* from, int k) const {
        from += 4 * lane(k);
        to.s0[k] = from[0];
        to.s1[k] = from[1];
        to.s2[k] = from[2];
        to.s3[k] = from[3];
    }
    void write_rng_back(const Rng<N>& from, uint32_t* to, int k) const {
        to += 4 * lane(k);
        to[0] = from.s0[k];
        to[1] = from.s1[k];
        to[2] = from.s2[k];
        to[3] = from.s3[k];
    }

    void read_phases() {
        for (int64_t w = 0; w < words(V); w++) x[w] = I{};
        for (int k = 0; k < N; k++) {
            const int64_t l = lane(k);
            for (int64_t i = 0; i < V; i++)
                x[i / 32][k] |= (int32_t)((uint32_t)(job.x[l * V + i] != 0) << (i % 32));
            left[k] = job.left[l];
            slot[k] = job.slot[l];
            updates[k] = job.updates[l];
            eta[k] = job.eta[l];
            read_rng(rng, job.rng, k);
            if (job.device.rng) read_rng(write_rng, job.device.rng, k);
            TapePhase phase;
            error = read_phase(job.tape, l, slot[k], job.remember, phase);
            if (error) return;
            set_phase(k, phase);
        }
    }
    void write_phases() {
        for (int k = 0; k < count; k++) {
            const int64_t l = lane(k);
            for (int64_t i = 0; i < V; i++)
                job.x[l * V + i] = (float)(((uint32_t)x[i / 32][k] >> (i % 32)) & 1);
            job.left[l] = left[k];
            job.slot[l] = slot[k];
            job.updates[l] = updates[k];
            write_rng_back(rng, job.rng, k);
            if (job.device.rng) write_rng_back(write_rng, job.device.rng, k);
        }
    }

    // The phase that lane k is in.
    void set_phase(int k, const TapePhase& phase) {
        ticks[k] = phase.ticks;
        positive[k] = phase.positive ? -1 : 0;
        for (int m = 0; m < 3; m++) {
            weight[m][k] = phase.weight[m];
            apply[m][k] = phase.apply[m] ? -1 : 0;
        }
    }
    bool phase_is_over() const { return any<N>(left == 0); }
    // The next phase of every lane whose phase is over.
    OUT_OF_LINE void next_phases(I over) {
        for (int k = 0; k < N && !error; k++)
            if (over[k]) next_phase(k);
    }
    void next_phase(int k) {
        slot[k] = slot[k] + 1;
        TapePhase phase;
        int64_t row;
        error = begin_phase(job.tape, lane(k), slot[k], job.remember, job.rows, phase, row);
        if (error) return;
        set_phase(k, phase);
        left[k] = phase.ticks;
        if (row < 0) return;
        const uint32_t* bits = job.data + lane(k) * job.data_stride + row * words(V);
        for (int64_t w = 0; w < words(V); w++) x[w][k] = (int32_t)bits[w];
    }
    void end_tick() { left -= 1; }

    // Weight of the local term at this tick, and whether the optimiser steps.
    F weight_now(I& step) {
        const I last = left == 1, first = (left == ticks) & ~last;
        step = last ? apply[2] : first ? apply[0] : apply[1];
        updates -= step;
        return last ? weight[2] : first ? weight[0] : weight[1];
    }

    F stimulus(int64_t i) const {
        return __builtin_convertvector((I)(((U)x[i / 32] >> (int)(i % 32)) & 1u), F);
    }
    F given_noise(int64_t unit) const {
        F u{};
        for (int k = 0; k < N; k++) u[k] = job.noise[(now * job.lanes + lane(k)) * (V + H) + unit];
        return u * kUnit;
    }
    // The generator is handed around, so that it stays in registers.
    F noise(int64_t unit, Rng<N>& g) const {
        return __builtin_expect(job.noise != nullptr, 0) ? given_noise(unit) : uniform<N>(g);
    }
    F enter_noise(int64_t unit, I where) {
        F u{};
        if (!job.tape.enter) {
            const Rng<N> before = rng;
            u = uniform<N>(rng);
            rng = chosen<N>(where, rng, before);
            return u;
        }
        for (int k = 0; k < N; k++)
            if (where[k])
                u[k] = job.tape.enter[(lane(k) * job.tape.slots + slot[k]) * (V + H) + unit];
        return u * kUnit;
    }
};

// The kernel of such a walk with N slots; none where the registers are narrower.
template <template <int> class W, int N>
constexpr SmallKernel walker() {
    if constexpr (N > kWidth)
        return SmallKernel{0, nullptr, nullptr};
    else
        return SmallKernel{N, &W<N>::scratch,
                           [](const RbmJob& job, int64_t begin, int64_t count, float* scratch) {
                               W<N> walk(job, begin, count, scratch);
                               return run(walk);
                           }};
}

}  // namespace
}  // namespace FLEXPHASE_ISA
