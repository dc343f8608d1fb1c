// Forward-Forward with batches of one. The gradient of a layer is y h^T, zero in all rows whose
// input is silent, and four pixels in five are. So only the rows of the inputs that are not silent
// are touched. Adam moves the other rows as well; these steps are deferred and made at once, in
// closed form, when the row is next read.
#include "forward_forward.h"

#include "units.h"
#include "walk.h"

namespace FLEXPHASE_ISA {
namespace {

constexpr double kB1 = 0.9, kB2 = 0.999;
constexpr float kEps = 1e-8f, kNorm = 1e-4f;
// Rows that fell silent before this step catch up step by step, see `Layer::catch_up`.
constexpr int kExact = 100;
constexpr int kForgotten = 200;  // 0.9^200 < 1e-9: steps beyond this one move nothing

INLINE F fma(F a, F b, F c) {
#if defined(__AVX512F__)
    return (F)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__)
    return (F)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
    return a * b + c;
#endif
}

INLINE F sqrt(F x) {
#if defined(__AVX512F__)  // an estimate of 14 bits and a step of Newton's, a third of the time of
                          // the instruction; x must not be 0
    const F r = (F)_mm512_rsqrt14_ps((__m512)x), s = x * r, e = fma(-s, r, splat<N>(1.0f));
    return fma(s * 0.5f, e, s);
#elif defined(__AVX2__)
    return (F)_mm256_sqrt_ps((__m256)x);
#else
    F r;
    for (int k = 0; k < N; k++) r[k] = __builtin_sqrtf(x[k]);
    return r;
#endif
}

INLINE F over(F a, F b) {  // a / b
#if defined(__AVX512F__)
    const F r = (F)_mm512_rcp14_ps((__m512)b), q = a * r;
    return fma(r, fma(-q, b, a), q);
#else
    return a / b;
#endif
}

INLINE F root(F nu) { return sqrt(nu > splat<N>(1e-36f) ? nu : splat<N>(1e-36f)); }

INLINE float sum(F x) {
    float s = 0;
    for (int k = 0; k < N; k++) s += x[k];
    return s;
}

int64_t padded(int64_t n) { return (n + N - 1) / N * N; }

// The inputs of a layer that are not silent.
struct Active {
    int32_t* index;
    float* y;
    int64_t count;
    void normalise(float squares) {
        const float scale = 1.0f / (__builtin_sqrtf(squares) + kNorm);
        for (int64_t k = 0; k < count; k++) y[k] *= scale;
    }
};

// out += sum over the active rows of y * w; a row is `stride` floats long and begins with the
// weights.
template <int B>
INLINE void gather_block(const Active& in, const float* w, int64_t stride, float* out) {
    F a[B];
    for (int b = 0; b < B; b++) a[b] = load(out + b * N);
    for (int64_t k = 0; k < in.count; k++) {
        const F y = splat<N>(in.y[k]);
        const float* row = w + in.index[k] * stride;
        for (int b = 0; b < B; b++) a[b] = fma(y, load(row + b * N), a[b]);
    }
    for (int b = 0; b < B; b++) store(out + b * N, a[b]);
}

void gather(const Active& in, const float* w, int64_t stride, int64_t units, float* out) {
    int64_t j = 0;
    for (; j + 8 * N <= units; j += 8 * N) gather_block<8>(in, w + j, stride, out + j);
    for (; j < units; j += N) gather_block<1>(in, w + j, stride, out + j);
}

// The inputs that an image with a label gives; the squares of what it gives are summed.
float show(const float* image, int64_t pixels, int64_t classes, int64_t label, Active& to) {
    int64_t n = 0;
    float squares = 0;
    if (label >= 0) {
        to.index[0] = (int32_t)label;
        to.y[0] = 1;
        n = 1;
        squares = 1;
    }
    for (int64_t i = classes; i < pixels; i++) {
        to.index[n] = (int32_t)i;
        to.y[n] = image[i];
        squares += image[i] * image[i];
        n += image[i] != 0;
    }
    to.count = n;
    return squares;
}

// h = relu(a), where a NaN stays one, as it does elsewhere.
INLINE F relu(F a) { return a > F{} ? a : (a == a ? F{} : a); }

// One layer of one lane: rows of (w, mu, nu), padded, the bias as one more row whose input is 1.
struct Layer {
    int64_t inputs, units, wide, stride;
    bool adam;
    float* rows;
    int32_t* deferred;                       // steps of Adam that a row still has to make
    float *decay1, *decay12, *sum1, *sum12;  // of these steps, see `catch_up`
    uint8_t* touched;                        // has it ever had a gradient?
    Active in[2];                            // of the terms that wait for the optimiser
    float *slope[2], *dense[2];
    int32_t* both;
    float* h;

    static int64_t size(const FFLayer& l, bool adam) {
        const int64_t in = (l.inputs + 1 + 15) / 16 * 16, wide = padded(l.units);
        return in * wide * (adam ? 3 : 1) + 16 * in + 4 * (wide + 16);
    }

    Layer() = default;
    Layer(const FFLayer& l, int64_t lane, bool adam, Scratch& s)
        : inputs(l.inputs),
          units(l.units),
          wide(padded(l.units)),
          stride(wide * (adam ? 3 : 1)),
          adam(adam) {
        const int64_t n = inputs + 1;
        rows = s.floats(n * stride);
        deferred = s.ints(n);
        decay1 = s.floats(n);
        decay12 = s.floats(n);
        sum1 = s.floats(n);
        sum12 = s.floats(n);
        touched = (uint8_t*)s.floats(n);
        for (int t = 0; t < 2; t++) {
            in[t] = {s.ints(n), s.floats(n), 0};
            slope[t] = s.floats(wide);
            dense[t] = s.floats(n);
            for (int64_t i = 0; i < n; i++) dense[t][i] = 0;
        }
        both = s.ints(n);
        h = s.floats(wide);
        for (int64_t i = 0; i < n; i++) {
            bool any = false;
            for (int p = 0; p < (adam ? 3 : 1); p++) {
                const float* from = plane(l, p, lane, i);
                float* to = rows + i * stride + p * wide;
                for (int64_t j = 0; j < wide; j++) to[j] = j < units ? from[j] : 0;
                for (int64_t j = 0; p && j < units; j++) any |= from[j] != 0;
            }
            touched[i] = any;
            nothing_deferred(i);
        }
    }

    float* plane(const FFLayer& l, int p, int64_t lane, int64_t i) const {
        if (i == inputs) return (p == 0 ? l.c : p == 1 ? l.mu_c : l.nu_c) + lane * units;
        return (p == 0 ? l.W : p == 1 ? l.mu_W : l.nu_W) + (lane * inputs + i) * units;
    }

    void write(const FFLayer& l, int64_t lane, int64_t step, float eta) {
        for (int64_t i = 0; i <= inputs; i++) {
            catch_up(i, step, eta);
            for (int p = 0; p < (adam ? 3 : 1); p++)
                __builtin_memcpy(plane(l, p, lane, i), rows + i * stride + p * wide,
                                 units * sizeof(float));
        }
        __builtin_memcpy(l.h + lane * units, h, units * sizeof(float));
    }

    void nothing_deferred(int64_t i) {
        deferred[i] = 0;
        decay1[i] = 1;
        decay12[i] = 1;
        sum1[i] = 0;
        sum12[i] = 0;
    }

    // Step number `step` is deferred in all rows.
    void defer(int64_t step) {
        const float c1 = (float)(1 / (1 - __builtin_pow(kB1, (double)step)));
        const float c2 = c1 * (float)__builtin_sqrt(1 - __builtin_pow(kB2, (double)step));
        const float b1 = (float)kB1, b12 = (float)(kB1 / __builtin_sqrt(kB2));
        for (int64_t i = 0; i <= inputs; i++) {
            deferred[i] += 1;
            decay1[i] *= b1;
            decay12[i] *= b12;
            sum1[i] += decay1[i] * c1;
            sum12[i] += decay12[i] * c2;
        }
    }

    // Adam's steps s+1 ... s+k without a gradient move w by -eta mu sum_j A_j / (B_j sqrt(nu) +
    // eps), where mu and nu are those of step s, A_j = b1^j / (1 - b1^(s+j)) and B_j^2 = b2^j /
    // (1 - b2^(s+j)). The B_j hardly differ while A_j is worth mentioning, so the sum is C / (R
    // sqrt(nu) + eps) with C = sum A_j and R = C / sum (A_j / B_j): exact where eps does not count
    // and where only eps counts, and off by the variance of B in between. Early in training, where
    // the B_j do differ, the sum is taken as it is written.
    void catch_up(int64_t i, int64_t step, float eta) {
        const int64_t k = deferred[i];
        if (!adam || k == 0) return;
        if (touched[i]) {
            float A[kForgotten], B[kForgotten];
            int64_t nodes = 1;
            const int64_t s = step - k;
            if (s < kExact) {
                nodes = k < kForgotten ? k : kForgotten;
                for (int64_t j = 1; j <= nodes; j++) {
                    A[j - 1] = (float)(__builtin_pow(kB1, (double)j) /
                                       (1 - __builtin_pow(kB1, (double)(s + j))));
                    B[j - 1] = (float)__builtin_sqrt(__builtin_pow(kB2, (double)j) /
                                                     (1 - __builtin_pow(kB2, (double)(s + j))));
                }
            } else {
                A[0] = sum1[i];
                B[0] = sum1[i] / sum12[i];
            }
            const float d1 = decay1[i], d2 = (float)__builtin_pow(kB2, (double)k);
            float *w = rows + i * stride, *mu = w + wide, *nu = mu + wide;
            for (int64_t j = 0; j < wide; j += N) {
                const F m = load(mu + j), v = load(nu + j), r = root(v);
                F moved{};
                for (int64_t n = 0; n < nodes; n++)
                    moved += over(m * A[n], fma(r, splat<N>(B[n]), splat<N>(kEps)));
                store(w + j, fma(moved, splat<N>(-eta), load(w + j)));
                store(mu + j, m * d1);
                store(nu + j, v * d2);
            }
        }
        nothing_deferred(i);
    }

    // The responses to the active inputs of term t, and the inputs of the next layer; returns the
    // goodness.
    float respond(int t, int64_t step, float eta, Active* next) {
        for (int64_t k = 0; k < in[t].count; k++) catch_up(in[t].index[k], step, eta);
        __builtin_memcpy(h, rows + inputs * stride, wide * sizeof(float));
        gather(in[t], rows, stride, wide, h);
        F squares{};
        for (int64_t j = 0; j < wide; j += N) {
            const F a = relu(load(h + j));
            store(h + j, a);
            squares = fma(a, a, squares);
        }
        const float total = sum(squares);
        if (next) {
            int64_t n = 0;
            for (int64_t j = 0; j < units; j++) {
                next->index[n] = (int32_t)j;
                next->y[n] = h[j];
                n += h[j] != 0;
            }
            next->count = n;
            next->normalise(total);
        }
        return total / (float)units;
    }

    // The local term: weight * -sigma(sign (theta - G)) (2/n) h, an outer product with y.
    void local(int t, float goodness, float theta, float sign, float weight) {
        const float s = 1.0f / (1.0f + __builtin_expf(-sign * (theta - goodness)));
        const F slopes = splat<N>(weight * -s * 2.0f / (float)units);
        for (int64_t j = 0; j < wide; j += N) store(slope[t] + j, slopes * load(h + j));
    }

    // w -= rate mu / (b sqrt(nu) + eps), or w -= rate g without Adam; the gradient g of a row is
    // the sum of `terms` products.
    template <int terms, bool adam>
    void step_row(int64_t i, float y0, float y1, float rate, float b) {
        float* w = rows + i * stride;
        const F down = splat<N>(-rate);
        for (int64_t j = 0; j < wide; j += N) {
            F g = load(slope[0] + j) * y0;
            if (terms == 2) g = fma(load(slope[1] + j), splat<N>(y1), g);
            if (adam) {
                float *mu = w + wide + j, *nu = mu + wide;
                const F m = fma(g, splat<N>((float)(1 - kB1)), load(mu) * (float)kB1);
                const F v = fma(g * g, splat<N>((float)(1 - kB2)), load(nu) * (float)kB2);
                store(mu, m);
                store(nu, v);
                g = over(m, fma(root(v), splat<N>(b), splat<N>(kEps)));
            }
            store(w + j, fma(g, down, load(w + j)));
        }
        touched[i] = 1;
        nothing_deferred(i);
    }

    // A step of the optimiser, number `step` of Adam, with the terms that wait.
    template <int terms, bool adam>
    void learn(int64_t step, float eta) {
        float rate = eta, b = 0;
        if (adam) {
            defer(step);
            rate = eta / (float)(1 - __builtin_pow(kB1, (double)step));
            b = (float)(1 / __builtin_sqrt(1 - __builtin_pow(kB2, (double)step)));
        }
        int64_t n = 0;
        for (int t = 0; t < terms; t++)
            for (int64_t k = 0; k < in[t].count; k++) {
                const int32_t i = in[t].index[k];
                if (t == 0 || dense[0][i] == 0) both[n++] = i;
                dense[t][i] = in[t].y[k];
            }
        for (int64_t k = 0; k < n; k++) {
            const int32_t i = both[k];
            step_row<terms, adam>(i, dense[0][i], dense[1][i], rate, b);
            dense[0][i] = dense[1][i] = 0;
        }
        step_row<terms, adam>(inputs, 1, 1, rate, b);
    }
    void learn(int terms, int64_t step, float eta) {
        if (adam)
            terms == 1 ? learn<1, true>(step, eta) : learn<2, true>(step, eta);
        else
            terms == 1 ? learn<1, false>(step, eta) : learn<2, false>(step, eta);
    }
};

int64_t train_scratch(const FFJob& job) {
    int64_t n = 0;
    for (int64_t l = 0; l < job.layers; l++) n += Layer::size(job.layer[l], job.adam);
    return n;
}

// A lane of Forward-Forward: every tick is a phase, with an image and a label of its own.
struct Lane {
    const FFJob& job;
    const int64_t lane, pixels;
    const float eta, theta;
    Layer layer[kMaxLayers];
    int64_t step_number, now = 0;
    int terms = 0;  // that wait for a step of the optimiser
    int32_t error = kFine;

    Lane(const FFJob& job, int64_t lane, float* scratch)
        : job(job),
          lane(lane),
          pixels(job.layer[0].inputs),
          eta(job.eta[lane]),
          theta(job.theta[lane]),
          step_number(job.count[lane]) {
        Scratch s{scratch};
        for (int64_t l = 0; l < job.layers; l++) layer[l] = Layer(job.layer[l], lane, job.adam, s);
    }

    void read() {}
    bool phase_is_over() const { return true; }
    void begin_phases() {
        if (terms == 2) {
            error = kTooManyTerms;
            return;
        }
        Active& in = layer[0].in[terms];
        const int64_t tick = lane * job.ticks + now;
        const float* image = job.images + lane * job.images_stride + job.row[tick] * pixels;
        in.normalise(show(image, pixels, job.classes, job.label[tick], in));
    }
    void step() {
        const int64_t tick = lane * job.ticks + now;
        for (int64_t l = 0; l < job.layers; l++) {
            Active* next = l + 1 < job.layers ? &layer[l + 1].in[terms] : nullptr;
            const float goodness = layer[l].respond(terms, step_number, eta, next);
            layer[l].local(terms, goodness, theta, job.sign[tick], job.weight[tick]);
        }
        // A pass without plasticity leaves no term.
        terms += job.weight[tick] != 0 || job.apply[tick];
    }
    void learn() {
        if (!job.apply[lane * job.ticks + now]) return;
        step_number++;
        for (int64_t l = 0; l < job.layers; l++) layer[l].learn(terms, step_number, eta);
        terms = 0;
    }
    void end_tick() {}
    void write() {
        for (int64_t l = 0; l < job.layers; l++)
            layer[l].write(job.layer[l], lane, step_number, eta);
        job.count[lane] = (int32_t)step_number;
    }
};

int32_t train(const FFJob& job, int64_t lane, float* scratch) {
    const FlushToZero flush;
    Lane walk(job, lane, scratch);
    return run(walk);
}

// Label scores: kLabels at a time, because what an image gives to the first layer, and which units
// answer, hardly depends on the label.
constexpr int kLabels = 10;
constexpr int kColumns = N == 16 ? 2 : 1;  // accumulators: kLabels * kColumns registers

int64_t packed_size(const FFScores& job) {
    int64_t n = 0;
    for (int64_t l = 0; l < job.layers; l++)
        n += (job.layer[l].inputs + 1) * padded(job.layer[l].units);
    return n;
}

// Padded rows of all layers of a lane, the bias last.
void pack(const FFScores& job, int64_t lane, float* to) {
    for (int64_t l = 0; l < job.layers; l++) {
        const FFLayer& from = job.layer[l];
        for (int64_t i = 0; i <= from.inputs; i++, to += padded(from.units)) {
            const float* row = i < from.inputs ? from.W + (lane * from.inputs + i) * from.units
                                               : from.c + lane * from.units;
            for (int64_t j = 0; j < padded(from.units); j++) to[j] = j < from.units ? row[j] : 0;
        }
    }
}

int64_t widest(const FFScores& job) {
    int64_t n = padded(job.layer[0].inputs + 1);
    for (int64_t l = 0; l < job.layers; l++)
        n = n > padded(job.layer[l].units) ? n : padded(job.layer[l].units);
    return (n + 15) / 16 * 16;
}

int64_t scores_scratch(const FFScores& job) { return (4 + 3 * kLabels) * widest(job); }

// a[label] = sum over the listed units of h[label] w, for kLabels labels; h is stored unit by unit.
template <int C>
INLINE void gather_labels(int64_t count, const int32_t* unit, const float* h, const float* w,
                          int64_t wide, float* a) {
    F s[kLabels][C];
    for (int k = 0; k < kLabels; k++)
        for (int c = 0; c < C; c++) s[k][c] = F{};
    for (int64_t n = 0; n < count; n++) {
        F x[C];
        for (int c = 0; c < C; c++) x[c] = load(w + unit[n] * wide + c * N);
        for (int k = 0; k < kLabels; k++)
            for (int c = 0; c < C; c++) s[k][c] = fma(splat<N>(h[n * kLabels + k]), x[c], s[k][c]);
    }
    for (int k = 0; k < kLabels; k++)
        for (int c = 0; c < C; c++) store(a + k * wide + c * N, s[k][c]);
}

// h = relu(a scale + c), in place; the sum of the squares.
float rectify(float* a, int64_t wide, float scale, const float* c) {
    F squares{};
    for (int64_t j = 0; j < wide; j += N) {
        const F h = relu(fma(load(a + j), splat<N>(scale), load(c + j)));
        store(a + j, h);
        squares = fma(h, h, squares);
    }
    return sum(squares);
}

void scores(const FFScores& job, int64_t lane, int64_t begin, int64_t end, const float* packed,
            float* scratch) {
    const FlushToZero flush;
    const int64_t big = widest(job), pixels = job.layer[0].inputs,
                  first = padded(job.layer[0].units);
    Scratch s{scratch};
    Active in{s.ints(big), s.floats(big), 0};
    int32_t* unit = s.ints(big);
    float *shared = s.floats(big), *a = s.floats(kLabels * big), *next = s.floats(kLabels * big),
          *h = s.floats(kLabels * big);
    for (int64_t r = begin; r < end; r++) {
        const float scale =
            1.0f /
            (__builtin_sqrtf(show(job.images + r * pixels, pixels, job.classes, -1, in) + 1.0f) +
             kNorm);
        for (int64_t j = 0; j < first; j++) shared[j] = 0;
        gather(in, packed, first, first, shared);
        for (int64_t from = 0; from < job.classes; from += kLabels) {
            const int64_t labels = job.classes - from < kLabels ? job.classes - from : kLabels;
            float squares[kLabels] = {}, score[kLabels] = {};
            const float* w = packed;
            for (int k = 0; k < kLabels; k++) {
                const float* own = w + (from + (k < labels ? k : 0)) * first;
                for (int64_t j = 0; j < first; j += N)
                    store(a + k * first + j, load(shared + j) + load(own + j));
                squares[k] = rectify(a + k * first, first, scale, w + pixels * first);
                score[k] = squares[k] / (float)job.layer[0].units;
            }
            for (int64_t l = 1; l < job.layers; l++) {
                const int64_t below = padded(job.layer[l - 1].units),
                              wide = padded(job.layer[l].units);
                w += (job.layer[l - 1].inputs + 1) * below;
                for (int64_t j = 0; j < below; j += N) {  // which units answer to any label
                    F any = load(a + j);
                    for (int k = 1; k < kLabels; k++) any += load(a + k * below + j);
                    store(next + j, any);
                }
                int64_t count = 0;
                for (int64_t j = 0; j < job.layer[l].inputs; j++) {
                    unit[count] = (int32_t)j;
                    count += next[j] != 0;
                }
                for (int64_t n = 0; n < count; n++)
                    for (int k = 0; k < kLabels; k++) h[n * kLabels + k] = a[k * below + unit[n]];
                int64_t j = 0;
                for (; j + kColumns * N <= wide; j += kColumns * N)
                    gather_labels<kColumns>(count, unit, h, w + j, wide, next + j);
                for (; j < wide; j += N) gather_labels<1>(count, unit, h, w + j, wide, next + j);
                for (int k = 0; k < kLabels; k++) {
                    squares[k] =
                        rectify(next + k * wide, wide, 1.0f / (__builtin_sqrtf(squares[k]) + kNorm),
                                w + job.layer[l].inputs * wide);
                    score[k] += squares[k] / (float)job.layer[l].units;
                }
                float* swap = a;
                a = next;
                next = swap;
            }
            for (int64_t k = 0; k < labels; k++)
                job.scores[(lane * job.rows + r) * job.classes + from + k] = score[k];
        }
    }
}

}  // namespace

extern const FFKernels forward_forward;
const FFKernels forward_forward = {train_scratch, train, scores_scratch, packed_size, pack, scores};

}  // namespace FLEXPHASE_ISA
