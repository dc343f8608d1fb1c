// The way from Python into the Forward-Forward kernels: checks, threads, and the choice of the
// instruction set.
#include "forward_forward.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "dispatch.h"
#include "tape_arrays.h"
#include "threads.h"

FLEXPHASE_DECLARE(FFKernels, forward_forward)

namespace {

std::string name(int64_t layer, const char* what) { return std::to_string(layer) + "." + what; }

// Layer sizes that fit each other and the images; the number of lanes.
template <class Job>
int64_t layers(Arrays& in, Job& job, int64_t count, int64_t classes, int threads) {
    if (count < 1 || count > kMaxLayers) throw nb::value_error("there must be 1 to 16 layers.");
    const int64_t lanes = in.shape("0.W", 3)[0];
    for (int64_t l = 0; l < count; l++) {
        const auto shape = in.shape(name(l, "W").c_str(), 3);
        if (shape[1] < 1 || shape[2] < 1 || (l && shape[1] != job.layer[l - 1].units))
            throw nb::value_error("the layers do not fit each other.");
        job.layer[l].inputs = shape[1];
        job.layer[l].units = shape[2];
    }
    if (classes < 1 || classes >= job.layer[0].inputs)
        throw nb::value_error("the label must be smaller than the image.");
    if (threads < 1) throw nb::value_error("threads must be at least 1.");
    job.lanes = lanes;
    job.layers = count;
    job.classes = classes;
    return lanes;
}

void train(nb::dict dict, int64_t count, int64_t classes, bool adam, int threads,
           const std::string& isa) {
    Arrays in(dict);
    FFJob job{};
    const int64_t L = layers(in, job, count, classes, threads);
    for (int64_t l = 0; l < count; l++) {
        FFLayer& f = job.layer[l];
        auto weights = [&](const char* what) {
            return in.writable<float>(name(l, what).c_str(), {L, f.inputs, f.units});
        };
        auto biases = [&](const char* what) {
            return in.writable<float>(name(l, what).c_str(), {L, f.units});
        };
        f.W = weights("W");
        f.c = biases("c");
        f.h = biases("h");
        if (adam) {
            f.mu_W = weights("mu_W");
            f.nu_W = weights("nu_W");
            f.mu_c = biases("mu_c");
            f.nu_c = biases("nu_c");
        }
    }
    const auto images = in.shape("images", 3);
    const int64_t n = in.shape("row", 2)[1], pixels = job.layer[0].inputs;
    if (images[0] != 1 && images[0] != L)
        throw nb::value_error("images must have one leading entry, or one for each lane.");
    job.adam = adam;
    job.ticks = n;
    job.rows = images[1];
    job.images = in.readable<float>("images", {images[0], images[1], pixels});
    job.images_stride = images[0] == 1 ? 0 : images[1] * pixels;
    job.row = in.readable<int32_t>("row", {L, n});
    job.label = in.readable<int32_t>("label", {L, n});
    job.sign = in.readable<float>("sign", {L, n});
    job.weight = in.readable<float>("weight", {L, n});
    job.apply = (const uint8_t*)in.readable<bool>("apply", {L, n});
    job.eta = in.readable<float>("eta", {L});
    job.theta = in.readable<float>("theta", {L});
    job.count = counts(in, "count", {L}, n);
    for (int64_t k = 0; k < L * n; k++)
        if (job.row[k] < 0 || job.row[k] >= job.rows || job.label[k] < 0 || job.label[k] >= classes)
            throw nb::value_error("a phase names an image or a label that is not there.");

    const FFKernels& k = choose<FFKernels>(FLEXPHASE_TABLES(forward_forward), isa);
    std::atomic<int32_t> error{kFine};
    {
        nb::gil_scoped_release release;
        parallel<float>(L, threads, k.train_scratch(job), [&](int64_t lane, float* scratch) {
            if (int32_t e = k.train(job, lane, scratch)) error = e;
        });
    }
    complain(error);
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

    constexpr int64_t piece = 64;
    const FFKernels& k = choose<FFKernels>(FLEXPHASE_TABLES(forward_forward), isa);
    nb::gil_scoped_release release;
    auto packed = aligned<float>(k.packed_size(job));
    for (int64_t lane = 0; lane < L; lane++) {
        k.pack(job, lane, packed.get());
        auto work = [&](int64_t p, float* scratch) {
            const int64_t end = std::min(job.rows, (p + 1) * piece);
            k.scores(job, lane, p * piece, end, packed.get(), scratch);
        };
        parallel<float>((job.rows + piece - 1) / piece, threads, k.scores_scratch(job), work);
    }
}

}  // namespace

void bind_forward_forward(nb::module_& m) {
    using namespace nb::literals;
    m.def("forward_forward", &train, "arrays"_a, "layers"_a, "classes"_a, "adam"_a, "threads"_a,
          "isa"_a = "",
          "Move all lanes of Forward-Forward on by one tick for each column of `row`, in place.");
    m.def("forward_forward_scores", &scores, "arrays"_a, "layers"_a, "classes"_a, "threads"_a,
          "isa"_a = "", "Goodness summed over the layers for each image and label, into `scores`.");
}
