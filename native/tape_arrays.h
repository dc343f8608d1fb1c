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
