// Programs for shared pages, with the communication of those of the SPLASH-2 suite whose names they
// have (paper 001 ran these), at small sizes.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "pages.hpp"

namespace via::pages {

constexpr unsigned processes_max = 16;

struct Kernel {
    const char* name;
    const char* what;
    std::size_t size;  ///< its side, or number, of things
    /// First of all: how large, by how many. False: it cannot be that. Null: of one size alone.
    bool (*prepare)(std::size_t size, unsigned count);
    std::size_t (*bytes)();
    /// Whose a page is; things that lie in a row go to processes in a row.
    unsigned (*home)(std::size_t page, unsigned count);
    void (*begin)(char* memory);
    void (*run)(World& world, char* memory);
    /// What must hold of the result, beside being that of one process alone. "": it does.
    std::string (*wrong)(const char* memory);
};

std::span<const Kernel> matrix_kernels();  ///< FFT, LU, Ocean, Radix
std::span<const Kernel> scene_kernels();   ///< Water twice, Volrend, Raytrace

/// Arrays behind each other, each from a page's beginning, in pieces that go to processes in a row.
inline unsigned home_within(std::span<const std::size_t> arrays, std::size_t page, unsigned count) {
    for (const std::size_t bytes : arrays) {
        const std::size_t pages = (bytes + page_bytes - 1) / page_bytes;
        if (page < pages) return static_cast<unsigned>(page * count / pages);
        page -= pages;
    }
    return 0;
}
inline std::size_t bytes_of(std::span<const std::size_t> arrays) {
    std::size_t all = 0;
    for (const std::size_t bytes : arrays)
        all += (bytes + page_bytes - 1) / page_bytes * page_bytes;
    return all;
}
/// Where the n-th begins.
template <class T>
T* array(char* memory, std::span<const std::size_t> arrays, std::size_t n) {
    return reinterpret_cast<T*>(memory + bytes_of(arrays.first(n)));
}

}  // namespace via::pages
