// Small RBMs: N lanes side by side, one in each slot of a vector, tick by tick. Lanes in different
// phases differ by masks only, so what a lane does depends neither on its neighbours nor on the
// width.
#include "small_writes.h"

namespace FLEXPHASE_ISA {
namespace {

template <int N>
struct Group : Walk<N> {
    using Base = Walk<N>;
    using Base::job, Base::V, Base::H, Base::x, Base::left, Base::positive, Base::rng, Base::now,
        Base::error, Base::eta;
    using typename Base::F;
    using typename Base::I;
    static constexpr int kBlock = kWidth < 16 ? 4 : 8;  // sums that the registers hold
    using Base::load, Base::store, Base::stimulus, Base::noise, Base::writer;

    F *W, *a, *c, *acc_W, *acc_a, *acc_c, *v, *h, *chain_v, *chain_h;
    I* on;                                  // for writes to devices
    F *drive_v, *drive_h;                   // a + W h and c + v W,
    bool fresh_v = false, fresh_h = false;  // of these very parameters and units?

    Group(const RbmJob& job, int64_t begin, int64_t count, float* scratch)
        : Base(job, begin, count) {
        F* p = (F*)scratch;
        auto take = [&p](int64_t n) {
            F* q = p;
            p += n;
            return q;
        };
        W = take(V * H);
        a = take(V);
        c = take(H);
        acc_W = take(job.remember ? V * H : 0);
        acc_a = take(V);
        acc_c = take(H);
        v = take(V);
        h = take(H);
        chain_v = take(V);
        chain_h = take(H);
        drive_v = take(V);
        drive_h = take(H);
        on = (I*)take(H);
        x = (I*)take(words(V));
    }
    static int64_t scratch(const RbmJob& job) {
        const int64_t V = job.visible, H = job.hidden;
        return N * ((job.remember ? 2 : 1) * V * H + 5 * V + 6 * H + words(V));
    }

    void read() {
        load(W, job.W, V * H);
        load(a, job.a, V);
        load(c, job.c, H);
        load(v, job.v, V);
        load(h, job.h, H);
        if (job.remember) {
            load(acc_W, job.acc_W, V * H);
            load(acc_a, job.acc_a, V);
            load(acc_c, job.acc_c, H);
        }
        if (job.negative_start == kPersistent) {
            load(chain_v, job.chain_v, V);
            load(chain_h, job.chain_h, H);
        }
        Base::read_phases();
        clamp(positive);
    }
    void write() {
        store(W, job.W, V * H);
        store(a, job.a, V);
        store(c, job.c, H);
        store(v, job.v, V);
        store(h, job.h, H);
        if (job.remember) {
            store(acc_W, job.acc_W, V * H);
            store(acc_a, job.acc_a, V);
            store(acc_c, job.acc_c, H);
        }
        if (job.negative_start == kPersistent) {
            keep(~positive);
            store(chain_v, job.chain_v, V);
            store(chain_h, job.chain_h, H);
        }
        Base::write_phases();
    }

    void begin_phases() {
        const I over = left == 0, before = positive;
        Base::next_phases(over);
        if (error) return;
        enter(over, before);
        clamp(over & positive);
    }
    void clamp(I where) {
        for (int64_t i = 0; i < V; i++) v[i] = where ? stimulus(i) : v[i];
        fresh_h = false;
    }

    // Where the chain of a negative phase begins. Its first step draws v anew, so only h matters.
    void enter(I over, I before) {
        if (job.negative_start == kCarry) return;
        if (job.negative_start == kPersistent) keep(over & ~before);
        const I turn = over & ~positive;
        if (!any<N>(turn)) return;
        fresh_v = false;
        if (job.negative_start == kPersistent) {
            for (int64_t j = 0; j < H; j++) h[j] = turn ? chain_h[j] : h[j];
            return;
        }
        if (job.negative_start == kData)
            hidden_drives<false>(F{}, [this](int64_t i) { return stimulus(i); });
        for (int64_t j = 0; j < H; j++) {
            const F u = Base::enter_noise(V + j, turn);
            const F new_h = job.negative_start == kData
                                ? coin<N>(drive_h[j], u)
                                : (u < kUnit / 2 ? splat<N>(1) : splat<N>(0));
            h[j] = turn ? new_h : h[j];
        }
    }
    void keep(I where) {
        for (int64_t i = 0; i < V; i++) chain_v[i] = where ? v[i] : chain_v[i];
        for (int64_t j = 0; j < H; j++) chain_h[j] = where ? h[j] : chain_h[j];
    }

    // The drives of B rows or columns. While these weights are at hand they may learn: W += rate v
    // h comes first, then.
    template <int B, bool learns>
    void visible_drives_of(F rate, int64_t i) {
        F sum[B], r[B], w[B];
        for (int b = 0; b < B; b++) {
            sum[b] = a[i + b];
            r[b] = rate * v[i + b];
        }
        for (int64_t j = 0; j < H; j++) {
            F* at = W + i * H + j;
            for (int b = 0; b < B; b++) w[b] = at[b * H];
            if (learns)
                for (int b = 0; b < B; b++) at[b * H] = w[b] = gate<N>(r[b], h[j], w[b]);
            for (int b = 0; b < B; b++) sum[b] = gate<N>(w[b], h[j], sum[b]);
        }
        for (int b = 0; b < B; b++) drive_v[i + b] = sum[b];
    }
    template <int B, bool learns, class Visible>
    void hidden_drives_of(F rate, Visible visible, int64_t j) {
        F sum[B], s[B], w[B];
        for (int b = 0; b < B; b++) {
            sum[b] = c[j + b];
            s[b] = h[j + b];
        }
        for (int64_t i = 0; i < V; i++) {
            const F x = visible(i), r = rate * x;
            F* at = W + i * H + j;
            for (int b = 0; b < B; b++) w[b] = at[b];
            if (learns)
                for (int b = 0; b < B; b++) at[b] = w[b] = gate<N>(r, s[b], w[b]);
            for (int b = 0; b < B; b++) sum[b] = gate<N>(w[b], x, sum[b]);
        }
        for (int b = 0; b < B; b++) drive_h[j + b] = sum[b];
    }
    template <bool learns>
    void visible_drives(F rate) {
        int64_t i = 0;
        for (; i + kBlock <= V; i += kBlock) visible_drives_of<kBlock, learns>(rate, i);
        for (; i < V; i++) visible_drives_of<1, learns>(rate, i);
    }
    template <bool learns, class Visible>
    void hidden_drives(F rate, Visible visible) {
        int64_t j = 0;
        for (; j + kBlock <= H; j += kBlock) hidden_drives_of<kBlock, learns>(rate, visible, j);
        for (; j < H; j++) hidden_drives_of<1, learns>(rate, visible, j);
    }

    // Visible given hidden where free, then hidden given visible. A lane draws noise for its
    // visible units only where it is free.
    void step() {
        Rng<N> g = rng;
        if (any<N>(~positive)) {
            if (!fresh_v) visible_drives<false>(F{});
            for (int64_t i = 0; i < V; i++)
                v[i] = positive ? v[i] : coin<N>(drive_v[i], noise(i, g));
            g.s0 = positive ? rng.s0 : g.s0;
            g.s1 = positive ? rng.s1 : g.s1;
            g.s2 = positive ? rng.s2 : g.s2;
            g.s3 = positive ? rng.s3 : g.s3;
            fresh_h = false;
        }
        if (!fresh_h) hidden_drives<false>(F{}, [this](int64_t i) { return v[i]; });
        for (int64_t j = 0; j < H; j++) h[j] = coin<N>(drive_h[j], noise(V + j, g));
        fresh_h = true;
        fresh_v = false;
        rng = g;
    }

    // The local term is -v h, -v, -h in both phases; theta -= eta times what was gathered. On the
    // way, the drives that come next.
    void learn() {
        I now;
        const F w = Base::weight_now(now);
        if (job.remember) return remembered(w, now);
        const F rate = now ? eta * w : splat<N>(0);
        if (!any<N>(rate != 0.0f)) return;
        if (writer.on) {
            fresh_v = fresh_h = false;
            return devices().write(rate);
        }
        if (job.visible_bias)
            for (int64_t i = 0; i < V; i++) a[i] = gate<N>(rate, v[i], a[i]);
        for (int64_t j = 0; j < H; j++) c[j] = gate<N>(rate, h[j], c[j]);
        fresh_v = any<N>(~positive | (left == 1));
        fresh_h = !fresh_v;
        if (fresh_v)
            visible_drives<true>(rate);
        else
            hidden_drives<true>(rate, [this](int64_t i) { return v[i]; });
    }
    SmallWrites<N> devices() { return {*this, W, a, c, v, h, on}; }
    void remembered(F w, I now) {
        const bool adds = any<N>(w != 0.0f), steps = any<N>(now);
        if (!adds && !steps) return;
        fresh_h = fresh_h && !steps;
        const F minus = -w, zero = splat<N>(0);
        if (writer.on && steps) return devices().write_remembered(minus, now, acc_W, acc_a, acc_c);
        auto move = [&](F& theta, F& acc, F r, F s) {
            const F sum = gate<N>(r, s, acc);
            theta = now ? theta - eta * sum : theta;
            acc = now ? zero : sum;
        };
        auto add = [&](F& acc, F r, F s) { acc = gate<N>(r, s, acc); };
        const F bias = splat<N>(job.visible_bias ? 1 : 0);
        for (int64_t i = 0; i < V; i++) {
            const F r = minus * v[i];
            F *wi = W + i * H, *gi = acc_W + i * H;
            if (steps)
                for (int64_t j = 0; j < H; j++) move(wi[j], gi[j], r, h[j]);
            else
                for (int64_t j = 0; j < H; j++) add(gi[j], r, h[j]);
            move(a[i], acc_a[i], r, bias);
        }
        for (int64_t j = 0; j < H; j++) move(c[j], acc_c[j], minus, h[j]);
    }
};

}  // namespace

extern const WideKernel wide;
extern const SmallKernel machine[3];
extern const BoltzmannKernels boltzmann;
const BoltzmannKernels boltzmann{
    &wide, machine, {walker<Group, 4>(), walker<Group, 8>(), walker<Group, 16>()}};

}  // namespace FLEXPHASE_ISA
