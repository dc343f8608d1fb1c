// General Boltzmann machines, E(z) = -1/2 z W z - bias z: N lanes side by side, units one after the
// other in the given order. Units of one colour of a chequerboard are not joined, so drawing them
// one after the other or at once is the same. Only joined pairs are visited.
#include "lane_draws.h"

namespace FLEXPHASE_ISA {
namespace {

template <int N>
struct Machine : Walk<N> {
    using Base = Walk<N>;
    using Base::job, Base::V, Base::H, Base::x, Base::left, Base::positive, Base::now, Base::error,
        Base::eta, Base::load, Base::store, Base::stimulus, Base::writer;
    using typename Base::F;
    using typename Base::I;

    const int64_t n, pairs;
    F *W, *acc_W;  // by joined pair, as `job.joined` lists them
    F *bias, *acc_bias, *z, *chain, *fresh;

    Machine(const RbmJob& job, int64_t begin, int64_t count, float* scratch)
        : Base(job, begin, count), n(V + H), pairs(job.first[n]) {
        F* p = (F*)scratch;
        auto take = [&p](int64_t m) {
            F* q = p;
            p += m;
            return q;
        };
        W = take(pairs);
        acc_W = take(pairs);
        bias = take(n);
        acc_bias = take(n);
        z = take(n);
        chain = take(n);
        fresh = take(n);
        x = (I*)take(words(V));
    }
    static int64_t scratch(const RbmJob& job) {
        return N * (2 * job.first[job.visible + job.hidden] + 5 * (job.visible + job.hidden) +
                    words(job.visible));
    }

    void gather(F* to, const float* from) {
        for (int k = 0; k < N; k++)
            for (int64_t i = 0; i < n; i++)
                for (int64_t p = job.first[i]; p < job.first[i + 1]; p++)
                    to[p][k] = from[(Base::lane(k) * n + i) * n + job.joined[p]];
    }
    void scatter(const F* from, float* to) {
        for (int k = 0; k < Base::count; k++)
            for (int64_t i = 0; i < n; i++)
                for (int64_t p = job.first[i]; p < job.first[i + 1]; p++)
                    to[(Base::lane(k) * n + i) * n + job.joined[p]] = from[p][k];
    }
    void read() {
        gather(W, job.W);
        load(bias, job.a, n);
        load(z, job.v, V);
        load(z + V, job.h, H);
        for (int64_t p = 0; p < pairs; p++) acc_W[p] = F{};
        for (int64_t i = 0; i < n; i++) {
            acc_bias[i] = F{};
            chain[i] = F{};
        }
        if (job.remember) {
            gather(acc_W, job.acc_W);
            load(acc_bias, job.acc_a, n);
        }
        if (job.negative_start == kPersistent) {
            load(chain, job.chain_v, V);
            load(chain + V, job.chain_h, H);
        }
        Base::read_phases();
    }
    void write() {
        scatter(W, job.W);
        store(bias, job.a, n);
        store(z, job.v, V);
        store(z + V, job.h, H);
        if (job.remember) {
            scatter(acc_W, job.acc_W);
            store(acc_bias, job.acc_a, n);
        }
        if (job.negative_start == kPersistent) {
            blend(chain, ~positive, z);
            store(chain, job.chain_v, V);
            store(chain + V, job.chain_h, H);
        }
        Base::write_phases();
    }
    void blend(F* to, I where, const F* from) {
        for (int64_t i = 0; i < n; i++) to[i] = where ? from[i] : to[i];
    }

    void begin_phases() {
        const I over = left == 0, before = positive;
        Base::next_phases(over);
        if (error) return;
        if (job.negative_start == kPersistent) blend(chain, over & ~before, z);
        const I turn = over & ~positive;
        if (job.negative_start == kCarry || !any<N>(turn)) return;
        if (job.negative_start == kPersistent) return blend(z, turn, chain);
        for (int64_t i = 0; i < n; i++) fresh[i] = z[i];
        if (job.negative_start == kData) {
            sweep(fresh, turn, [&](int64_t i) { return Base::enter_noise(i, turn); });
        } else {
            for (int64_t i = 0; i < n; i++)
                fresh[i] = Base::enter_noise(i, turn) < kUnit / 2 ? splat<N>(1) : splat<N>(0);
        }
        blend(z, turn, fresh);
    }

    // One sweep over all units; where clamped, the visible ones are held at the stimulus. Every
    // lane draws noise for every unit.
    template <class Noise>
    void sweep(F* s, I clamped, Noise noise) {
        for (int64_t i = 0; i < V; i++) s[i] = clamped ? stimulus(i) : s[i];
        for (int64_t o = 0; o < n; o++) {
            const int64_t i = job.order[o];
            F part[4] = {bias[i], F{}, F{}, F{}};
            for (int64_t p = job.first[i], k = 0; p < job.first[i + 1]; p++, k++)
                part[k % 4] = gate<N>(W[p], s[job.joined[p]], part[k % 4]);
            const F drawn = coin<N>((part[0] + part[1]) + (part[2] + part[3]), noise(i));
            s[i] = i < V ? (clamped ? s[i] : drawn) : drawn;
        }
    }

    // The local term is -z_i z_j for joined pairs and -z_i; theta -= eta times what was gathered.
    void learn() {
        I now;
        const F w = Base::weight_now(now);
        const bool adds = any<N>(w != 0.0f), steps = any<N>(now);
        if (!adds && !(steps && job.remember)) return;
        const F zero = splat<N>(0), rate = now ? eta * w : zero, minus = -w;
        if (writer.on) return write_devices(rate, minus, now);
        auto move = [&](F& theta, F& acc, F si, F sj) {
            if (!job.remember) {
                theta = gate<N>(rate * si, sj, theta);
                return;
            }
            const F sum = gate<N>(minus * si, sj, acc);
            theta = now ? theta - eta * sum : theta;
            acc = now ? zero : sum;
        };
        for (int64_t i = 0; i < n; i++) {
            for (int64_t p = job.first[i]; p < job.first[i + 1]; p++)
                move(W[p], acc_W[p], z[i], z[job.joined[p]]);
            if (i >= V || job.visible_bias) move(bias[i], acc_bias[i], z[i], splat<N>(1));
        }
    }

    // A pair has one weight, hence one device: that of its first unit, copied to the second.
    void write_devices(F rate, F minus, I now) {
        const I learns = job.remember ? now : rate != 0.0f;
        LaneDraws<N> draw(*this);
        auto move = [&](F& theta, F& acc, F si, F sj, int64_t parameter) {
            F change = rate;
            I active = learns & ((si * sj) != 0.0f);
            if (job.remember) {
                const F sum = gate<N>(minus * si, sj, acc);
                change = -(eta * sum);
                active = now;
                acc = now ? splat<N>(0) : sum;
            }
            if (!any<N>(learns)) return;
            draw.parameter = parameter;
            theta = writer.write(theta, change, writer.ask(change), active, draw);
        };
        for (int64_t i = 0; i < n; i++) {
            for (int64_t p = job.first[i]; p < job.first[i + 1]; p++) {
                const int64_t j = job.joined[p];
                if (j < i) continue;
                move(W[p], acc_W[p], z[i], z[j], i * n + j);
                W[job.mirror[p]] = W[p];
                acc_W[job.mirror[p]] = acc_W[p];
            }
            if (i >= V || job.visible_bias)
                move(bias[i], acc_bias[i], z[i], splat<N>(1), n * n + i);
        }
        Base::write_rng = draw.after(learns);
    }

    void step() {
        Rng<N> g = Base::rng;
        sweep(z, positive, [&](int64_t i) { return Base::noise(i, g); });
        Base::rng = g;
    }
};

}  // namespace

extern const SmallKernel machine[3];
const SmallKernel machine[3] = {walker<Machine, 4>(), walker<Machine, 8>(), walker<Machine, 16>()};

}  // namespace FLEXPHASE_ISA
