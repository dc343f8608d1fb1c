// Small RBMs: N lanes side by side, one in each slot of a vector, tick by tick. Lanes in different phases differ by masks only,
// so what a lane does depends neither on its neighbours nor on the width.
#include "boltzmann.h"
#include "simd.h"

namespace FLEXPHASE_ISA {
namespace {

template <int N>
struct Group {
    using F = typename Vec<N>::F;
    using I = typename Vec<N>::I;

    const RbmJob& job;
    const int64_t begin, count, V, H;
    F *W, *a, *c, *acc_W, *acc_a, *acc_c, *v, *h, *chain_v, *chain_h, *drive;
    I* x;  // bits of the stimulus
    I left{}, ticks{}, positive{}, slot{}, updates{};
    F weight[3] = {}, eta{};
    I apply[3] = {};
    Rng<N> rng{};
    int64_t now = 0;
    int32_t error = kFine;
    bool fresh = false;  // `drive` holds c + v W of this very v and W

    Group(const RbmJob& job, int64_t begin, int64_t count, float* scratch)
        : job(job), begin(begin), count(count), V(job.visible), H(job.hidden) {
        F* p = (F*)scratch;
        auto take = [&p](int64_t n) { F* q = p; p += n; return q; };
        W = take(V * H), a = take(V), c = take(H);
        acc_W = take(job.remember ? V * H : 0), acc_a = take(V), acc_c = take(H);
        v = take(V), h = take(H), chain_v = take(V), chain_h = take(H), drive = take(H);
        x = (I*)take(words(V));
    }
    static int64_t scratch(const RbmJob& job) {
        const int64_t V = job.visible, H = job.hidden;
        return N * ((job.remember ? 2 : 1) * V * H + 4 * V + 5 * H + words(V));
    }

    // Lane-major arrays to slots and back; slots without a lane repeat the last one and are not written back.
    int64_t lane(int k) const { return begin + (k < count ? k : count - 1); }
    void load(F* to, const float* from, int64_t n) {
        for (int k = 0; k < N; k++)
            for (int64_t i = 0; i < n; i++) to[i][k] = from[lane(k) * n + i];
    }
    void store(const F* from, float* to, int64_t n) {
        for (int k = 0; k < count; k++)
            for (int64_t i = 0; i < n; i++) to[lane(k) * n + i] = from[i][k];
    }

    void read() {
        load(W, job.W, V * H), load(a, job.a, V), load(c, job.c, H), load(v, job.v, V), load(h, job.h, H);
        if (job.remember) load(acc_W, job.acc_W, V * H), load(acc_a, job.acc_a, V), load(acc_c, job.acc_c, H);
        if (job.negative_start == kPersistent) load(chain_v, job.chain_v, V), load(chain_h, job.chain_h, H);
        for (int64_t w = 0; w < words(V); w++) x[w] = I{};
        for (int k = 0; k < N; k++) {
            const int64_t l = lane(k);
            for (int64_t i = 0; i < V; i++) x[i / 32][k] |= (int32_t)((uint32_t)(job.x[l * V + i] != 0) << (i % 32));
            left[k] = job.left[l], slot[k] = job.slot[l], updates[k] = job.updates[l], eta[k] = job.eta[l];
            rng.s0[k] = job.rng[4 * l], rng.s1[k] = job.rng[4 * l + 1], rng.s2[k] = job.rng[4 * l + 2], rng.s3[k] = job.rng[4 * l + 3];
            phase(k);
        }
    }
    void write() {
        store(W, job.W, V * H), store(a, job.a, V), store(c, job.c, H), store(v, job.v, V), store(h, job.h, H);
        if (job.remember) store(acc_W, job.acc_W, V * H), store(acc_a, job.acc_a, V), store(acc_c, job.acc_c, H);
        if (job.negative_start == kPersistent) {
            keep(~positive);
            store(chain_v, job.chain_v, V), store(chain_h, job.chain_h, H);
        }
        for (int k = 0; k < count; k++) {
            const int64_t l = lane(k);
            for (int64_t i = 0; i < V; i++) job.x[l * V + i] = (float)(((uint32_t)x[i / 32][k] >> (i % 32)) & 1);
            job.left[l] = left[k], job.slot[l] = slot[k], job.updates[l] = updates[k];
            job.rng[4 * l] = rng.s0[k], job.rng[4 * l + 1] = rng.s1[k], job.rng[4 * l + 2] = rng.s2[k], job.rng[4 * l + 3] = rng.s3[k];
        }
    }

    // What the tape says of the phase that slot k is in.
    void phase(int k) {
        const Tape& t = job.tape;
        if (slot[k] < 0 || slot[k] >= t.slots) { error = kTapeTooShort; return; }
        const int64_t at = lane(k) * t.slots + slot[k];
        ticks[k] = t.ticks[at], positive[k] = t.sign[at] > 0 ? -1 : 0;
        for (int m = 0; m < 3; m++) {
            weight[m][k] = t.weight[3 * at + m], apply[m][k] = t.apply[3 * at + m] ? -1 : 0;
            if (!job.remember && weight[m][k] != 0 && !apply[m][k]) error = kNotLocal;
        }
    }

    // The next phase of every lane whose phase is over.
    void begin_phases(I over) {
        const I before = positive;
        for (int k = 0; k < N; k++)
            if (over[k]) {
                slot[k] = slot[k] + 1;
                phase(k);
                if (error) return;
                if (ticks[k] < 1) { error = kBadTicks; return; }
                left[k] = ticks[k];
                const int64_t row = job.tape.row[lane(k) * job.tape.slots + slot[k]];
                if (row >= job.rows) { error = kBadRow; return; }
                if (row >= 0)
                    for (int64_t w = 0; w < words(V); w++)
                        x[w][k] = (int32_t)job.data[lane(k) * job.data_stride + row * words(V) + w];
            }
        fresh = false;
        enter(over, before);
    }

    // Where the chain of a negative phase begins. Its first step draws v anew, so only h matters.
    void enter(I over, I before) {
        if (job.negative_start == kCarry) return;
        if (job.negative_start == kPersistent) keep(over & ~before);
        const I turn = over & ~positive;
        if (!any<N>(turn)) return;
        if (job.negative_start == kPersistent) {
            for (int64_t j = 0; j < H; j++) h[j] = turn ? chain_h[j] : h[j];
            return;
        }
        if (job.negative_start == kData) drives([this](int64_t i) { return stimulus(i); });
        for (int64_t j = 0; j < H; j++) {
            F u{};
            for (int k = 0; k < N; k++)
                if (turn[k]) u[k] = job.tape.enter[(lane(k) * job.tape.slots + slot[k]) * (V + H) + V + j];
            const F new_h = job.negative_start == kData ? coin<N>(drive[j], u) : (u < 0.5f ? splat<N>(1) : splat<N>(0));
            h[j] = turn ? new_h : h[j];
        }
    }
    void keep(I where) {
        for (int64_t i = 0; i < V; i++) chain_v[i] = where ? v[i] : chain_v[i];
        for (int64_t j = 0; j < H; j++) chain_h[j] = where ? h[j] : chain_h[j];
    }

    F stimulus(int64_t i) const { return __builtin_convertvector((I)(((typename Vec<N>::U)x[i / 32] >> (int)(i % 32)) & 1u), F); }
    F noise(int64_t unit) const {
        F u{};
        for (int k = 0; k < N; k++) u[k] = job.noise[(now * job.lanes + lane(k)) * (V + H) + unit];
        return u;
    }

    // drive = c + v W, eight units at a time.
    template <class Visible>
    void drives(Visible visible) {
        int64_t j = 0;
        for (; j + 8 <= H; j += 8) drive_block<8>(visible, j);
        for (; j < H; j++) drive_block<1>(visible, j);
    }
    template <int B, class Visible>
    void drive_block(Visible visible, int64_t j) {
        F sum[B];
        for (int b = 0; b < B; b++) sum[b] = c[j + b];
        for (int64_t i = 0; i < V; i++) {
            const F s = visible(i);
            const F* w = W + i * H + j;
            for (int b = 0; b < B; b++) sum[b] = gate<N>(w[b], s, sum[b]);
        }
        for (int b = 0; b < B; b++) drive[j + b] = sum[b];
    }

    template <int B>
    void visible_block(int64_t i) {
        F sum[B];
        for (int b = 0; b < B; b++) sum[b] = a[i + b];
        const F* w = W + i * H;
        for (int64_t j = 0; j < H; j++) {
            const F s = h[j];
            for (int b = 0; b < B; b++) sum[b] = gate<N>(w[b * H + j], s, sum[b]);
        }
        for (int b = 0; b < B; b++) {
            const F u = job.noise ? noise(i + b) : uniform<N>(rng);
            v[i + b] = positive ? stimulus(i + b) : coin<N>(sum[b], u);
        }
    }

    // Visible given hidden where free, then hidden given visible. A lane draws noise for its visible units only where it is free.
    void step() {
        if (any<N>(~positive)) {
            const Rng<N> before = rng;
            int64_t i = 0;
            for (; i + 8 <= V; i += 8) visible_block<8>(i);
            for (; i < V; i++) visible_block<1>(i);
            const auto clamped = (typename Vec<N>::U)positive;
            rng.s0 = (before.s0 & clamped) | (rng.s0 & ~clamped), rng.s1 = (before.s1 & clamped) | (rng.s1 & ~clamped);
            rng.s2 = (before.s2 & clamped) | (rng.s2 & ~clamped), rng.s3 = (before.s3 & clamped) | (rng.s3 & ~clamped);
            fresh = false;
        } else if (!fresh) {
            for (int64_t i = 0; i < V; i++) v[i] = stimulus(i);
        }
        if (!fresh) drives([this](int64_t i) { return v[i]; });
        fresh = true;
        for (int64_t j = 0; j < H; j++) h[j] = coin<N>(drive[j], job.noise ? noise(V + j) : uniform<N>(rng));
    }

    // The local term is -v h, -v, -h in both phases; theta -= eta times what was gathered.
    void learn() {
        const I last = left == 1, first = (left == ticks) & ~last;
        const F w = last ? weight[2] : first ? weight[0] : weight[1];
        const I now = last ? apply[2] : first ? apply[0] : apply[1];
        updates -= now;
        if (job.remember) return remembered(w, now);
        const F rate = now ? eta * w : splat<N>(0);
        if (!any<N>(rate != 0.0f)) return;
        fresh = false;
        for (int64_t i = 0; i < V; i++) {
            const F r = rate * v[i];
            F* w = W + i * H;
            for (int64_t j = 0; j < H; j++) w[j] = gate<N>(r, h[j], w[j]);
            if (job.visible_bias) a[i] += r;
        }
        for (int64_t j = 0; j < H; j++) c[j] = gate<N>(rate, h[j], c[j]);
    }
    void remembered(F w, I now) {
        const bool adds = any<N>(w != 0.0f), steps = any<N>(now);
        if (!adds && !steps) return;
        const F minus = -w, zero = splat<N>(0);
        auto move = [&](F& theta, F& acc, F r, F s) {
            const F sum = gate<N>(r, s, acc);
            theta = now ? theta - eta * sum : theta;
            acc = now ? zero : sum;
        };
        auto add = [&](F& acc, F r, F s) { acc = gate<N>(r, s, acc); };
        const F bias = splat<N>(job.visible_bias ? 1 : 0);
        fresh = fresh && !steps;
        for (int64_t i = 0; i < V; i++) {
            const F r = minus * v[i];
            F *wi = W + i * H, *gi = acc_W + i * H;
            if (steps) for (int64_t j = 0; j < H; j++) move(wi[j], gi[j], r, h[j]);
            else for (int64_t j = 0; j < H; j++) add(gi[j], r, h[j]);
            move(a[i], acc_a[i], r, bias);
        }
        for (int64_t j = 0; j < H; j++) move(c[j], acc_c[j], minus, h[j]);
    }

    int32_t run() {
        read();
        for (now = 0; now < job.ticks && !error; now++) {
            const I over = left == 0;
            if (any<N>(over)) begin_phases(over);
            if (error) break;
            step();
            learn();
            left -= 1;
        }
        if (!error) write();
        return error;
    }
};

template <int N>
constexpr SmallKernel small() {
    if constexpr (N > kWidth) return SmallKernel{0, nullptr, nullptr};
    else return SmallKernel{N, &Group<N>::scratch, [](const RbmJob& job, int64_t begin, int64_t count, float* scratch) {
        return Group<N>(job, begin, count, scratch).run();
    }};
}

}  // namespace

extern const WideKernel wide;
extern const Kernels kernels;
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
const Kernels kernels{TEXT(FLEXPHASE_ISA), &wide, {small<4>(), small<8>(), small<16>()}};

}  // namespace FLEXPHASE_ISA
