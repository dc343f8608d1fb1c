// Wide RBMs: one lane at a time, vectors along the units, sums over active units only. Sums run
// over sixteen partial sums and noise comes from sixteen generators per lane on every instruction
// set, so that all give the same bits.
//
// While the visible units are clamped to v, an update adds rate h_j to c_j and to W_ij of every
// active i, so the drive c + v W grows by (|v| + 1) rate h: the phase needs one product at its
// start, O(hidden) per tick, and is written to W once, at its end. `gathered` holds the sum of rate
// h so far. Where a call ends inside such a phase, the parameters are written as they are, and
// those of the start of the phase are kept in `base`, so that where calls end makes no difference.
//
// Devices have to be written tick by tick: `gathered` stays 0 then, and the product is taken anew
// after every tick that wrote something.
#include "boltzmann.h"
#include "units.h"
#include "walk.h"
#include "wide_writes.h"

namespace FLEXPHASE_ISA {
namespace {

struct Lane {
    const RbmJob& job;
    const int64_t l, V, H, Vp, Hp;
    float *W, *a, *c, *acc_W, *acc_a, *acc_c, *v, *h, *x, *chain_v, *chain_h, *drive, *gathered, *u;
    int32_t* active;  // the units i with v_i = 1
    int64_t count = 0, now = 0, left, slot;
    int32_t updates = 0, error = kFine;
    float eta, gathered_a = 0;
    TapePhase phase{};
    Rng<N> rng[kParts], write_rng[kParts];
    Writer<N> writer;

    Lane(const RbmJob& job, int64_t l, float* p)
        : job(job), l(l), V(job.visible), H(job.hidden), Vp(whole(V)), Hp(whole(H)),
          writer(job.device, [l](int) { return l; }) {
        Scratch s{p};
        W = s.floats(V * Hp);
        acc_W = s.floats(job.remember ? V * Hp : 0);
        a = s.floats(Vp);
        acc_a = s.floats(Vp);
        v = s.floats(Vp);
        x = s.floats(Vp);
        chain_v = s.floats(Vp);
        active = s.ints(Vp);
        c = s.floats(Hp);
        acc_c = s.floats(Hp);
        h = s.floats(Hp);
        chain_h = s.floats(Hp);
        drive = s.floats(Hp);
        gathered = s.floats(Hp);
        u = s.floats(Vp > Hp ? Vp : Hp);
    }
    static int64_t scratch(const RbmJob& job) {
        const int64_t V = job.visible, Vp = whole(V), Hp = whole(job.hidden);
        return (job.remember ? 2 : 1) * V * Hp + 6 * Vp + 6 * Hp + (Vp > Hp ? Vp : Hp);
    }

    static void load(float* to, const float* from, int64_t n, int64_t padded) {
        for (int64_t i = 0; i < n; i++) to[i] = from[i];
        for (int64_t i = n; i < padded; i++) to[i] = 0;
    }
    void load_matrix(float* to, const float* from) {
        for (int64_t i = 0; i < V; i++) load(to + i * Hp, from + i * H, H, Hp);
    }
    static void store(const float* from, float* to, int64_t n) {
        for (int64_t i = 0; i < n; i++) to[i] = from[i];
    }
    void store_matrix(const float* from, float* to) {
        for (int64_t i = 0; i < V; i++) store(from + i * Hp, to + i * H, H);
    }

    // Between two ticks of a clamped phase.
    bool inside() const { return phase.positive && left > 0; }

    OUT_OF_LINE void read() {
        left = job.left[l];
        slot = job.slot[l];
        eta = job.eta[l];
        error = read_phase(job.tape, l, slot, job.remember, phase);
        if (error) return;
        const bool begun = inside();
        load_matrix(W, (begun ? job.base_W : job.W) + l * V * H);
        load(a, (begun ? job.base_a : job.a) + l * V, V, Vp);
        load(c, (begun ? job.base_c : job.c) + l * H, H, Hp);
        load(v, job.v + l * V, V, Vp);
        load(h, job.h + l * H, H, Hp);
        load(x, job.x + l * V, V, Vp);
        load(drive, job.drive + l * H, H, Hp);
        load(gathered, job.gathered + l * (H + 1), H, Hp);
        gathered_a = job.gathered[l * (H + 1) + H];
        load(chain_v, v, Vp, Vp);
        load(chain_h, h, Hp, Hp);
        load(acc_a, a, 0, Vp);
        load(acc_c, c, 0, Hp);
        if (job.negative_start == kPersistent) {
            load(chain_v, job.chain_v + l * V, V, Vp);
            load(chain_h, job.chain_h + l * H, H, Hp);
        }
        if (job.remember) {
            load_matrix(acc_W, job.acc_W + l * V * H);
            load(acc_a, job.acc_a + l * V, V, Vp);
            load(acc_c, job.acc_c + l * H, H, Hp);
        }
        read_rng(rng, job.rng);
        if (job.device.rng) read_rng(write_rng, job.device.rng);
        find_active(v);
    }
    void read_rng(Rng<N>* to, const uint32_t* from) const {
        from += l * 4 * kStreams;
        for (int p = 0; p < kParts; p++)
            for (int k = 0; k < N; k++) {
                const int i = p * N + k;
                to[p].s0[k] = from[i];
                to[p].s1[k] = from[kStreams + i];
                to[p].s2[k] = from[2 * kStreams + i];
                to[p].s3[k] = from[3 * kStreams + i];
            }
    }
    void write_rng_back(const Rng<N>* from, uint32_t* to) const {
        to += l * 4 * kStreams;
        for (int p = 0; p < kParts; p++)
            for (int k = 0; k < N; k++) {
                const int i = p * N + k;
                to[i] = from[p].s0[k];
                to[kStreams + i] = from[p].s1[k];
                to[2 * kStreams + i] = from[p].s2[k];
                to[3 * kStreams + i] = from[p].s3[k];
            }
    }

    OUT_OF_LINE void write() {
        store_matrix(W, job.base_W + l * V * H);
        store(a, job.base_a + l * V, V);
        store(c, job.base_c + l * H, H);
        store(drive, job.drive + l * H, H);
        store(gathered, job.gathered + l * (H + 1), H);
        job.gathered[l * (H + 1) + H] = gathered_a;
        if (inside()) write_back();
        store_matrix(W, job.W + l * V * H);
        store(a, job.a + l * V, V);
        store(c, job.c + l * H, H);
        store(v, job.v + l * V, V);
        store(h, job.h + l * H, H);
        store(x, job.x + l * V, V);
        if (job.negative_start == kPersistent) {
            if (!phase.positive) keep();
            store(chain_v, job.chain_v + l * V, V);
            store(chain_h, job.chain_h + l * H, H);
        }
        if (job.remember) {
            store_matrix(acc_W, job.acc_W + l * V * H);
            store(acc_a, job.acc_a + l * V, V);
            store(acc_c, job.acc_c + l * H, H);
        }
        job.left[l] = (int32_t)left;
        job.slot[l] = (int32_t)slot;
        job.updates[l] += updates;
        write_rng_back(rng, job.rng);
        if (job.device.rng) write_rng_back(write_rng, job.device.rng);
    }

    bool phase_is_over() const { return left == 0; }
    OUT_OF_LINE void begin_phases() {
        const bool was_negative = !phase.positive;
        slot++;
        int64_t row;
        error = begin_phase(job.tape, l, slot, job.remember, job.rows, phase, row);
        if (error) return;
        left = phase.ticks;
        if (row >= 0) {
            const uint32_t* bits = job.data + l * job.data_stride + row * words(V);
            for (int64_t i = 0; i < V; i += 32)
                for (int64_t k = 0; k < 32 && i + k < V; k++)
                    x[i + k] = (float)(bits[i / 32] >> k & 1);
        }
        if (job.negative_start == kPersistent && was_negative) keep();
        if (!phase.positive) return enter();
        load(v, x, Vp, Vp);
        find_active(v);
        product();
        for (int64_t j = 0; j < Hp; j++) gathered[j] = 0;
        gathered_a = 0;
    }
    void keep() {
        load(chain_v, v, Vp, Vp);
        load(chain_h, h, Hp, Hp);
    }

    // Where the chain of a negative phase begins. Its first step draws v anew, so only h matters.
    void enter() {
        if (job.negative_start == kPersistent) load(h, chain_h, Hp, Hp);
        if (job.negative_start != kData && job.negative_start != kRandom) return;
        if (job.tape.enter)
            load_noise(job.tape.enter + (l * job.tape.slots + slot) * (V + H) + V, H);
        else
            noise(V, H);
        if (job.negative_start == kRandom) {
            for (int64_t j = 0; j < H; j++) h[j] = u[j] < kUnit / 2;
        } else {
            find_active(x);
            product();
            toss(h, drive, H);
        }
    }

    void find_active(const float* s) {
        count = 0;
        for (int64_t i = 0; i < V; i++) {
            active[count] = (int32_t)i;
            count += s[i] != 0;
        }
    }

    // drive = c + sum over active i of W_i.
    void product() {
        int64_t j = 0;
        for (; j + 8 * N <= Hp; j += 8 * N) product_block<8>(j);
        for (; j < Hp; j += N) product_block<1>(j);
    }
    template <int B>
    void product_block(int64_t j) {
        F sum[B];
        for (int b = 0; b < B; b++) sum[b] = at(c, j + b * N);
        for (int64_t k = 0; k < count; k++) {
            const float* w = W + active[k] * Hp + j;
            for (int b = 0; b < B; b++) sum[b] += at(w, b * N);
        }
        for (int b = 0; b < B; b++) at(drive, j + b * N) = sum[b];
    }

    void load_noise(const float* from, int64_t n) {
        load(u, from, n, whole(n));
        for (int64_t i = 0; i < n; i++) u[i] *= kUnit;
    }
    // u = noise of the next units, our own or the given one.
    void noise(int64_t first, int64_t n) {
        if (job.noise) return load_noise(job.noise + (now * job.lanes + l) * (V + H) + first, n);
        for (int64_t i = 0; i < n; i += kStreams)
            for (int p = 0; p < kParts; p++) at(u, i + p * N) = uniform<N>(rng[p]);
    }
    void toss(float* s, const float* x, int64_t n) {
        for (int64_t i = 0; i < n; i += N) at(s, i) = coin<N>(at(x, i), at(u, i));
        for (int64_t i = n; i < whole(n); i++) s[i] = 0;
    }

    // v_i given h, into the room of v: a_i + W_i h first.
    void visible() {
        for (int64_t i = 0; i < V; i++) {
            const float* w = W + i * Hp;
            F part[kParts] = {};
            for (int64_t j = 0; j < Hp; j += kStreams)
                for (int p = 0; p < kParts; p++)
                    part[p] = gate<N>(at(w, j + p * N), at(h, j + p * N), part[p]);
            v[i] = a[i] + total(part);
        }
        noise(0, V);
        toss(v, v, V);
    }

    void step() {
        if (phase.positive) {
            noise(V, H);
            const F times = splat<N>((float)(count + 1));
            for (int64_t j = 0; j < H; j += N)
                at(h, j) = coin<N>(at(drive, j) + times * at(gathered, j), at(u, j));
            for (int64_t j = H; j < Hp; j++) h[j] = 0;
            return;
        }
        visible();
        find_active(v);
        product();
        noise(V, H);
        toss(h, drive, H);
    }

    void learn() {
        const int m = moment(left, phase.ticks);
        updates += phase.apply[m];
        if (job.remember) return remembered(phase.weight[m], phase.apply[m]);
        const float rate = phase.apply[m] ? eta * phase.weight[m] : 0;
        if (rate == 0) return;
        if (writer.on) return write_devices(rate);
        const F r = splat<N>(rate);
        if (phase.positive) {
            for (int64_t j = 0; j < Hp; j += N)
                at(gathered, j) = gate<N>(r, at(h, j), at(gathered, j));
            gathered_a += rate;
            return;
        }
        add_rows(W, r, h);
        for (int64_t j = 0; j < Hp; j += N) at(c, j) = gate<N>(r, at(h, j), at(c, j));
        if (job.visible_bias)
            for (int64_t i = 0; i < Vp; i += N) at(a, i) = gate<N>(r, at(v, i), at(a, i));
    }
    void write_devices(float rate) {
        if (WideWrites<Lane>{*this}.write(rate) && phase.positive) product();
    }
    // Row i of M plus r s, for active i.
    void add_rows(float* M, F r, const float* s) {
        for (int64_t k = 0; k < count; k++) {
            float* w = M + active[k] * Hp;
            for (int64_t j = 0; j < Hp; j += N)
                at(w, j) = gate<N>(r, at(s, j), at(w, j));  // r or s is 0 or 1
        }
    }
    void write_back() {
        if (job.remember) return;
        add_rows(W, splat<N>(1), gathered);
        for (int64_t j = 0; j < Hp; j += N) at(c, j) += at(gathered, j);
        if (job.visible_bias)
            for (int64_t k = 0; k < count; k++) a[active[k]] += gathered_a;
    }

    void remembered(float w, bool steps) {
        if (w != 0) {
            const F minus = splat<N>(-w);
            add_rows(acc_W, minus, h);
            for (int64_t j = 0; j < Hp; j += N)
                at(acc_c, j) = gate<N>(minus, at(h, j), at(acc_c, j));
            if (job.visible_bias)
                for (int64_t i = 0; i < Vp; i += N)
                    at(acc_a, i) = gate<N>(minus, at(v, i), at(acc_a, i));
        }
        if (!steps) return;
        if (writer.on) {
            WideWrites<Lane>{*this}.write_remembered();
            if (phase.positive) product();
            return;
        }
        auto move = [this](float* theta, float* acc, int64_t n) {
            for (int64_t i = 0; i < n; i += N) {
                at(theta, i) -= eta * at(acc, i);
                at(acc, i) = splat<N>(0);
            }
        };
        move(W, acc_W, V * Hp);
        move(a, acc_a, Vp);
        move(c, acc_c, Hp);
        if (phase.positive) product();
    }

    void end_tick() {
        left--;
        if (phase.positive && left == 0) write_back();
    }
};

}  // namespace

extern const WideKernel wide;
const WideKernel wide{&Lane::scratch, [](const RbmJob& job, int64_t lane, float* scratch) {
                          Lane walk(job, lane, scratch);
                          return run(walk);
                      }};

}  // namespace FLEXPHASE_ISA
