// The first layer of a layered network. The input x is fixed during a phase, so x W is computed
// once, over the inputs that are not silent. Steps of the optimiser within a phase subtract
// eta x a each, for some vector a over the units, so that W is written once, at the end of the
// phase: until then `gathered` holds the sum of the a, and the drive c + x W moves by
// -eta (|x|^2 + 1) a. Replicas have an x and a sum each, and move each other's drives by their
// scalar products.
//
// Momentum m = mu m + x a, W -= eta m moves the rows of silent inputs as well. They make up for it
// when they are next read, in closed form; so does the part of m that was there when a phase began.
#pragma once
#include "layered_net.h"

namespace FLEXPHASE_ISA {
namespace {

// Inputs that are not silent.
struct Active {
    int32_t* index;
    float* value;
    int64_t count;

    void find(const float* x, int64_t n) {
        count = 0;
        for (int64_t i = 0; i < n; i++) {
            index[count] = (int32_t)i;
            value[count] = x[i];
            count += x[i] != 0;
        }
    }
};

// to = from + sum over the active inputs of x_i W_i.
template <int B>
INLINE void product_block(const Active& in, const float* W, int64_t wide, const float* from,
                          float* to) {
    F sum[B];
    for (int b = 0; b < B; b++) sum[b] = load(from + b * N);
    for (int64_t k = 0; k < in.count; k++) {
        const F x = all(in.value[k]);
        const float* row = W + in.index[k] * wide;
        for (int b = 0; b < B; b++) sum[b] = madd(x, load(row + b * N), sum[b]);
    }
    for (int b = 0; b < B; b++) store(to + b * N, sum[b]);
}
inline void product(const Active& in, const float* W, int64_t wide, const float* from, float* to) {
    int64_t j = 0;
    for (; j + 8 * N <= wide; j += 8 * N) product_block<8>(in, W + j, wide, from + j, to + j);
    for (; j < wide; j += N) product_block<1>(in, W + j, wide, from + j, to + j);
}

// x a, with the sum of the traces of momentum that a stands for in `a` and the last one in `trace`.
struct Factor {
    const float *x, *a, *trace;
};

struct InputLayer {
    int64_t replicas, inputs, wide;
    float eta, momentum;
    float *W, *c, *m_W, *m_c;
    float *gathered, *trace;  // (replicas, wide): sum over the steps, and momentum's trace of the a
    int32_t* deferred;        // steps that a row of W has missed
    int32_t steps;            // gathered so far
    float power, powers;      // momentum^steps, and the sum of momentum^1 ... momentum^steps
    bool fresh, paired;       // are `drive` and `gram` up to date?
    float *x, *drive, *drive_m, *gram, *value;
    Active* active;
    Factor* factor;
    int32_t* used;

    int64_t padded() const { return whole(inputs); }

    template <class Room>
    void lay_out(Room& room) {
        x = room.floats(replicas * padded());
        drive = room.floats(replicas * wide);
        drive_m = room.floats(replicas * wide);
        gram = room.floats(replicas * replicas);
        value = room.floats(2 * replicas);
        used = room.ints(2 * replicas);
        factor = room.template many<Factor>(2 * replicas);
        active = room.template many<Active>(replicas);
        for (int64_t k = 0; k < replicas; k++) {
            int32_t* index = room.ints(inputs + 1);
            float* values = room.floats(inputs + 1);
            if (active) active[k] = {index, values, 0};
        }
    }
    void set(float rate, float mu, int32_t gathered_steps) {
        eta = rate;
        momentum = mu;
        fresh = paired = false;
        nothing_gathered();
        while (steps < gathered_steps) count_step();
    }
    void nothing_gathered() {
        steps = 0;
        power = 1;
        powers = 0;
    }
    void count_step() {
        steps++;
        power *= momentum;
        powers += power;
    }

    void show(int64_t k, const float* from) {
        copy(x + k * padded(), from, inputs);
        clear(x + k * padded() + inputs, padded() - inputs);
        active[k].find(from, inputs);
        fresh = false;
    }

    // drive = c + x W, and the same of the traces.
    void begin() {
        for (int64_t k = 0; k < replicas; k++) {
            if (momentum != 0)
                for (int64_t i = 0; i < active[k].count; i++) catch_up(active[k].index[i]);
            product(active[k], W, wide, c, drive + k * wide);
            if (momentum != 0) product(active[k], m_W, wide, m_c, drive_m + k * wide);
        }
        fresh = true;
        paired = false;
    }
    // Scalar products of the inputs, with 1 for the bias.
    void pair() {
        for (int64_t k = 0; k < replicas; k++)
            for (int64_t i = 0; i <= k; i++) {
                const float *one = x + k * padded(), *other = x + i * padded();
                F part[kParts] = {};
                for (int64_t j = 0; j < padded(); j += kStreams)
                    for (int p = 0; p < kParts; p++)
                        part[p] = madd(load(one + j + p * N), load(other + j + p * N), part[p]);
                gram[k * replicas + i] = total(part) + 1;
                gram[i * replicas + k] = gram[k * replicas + i];
            }
        paired = true;
    }
    // What the units receive from the input now.
    void receive(float* d) {
        if (!fresh) begin();
        if (!steps) return copy(d, drive, replicas * wide);
        if (!paired) pair();
        for (int64_t k = 0; k < replicas; k++) {
            float* to = d + k * wide;
            const float* from = drive + k * wide;
            for (int64_t i = 0; i < replicas; i++) {
                add(to, from, -eta * gram[k * replicas + i], gathered + i * wide);
                from = to;
            }
            if (momentum != 0) add(to, to, -eta * powers, drive_m + k * wide);
        }
    }
    // to = from + times what
    void add(float* to, const float* from, float times, const float* what) const {
        for (int64_t j = 0; j < wide; j += N)
            store(to + j, madd(all(times), load(what + j), load(from + j)));
    }

    // One more step with the terms x a; `write_gathered` writes it.
    void gather(const float* a) {
        for (int64_t j = 0; j < replicas * wide; j += N) {
            F term = load(a + j);
            if (momentum != 0) {
                term = madd(all(momentum), load(trace + j), term);
                store(trace + j, term);
            }
            store(gathered + j, load(gathered + j) + term);
        }
        count_step();
    }
    void write_gathered() {
        if (!steps) return;
        for (int64_t k = 0; k < replicas; k++) {
            const float* last = trace ? trace + k * wide : nullptr;
            factor[k] = {x + k * padded(), gathered + k * wide, last};
        }
        write_rows(replicas);
        clear(gathered, replicas * wide);
        if (trace) clear(trace, replicas * wide);
    }
    // One step at once, with the terms x a and those of other inputs.
    void step_now(const float* a, const float* other_x, const float* other_a) {
        write_gathered();
        for (int64_t k = 0; k < replicas; k++) {
            factor[k] = {x + k * padded(), a + k * wide, a + k * wide};
            const float* other = other_a + k * wide;
            factor[replicas + k] = {other_x + k * padded(), other, other};
        }
        count_step();
        write_rows(2 * replicas);
    }

    // W -= eta (powers m + sum of x a), m = power m + sum of x trace.
    void write_rows(int64_t factors) {
        if (factors == 1 && momentum == 0) {
            for (int64_t k = 0; k < active[0].count; k++) {
                float* row = W + active[0].index[k] * wide;
                add(row, row, -eta * active[0].value[k], factor[0].a);
            }
        } else {
            for (int64_t i = 0; i < inputs; i++) {
                const int64_t n = choose_factors(i, factors);
                if (n == 0) {
                    if (momentum != 0) deferred[i] += steps;
                    continue;
                }
                if (momentum != 0) catch_up(i);
                write_row(W + i * wide, momentum != 0 ? m_W + i * wide : nullptr, n);
            }
        }
        for (int64_t f = 0; f < factors; f++) {
            used[f] = (int32_t)f;
            value[f] = 1;
        }
        write_row(c, m_c, factors);
        nothing_gathered();
        fresh = false;
    }
    // The factors whose input number i is not silent.
    int64_t choose_factors(int64_t i, int64_t factors) {
        int64_t n = 0;
        for (int64_t f = 0; f < factors; f++) {
            used[n] = (int32_t)f;
            value[n] = factor[f].x[i];
            n += factor[f].x[i] != 0;
        }
        return n;
    }
    void write_row(float* w, float* m, int64_t n) const {
        int64_t j = 0;
        for (; j + 4 * N <= wide; j += 4 * N) write_block<4>(w, m, n, j);
        for (; j < wide; j += N) write_block<1>(w, m, n, j);
    }
    template <int B>
    void write_block(float* w, float* m, int64_t n, int64_t j) const {
        F sum[B] = {}, traces[B] = {};
        for (int64_t f = 0; f < n; f++) {
            const Factor& from = factor[used[f]];
            const F x = all(value[f]);
            for (int b = 0; b < B; b++) sum[b] = madd(x, load(from.a + j + b * N), sum[b]);
            if (m)
                for (int b = 0; b < B; b++)
                    traces[b] = madd(x, load(from.trace + j + b * N), traces[b]);
        }
        for (int b = 0; b < B; b++, j += N) {
            if (m) {
                const F before = load(m + j);
                sum[b] = madd(all(powers), before, sum[b]);
                store(m + j, madd(all(power), before, traces[b]));
            }
            store(w + j, madd(all(-eta), sum[b], load(w + j)));
        }
    }
    // The steps that a row has missed: W -= eta (mu + ... + mu^k) m, m *= mu^k.
    void catch_up(int64_t i) {
        if (!deferred[i]) return;
        const double mu = momentum, decay = __builtin_pow(mu, (double)deferred[i]);
        const F down = all((float)(-eta * mu * (1 - decay) / (1 - mu))), shrink = all((float)decay);
        float *w = W + i * wide, *m = m_W + i * wide;
        for (int64_t j = 0; j < wide; j += N) {
            const F before = load(m + j);
            store(w + j, madd(down, before, load(w + j)));
            store(m + j, before * shrink);
        }
        deferred[i] = 0;
    }
};

}  // namespace
}  // namespace FLEXPHASE_ISA
