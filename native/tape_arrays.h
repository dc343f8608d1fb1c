// The tape as Python hands it over, and the sentence for each error that a kernel finds in it.
#pragma once
#include "arrays.h"
#include "tape.h"

// With several replicas, the rows have an axis for them.
inline Tape tape_of(Arrays& in, int64_t lanes, int64_t replicas = 0) {
    Tape tape{};
    const int64_t slots = in.shape("ticks", 2)[1];
    tape.slots = slots;
    tape.ticks = in.readable<int32_t>("ticks", {lanes, slots});
    std::vector<int64_t> rows{lanes, slots};
    if (replicas) rows.push_back(replicas);
    tape.row = in.readable<int32_t>("row", rows);
    tape.sign = in.readable<int8_t>("sign", {lanes, slots});
    tape.weight = in.readable<float>("weight", {lanes, slots, 3});
    tape.apply = (const uint8_t*)in.readable<bool>("apply", {lanes, slots, 3});
    return tape;
}

// Counts of steps, to which a call adds at most `more`; below 0, or so high that they overflow,
// they are none.
inline int32_t* counts(Arrays& in, const char* name, std::vector<int64_t> shape, int64_t more) {
    int32_t* count = in.writable<int32_t>(name, shape);
    int64_t n = 1;
    for (int64_t size : shape) n *= size;
    for (int64_t i = 0; i < n; i++)
        if (count[i] < 0 || count[i] > INT32_MAX - more)
            throw nb::value_error((std::string(name) + " must be at least 0, and the ticks to come "
                                                       "must not carry it beyond 2^31 - 1.")
                                      .c_str());
    return count;
}

inline void complain(int32_t error) {
    switch (error) {
        case kTapeTooShort:
            throw nb::value_error("the tape of phases ends before the ticks do.");
        case kBadTicks:
            throw nb::value_error("a phase must last at least one tick.");
        case kBadRow:
            throw nb::value_error("a phase names a row that the data do not have.");
        case kNotLocal:
            throw nb::value_error(
                "a temporally local estimator must step wherever its weight is not zero.");
        case kTooManyTerms:
            throw nb::value_error("at most two terms may wait for a step of the optimiser.");
        default:
            return;
    }
}

// Where the lanes are: the slot of the tape, what is left of that phase, and the updates so far.
template <class Job>
void set_place(Arrays& in, Job& job) {
    const int64_t slots = job.tape.slots;
    job.left = in.writable<int32_t>("left", {job.lanes});
    job.slot = in.writable<int32_t>("slot", {job.lanes});
    job.updates = counts(in, "updates", {job.lanes}, job.ticks);
    for (int64_t l = 0; l < job.lanes; l++) {
        if (job.slot[l] < 0 || job.slot[l] >= slots) complain(kTapeTooShort);
        if (job.left[l] < 0 || job.left[l] > job.tape.ticks[l * slots + job.slot[l]])
            throw nb::value_error("left must be 0 to the ticks of the phase that the lane is in.");
    }
}
