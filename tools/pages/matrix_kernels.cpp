// FFT (transposes), LU with contiguous blocks (broadcast of blocks), Ocean (neighbours on grids of
// several sizes), Radix (a permutation).
#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <numbers>

#include "kernels.hpp"

namespace via::pages {
namespace {

double noise(std::size_t n) { return static_cast<double>(n * 2654435761U % 1000003) / 1000003; }

// FFT ---------------------------------------------------------------------------------------------

using Complex = std::complex<double>;
std::size_t side = 0;
std::size_t fft_arrays[2];

bool fft_prepare(std::size_t size, unsigned) {
    if (!std::has_single_bit(size) || size < 64 || size > 4096) return false;
    side = size;
    std::ranges::fill(fft_arrays, side * side * sizeof(Complex));
    return true;
}
Complex root(std::size_t n, std::size_t of) {
    const double turn = -2 * std::numbers::pi * static_cast<double>(n) / static_cast<double>(of);
    return std::polar(1.0, turn);
}
/// Patch by patch: the next process's first, so that not all ask the same one, and our own last.
void transpose(World& world, const Complex* from, Complex* to) {
    for (unsigned step = 1; step <= world.count; ++step) {
        const World owner((world.me + step) % world.count, world.count);
        for (std::size_t n = owner.first(side); n < owner.end(side); ++n)
            for (std::size_t row = world.first(side); row < world.end(side); ++row)
                to[row * side + n] = from[n * side + row];
    }
    world.barrier();
}
void transform(const Complex* row, std::size_t length, const std::vector<Complex>& roots,
               Complex* out) {
    if (length == 1) {
        out[0] = row[0];
        return;
    }
    const std::size_t step = side / length;
    transform(row, length / 2, roots, out);
    transform(row + step, length / 2, roots, out + length / 2);
    for (std::size_t n = 0; n < length / 2; ++n) {
        const Complex odd = roots[n * step] * out[n + length / 2];
        out[n + length / 2] = out[n] - odd;
        out[n] += odd;
    }
}
void transform_rows(World& world, Complex* rows, bool twiddle) {
    std::vector<Complex> out(side), roots(side);
    for (std::size_t n = 0; n < side; ++n) roots[n] = root(n, side);
    for (std::size_t row = world.first(side); row < world.end(side); ++row) {
        transform(rows + row * side, side, roots, out.data());
        const Complex turn = twiddle ? root(row, side * side) : 1;
        Complex turned = 1;
        for (std::size_t n = 0; n < side; ++n, turned *= turn)
            rows[row * side + n] = out[n] * turned;
    }
    world.barrier();
}
void fft_run(World& world, char* memory) {
    auto* const one = array<Complex>(memory, fft_arrays, 0);
    auto* const other = array<Complex>(memory, fft_arrays, 1);
    transpose(world, one, other);
    transform_rows(world, other, true);
    transpose(world, other, one);
    transform_rows(world, one, false);
    transpose(world, one, other);
}
void fft_begin(char* memory) {
    for (std::size_t n = 0; n < side * side; ++n)
        array<Complex>(memory, fft_arrays, 0)[n] = noise(n);
}
std::string fft_wrong(const char* memory) {
    const auto* const found = array<Complex>(const_cast<char*>(memory), fft_arrays, 1);
    for (const std::size_t frequency : {std::size_t{0}, std::size_t{1}, side + 3}) {
        Complex sum;
        for (std::size_t n = 0; n < side * side; ++n)
            sum += noise(n) * root(frequency * n % (side * side), side * side);
        if (std::abs(sum - found[frequency]) > 1e-6) return "a frequency is not the sum it is";
    }
    return "";
}

// LU ----------------------------------------------------------------------------------------------

constexpr std::size_t block = 32;
constexpr std::size_t block_words = block * block;
std::size_t blocks = 0;  ///< in each direction
std::size_t lu_arrays[1];
/// As SPLASH-2 allocates them, those of a process lie behind each other.
std::vector<std::size_t> lu_places;  ///< of blocks, in words
std::vector<unsigned> lu_owners;     ///< of blocks as they lie

/// Scattered over both directions.
unsigned owner(std::size_t row, std::size_t column, unsigned count) {
    const unsigned rows = count % 2 == 0 ? 2 : 1;
    return static_cast<unsigned>(row % rows * (count / rows) + column % (count / rows));
}
bool lu_prepare(std::size_t size, unsigned count) {
    if (size % block != 0 || size < 2 * block || size > 8192) return false;
    blocks = size / block;
    lu_arrays[0] = blocks * blocks * block_words * sizeof(double);
    lu_places.resize(blocks * blocks);
    for (unsigned process = 0; process < count; ++process) {
        for (std::size_t which = 0; which < blocks * blocks; ++which) {
            if (owner(which / blocks, which % blocks, count) != process) continue;
            lu_places[which] = lu_owners.size() * block_words;
            lu_owners.push_back(process);
        }
    }
    return true;
}
unsigned lu_home(std::size_t page, unsigned) {
    return lu_owners[page * page_bytes / (block_words * sizeof(double))];
}
double* block_at(char* memory, std::size_t row, std::size_t column) {
    return reinterpret_cast<double*>(memory) + lu_places[row * blocks + column];
}
double& cell(char* memory, std::size_t row, std::size_t column) {
    return block_at(memory, row / block, column / block)[row % block * block + column % block];
}
double lu_value(std::size_t row, std::size_t column) {
    const auto most = static_cast<double>(blocks * block);  // of a row's sum
    return noise(row * 977 + column) + (row == column ? most + 44 : 0);
}
void lu_begin(char* memory) {
    for (std::size_t row = 0; row < block * blocks; ++row)
        for (std::size_t column = 0; column < block * blocks; ++column)
            cell(memory, row, column) = lu_value(row, column);
}
/// Of the block at (row, column), what the columns or rows `step` of both sides take away.
void reduce(char* memory, std::size_t row, std::size_t column, std::size_t step) {
    double* const target = block_at(memory, row, column);
    const double* const left = block_at(memory, row, step);
    const double* const above = block_at(memory, step, column);
    const double* const pivots = block_at(memory, step, step);
    for (std::size_t k = 0; k < block; ++k) {
        for (std::size_t i = row == step ? k + 1 : 0; i < block; ++i) {
            if (column == step) target[i * block + k] /= pivots[k * block + k];
            const double part = left[i * block + k];
            for (std::size_t j = column == step ? k + 1 : 0; j < block; ++j)
                target[i * block + j] -= part * above[k * block + j];
        }
    }
}
void lu_run(World& world, char* memory) {
    const auto mine = [&](std::size_t row, std::size_t column) {
        return owner(row, column, world.count) == world.me;
    };
    for (std::size_t step = 0; step < blocks; ++step) {
        if (mine(step, step)) reduce(memory, step, step, step);
        world.barrier();
        for (std::size_t n = step + 1; n < blocks; ++n) {
            if (mine(n, step)) reduce(memory, n, step, step);
            if (mine(step, n)) reduce(memory, step, n, step);
        }
        world.barrier();
        for (std::size_t row = step + 1; row < blocks; ++row)
            for (std::size_t column = step + 1; column < blocks; ++column)
                if (mine(row, column)) reduce(memory, row, column, step);
    }
}
std::string lu_wrong(const char* memory) {
    char* const all = const_cast<char*>(memory);
    for (std::size_t n = 0; n < 200; ++n) {
        const std::size_t row = n * 37 % (block * blocks), column = n * 101 % (block * blocks);
        double sum = 0;
        for (std::size_t k = 0; k <= std::min(row, column); ++k)
            sum += (k == row ? 1 : cell(all, row, k)) * cell(all, k, column);
        if (std::abs(sum - lu_value(row, column)) > 1e-8) return "L times U is not the matrix";
    }
    return "";
}

// Ocean -------------------------------------------------------------------------------------------

constexpr std::size_t grids[] = {258, 130, 66, 34};
constexpr std::size_t ocean_arrays[] = {258 * 258 * 8, 130 * 130 * 8, 66 * 66 * 8, 34 * 34 * 8};

void ocean_run(World& world, char* memory) {
    for (int cycle = 0; cycle < 2; ++cycle) {
        for (std::size_t level = 0; level < std::size(grids); ++level) {
            const std::size_t width = grids[level];
            auto* const grid = array<double>(memory, ocean_arrays, level);
            const auto begin = std::max<std::size_t>(world.first(width), 1);
            const auto end = std::min(world.end(width), width - 1);
            for (std::size_t colour = 0; colour < 4; ++colour) {
                for (std::size_t row = begin; row < end; ++row) {
                    for (std::size_t n = 1 + (row + colour) % 2; n < width - 1; n += 2) {
                        double* const at = grid + row * width + n;
                        *at = (at[-1] + at[1] + *(at - width) + *(at + width)) / 4;
                    }
                }
                world.barrier();
            }
            if (level + 1 == std::size(grids)) continue;
            const std::size_t next = grids[level + 1];
            auto* const coarse = array<double>(memory, ocean_arrays, level + 1);
            const auto last = std::min(world.end(next), next - 1);
            for (auto row = std::max<std::size_t>(world.first(next), 1); row < last; ++row)
                for (std::size_t n = 1; n < next - 1; ++n)
                    coarse[row * next + n] += grid[(2 * row - 1) * width + 2 * n - 1] / 2;
            world.barrier();
        }
    }
}
void ocean_begin(char* memory) {
    for (std::size_t level = 0; level < std::size(grids); ++level)
        for (std::size_t n = 0; n < grids[level] * grids[level]; ++n)
            array<double>(memory, ocean_arrays, level)[n] = noise(n);
}

// Radix -------------------------------------------------------------------------------------------

constexpr std::size_t digits = 256;
std::size_t keys = 0;
std::size_t radix_arrays[3];

bool radix_prepare(std::size_t size, unsigned) {
    if (size < 1 << 14 || size > 1 << 24) return false;
    keys = size;
    radix_arrays[0] = radix_arrays[1] = keys * sizeof(std::uint32_t);
    radix_arrays[2] = processes_max * digits * sizeof(std::uint32_t);
    return true;
}
void radix_run(World& world, char* memory) {
    auto* from = array<std::uint32_t>(memory, radix_arrays, 0);
    auto* to = array<std::uint32_t>(memory, radix_arrays, 1);
    auto* const counts = array<std::uint32_t>(memory, radix_arrays, 2);
    for (unsigned shift = 0; shift < 16; shift += 8) {
        std::vector<std::uint32_t> mine(digits), places(digits);
        for (std::size_t n = world.first(keys); n < world.end(keys); ++n)
            ++mine[from[n] >> shift & (digits - 1)];
        std::ranges::copy(mine, counts + world.me * digits);
        world.barrier();
        std::uint32_t place = 0;
        for (std::size_t digit = 0; digit < digits; ++digit) {
            for (unsigned process = 0; process < world.count; ++process) {
                if (process == world.me) places[digit] = place;
                place += counts[process * digits + digit];
            }
        }
        for (std::size_t n = world.first(keys); n < world.end(keys); ++n)
            to[places[from[n] >> shift & (digits - 1)]++] = from[n];
        world.barrier();
        std::swap(from, to);
    }
    // How the work was divided is no part of the result.
    for (std::size_t n = 0; n < digits; ++n) counts[world.me * digits + n] = 0;
    world.barrier();
}
void radix_begin(char* memory) {
    for (std::size_t n = 0; n < keys; ++n)
        array<std::uint32_t>(memory, radix_arrays, 0)[n] =
            static_cast<std::uint32_t>(noise(n) * 65535);
}
std::string radix_wrong(const char* memory) {
    const auto* const found = array<std::uint32_t>(const_cast<char*>(memory), radix_arrays, 0);
    return std::is_sorted(found, found + keys) ? "" : "the keys are not in order";
}

std::string nothing_more(const char*) { return ""; }

constexpr Kernel all_matrix[] = {
    {"fft", "transposes", 128, fft_prepare, [] { return bytes_of(fft_arrays); },
     [](std::size_t page, unsigned count) { return home_within(fft_arrays, page, count); },
     fft_begin, fft_run, fft_wrong},
    {"lu", "broadcast of contiguous blocks", 512, lu_prepare, [] { return bytes_of(lu_arrays); },
     lu_home, lu_begin, lu_run, lu_wrong},
    {"ocean", "neighbours on grids of four sizes", 258, nullptr,
     [] { return bytes_of(ocean_arrays); },
     [](std::size_t page, unsigned count) { return home_within(ocean_arrays, page, count); },
     ocean_begin, ocean_run, nothing_more},
    {"radix", "a permutation to scattered pages", 1 << 17, radix_prepare,
     [] { return bytes_of(radix_arrays); },
     [](std::size_t page, unsigned count) { return home_within(radix_arrays, page, count); },
     radix_begin, radix_run, radix_wrong},
};

}  // namespace

std::span<const Kernel> matrix_kernels() { return all_matrix; }

}  // namespace via::pages
