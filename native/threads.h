// Threads and aligned memory for the kernels.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

struct Free {
    void operator()(void* p) const { std::free(p); }
};
template <class T>
using Aligned = std::unique_ptr<T, Free>;

template <class T>
Aligned<T> aligned(int64_t count) {
    const size_t bytes = ((size_t)count * sizeof(T) + 64) / 64 * 64;
    T* p = (T*)std::aligned_alloc(64, bytes);
    if (!p) throw std::bad_alloc();
    return Aligned<T>(p);
}

// work(unit, scratch) for units 0, 1, ... on threads that take the next one when they are free. A
// unit writes only what is its own. The scratch of every thread is made here, so that nothing can
// throw inside.
template <class T, class Work>
void parallel(int64_t units, int64_t threads, int64_t scratch, Work work) {
    threads = std::max<int64_t>(1, std::min(threads, units));
    std::vector<Aligned<T>> room;
    for (int64_t t = 0; t < threads; t++) room.push_back(aligned<T>(scratch));
    std::atomic<int64_t> next{0};
    auto loop = [&](int64_t t) {
        for (int64_t u; (u = next++) < units;) work(u, room[t].get());
    };
    std::vector<std::thread> others;
    for (int64_t t = 1; t < threads; t++) {
        try {
            others.emplace_back(loop, t);
        } catch (const std::system_error&) {
            break;  // no more threads to be had: the others do the work
        }
    }
    loop(0);
    for (auto& t : others) t.join();
}
