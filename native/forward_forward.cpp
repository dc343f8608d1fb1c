// The way from Python into the Forward-Forward kernels: checks, threads, and the choice of the instruction set.
#include "forward_forward.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "arrays.h"
#include "isa.h"

namespace baseline { extern const FFKernels forward_forward; }
#if defined(FLEXPHASE_X86)
namespace avx2 { extern const FFKernels forward_forward; }
namespace avx512 { extern const FFKernels forward_forward; }
#endif

namespace {

const FFKernels& choose(const std::string& isa) {
    std::vector<const FFKernels*> found;
#if defined(FLEXPHASE_X86)
    if (has_avx512()) found.push_back(&avx512::forward_forward);
    if (has_avx2()) found.push_back(&avx2::forward_forward);
#endif
    found.push_back(&baseline::forward_forward);
    for (const FFKernels* k : found)
        if (isa.empty() || isa == k->name) return *k;
    throw nb::value_error(("this machine has no instruction set " + isa + ".").c_str());
}

struct Free {
    void operator()(float* p) const { std::free(p); }
};
std::unique_ptr<float, Free> aligned(int64_t floats) {
    float* p = (float*)std::aligned_alloc(64, ((size_t)floats * sizeof(float) + 63) / 64 * 64 + 64);
    if (!p) throw std::bad_alloc();
    return std::unique_ptr<float, Free>(p);
}

// work(unit, thread) for units 0, 1, ...; a thread takes the next one when it is free.
template <class Work>
void parallel(int64_t units, int64_t threads, Work work) {
    std::atomic<int64_t> next{0};
    auto loop = [&](int64_t thread) {
        for (int64_t u; (u = next++) < units;) work(u, thread);
    };
    std::vector<std::thread> others;
    for (int64_t t = 1; t < threads; t++) others.emplace_back(loop, t);
    loop(0);
    for (auto& t : others) t.join();
}

std::string name(int64_t layer, const char* what) { return std::to_string(layer) + "." + what; }

// Layer sizes that fit each other and the images; the number of lanes.
template <class Job>
int64_t layers(Arrays& in, Job& job, int64_t count, int64_t classes, int threads) {
    if (count < 1 || count > kMaxLayers) throw nb::value_error("there must be 1 to 16 layers.");
    const int64_t lanes = in.shape("0.W", 3)[0];
    for (int64_t l = 0; l < count; l++) {
        const auto shape = in.shape(name(l, "W").c_str(), 3);
        if (shape[1] < 1 || shape[2] < 1 || (l && shape[1] != job.layer[l - 1].units)) throw nb::value_error("the layers do not fit each other.");
        job.layer[l].inputs = shape[1], job.layer[l].units = shape[2];
    }
    if (classes < 1 || classes >= job.layer[0].inputs) throw nb::value_error("the label must be smaller than the image.");
    if (threads < 1) throw nb::value_error("threads must be at least 1.");
    job.lanes = lanes, job.layers = count, job.classes = classes;
    return lanes;
}

void train(nb::dict dict, int64_t count, int64_t classes, bool adam, int threads, const std::string& isa) {
    Arrays in(dict);
    FFJob job{};
    const int64_t L = layers(in, job, count, classes, threads);
    for (int64_t l = 0; l < count; l++) {
        FFLayer& f = job.layer[l];
        auto weights = [&](const char* what) { return in.writable<float>(name(l, what).c_str(), {L, f.inputs, f.units}); };
        auto biases = [&](const char* what) { return in.writable<float>(name(l, what).c_str(), {L, f.units}); };
        f.W = weights("W"), f.c = biases("c"), f.h = biases("h");
        if (adam) f.mu_W = weights("mu_W"), f.nu_W = weights("nu_W"), f.mu_c = biases("mu_c"), f.nu_c = biases("nu_c");
    }
    const auto images = in.shape("images", 3);
    const int64_t n = in.shape("row", 2)[1], pixels = job.layer[0].inputs;
    if (images[0] != 1 && images[0] != L) throw nb::value_error("images must have one leading entry, or one for each lane.");
    job.adam = adam, job.ticks = n, job.rows = images[1];
    job.images = in.readable<float>("images", {images[0], images[1], pixels}), job.images_stride = images[0] == 1 ? 0 : images[1] * pixels;
    job.row = in.readable<int32_t>("row", {L, n}), job.label = in.readable<int32_t>("label", {L, n});
    job.sign = in.readable<float>("sign", {L, n}), job.weight = in.readable<float>("weight", {L, n});
    job.apply = (const uint8_t*)in.readable<bool>("apply", {L, n});
    job.eta = in.readable<float>("eta", {L}), job.theta = in.readable<float>("theta", {L}), job.count = in.writable<int32_t>("count", {L});
    for (int64_t k = 0; k < L * n; k++)
        if (job.row[k] < 0 || job.row[k] >= job.rows || job.label[k] < 0 || job.label[k] >= classes)
            throw nb::value_error("a phase names an image or a label that is not there.");

    const FFKernels& k = choose(isa);
    std::atomic<bool> fine{true};
    {
        nb::gil_scoped_release release;
        const int64_t workers = std::min<int64_t>(threads, L);
        std::vector<std::unique_ptr<float, Free>> scratch;
        for (int64_t t = 0; t < workers; t++) scratch.push_back(aligned(k.train_scratch(job)));
        parallel(L, workers, [&](int64_t lane, int64_t thread) {
            if (!k.train(job, lane, scratch[thread].get())) fine = false;
        });
    }
    if (!fine) throw nb::value_error("at most two terms may wait for a step of the optimiser.");
}

void scores(nb::dict dict, int64_t count, int64_t classes, int threads, const std::string& isa) {
    Arrays in(dict);
    FFScores job{};
    const int64_t L = layers(in, job, count, classes, threads);
    for (int64_t l = 0; l < count; l++) {
        FFLayer& f = job.layer[l];
        f.W = const_cast<float*>(in.readable<float>(name(l, "W").c_str(), {L, f.inputs, f.units}));
        f.c = const_cast<float*>(in.readable<float>(name(l, "c").c_str(), {L, f.units}));
    }
    job.rows = in.shape("images", 2)[0];
    job.images = in.readable<float>("images", {job.rows, job.layer[0].inputs});
    job.scores = in.writable<float>("scores", {L, job.rows, classes});

    const FFKernels& k = choose(isa);
    nb::gil_scoped_release release;
    auto packed = aligned(k.packed_size(job));
    std::vector<std::unique_ptr<float, Free>> scratch;
    for (int t = 0; t < threads; t++) scratch.push_back(aligned(k.scores_scratch(job)));
    for (int64_t lane = 0; lane < L; lane++) {
        constexpr int64_t piece = 64;
        k.pack(job, lane, packed.get());
        parallel((job.rows + piece - 1) / piece, threads, [&](int64_t p, int64_t thread) {
            k.scores(job, lane, p * piece, std::min(job.rows, (p + 1) * piece), packed.get(), scratch[thread].get());
        });
    }
}

}  // namespace

void bind_forward_forward(nb::module_& m) {
    using namespace nb::literals;
    m.def("forward_forward", &train, "arrays"_a, "layers"_a, "classes"_a, "adam"_a, "threads"_a, "isa"_a = "",
          "Move all lanes of Forward-Forward on by one tick for each column of `row`, in place.");
    m.def("forward_forward_scores", &scores, "arrays"_a, "layers"_a, "classes"_a, "threads"_a, "isa"_a = "",
          "Goodness summed over the layers for each image and label, into `scores`.");
}
