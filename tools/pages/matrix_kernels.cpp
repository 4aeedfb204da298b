// FFT (transposes), LU with contiguous blocks (broadcast of blocks), Ocean (neighbours on grids of
// several sizes), Radix (a permutation).
#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include "kernels.hpp"

namespace via::pages {
namespace {

double noise(std::size_t n) { return static_cast<double>(n * 2654435761U % 1000003) / 1000003; }

// FFT ---------------------------------------------------------------------------------------------

using Complex = std::complex<double>;
constexpr std::size_t side = 128;
constexpr std::size_t fft_arrays[] = {side * side * sizeof(Complex), side* side * sizeof(Complex)};

void transpose(World& world, const Complex* from, Complex* to) {
    for (std::size_t row = world.first(side); row < world.end(side); ++row)
        for (std::size_t n = 0; n < side; ++n) to[row * side + n] = from[n * side + row];
    world.barrier();
}
void transform(Complex* row, std::size_t length, std::size_t step, Complex* out) {
    if (length == 1) {
        out[0] = row[0];
        return;
    }
    transform(row, length / 2, 2 * step, out);
    transform(row + step, length / 2, 2 * step, out + length / 2);
    for (std::size_t n = 0; n < length / 2; ++n) {
        const double turn =
            -2 * std::numbers::pi * static_cast<double>(n) / static_cast<double>(length);
        const Complex odd = std::polar(1.0, turn) * out[n + length / 2];
        out[n + length / 2] = out[n] - odd;
        out[n] += odd;
    }
}
void transform_rows(World& world, Complex* rows, bool twiddle) {
    std::vector<Complex> out(side);
    for (std::size_t row = world.first(side); row < world.end(side); ++row) {
        transform(rows + row * side, side, 1, out.data());
        for (std::size_t n = 0; n < side; ++n) {
            const double turn = -2 * std::numbers::pi * static_cast<double>(row * n) /
                                static_cast<double>(side * side);
            rows[row * side + n] = twiddle ? out[n] * std::polar(1.0, turn) : out[n];
        }
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
        for (std::size_t n = 0; n < side * side; ++n) {
            const double turn = -2 * std::numbers::pi *
                                static_cast<double>(frequency * n % (side * side)) /
                                static_cast<double>(side * side);
            sum += noise(n) * std::polar(1.0, turn);
        }
        if (std::abs(sum - found[frequency]) > 1e-6) return "a frequency is not the sum it is";
    }
    return "";
}

// LU ----------------------------------------------------------------------------------------------

constexpr std::size_t block = 32;
constexpr std::size_t blocks = 8;
constexpr std::size_t block_words = block * block;
constexpr std::size_t lu_arrays[] = {blocks * blocks * block_words * sizeof(double)};

/// Scattered over both directions.
unsigned owner(std::size_t row, std::size_t column, unsigned count) {
    const unsigned rows = count % 2 == 0 ? 2 : 1;
    return static_cast<unsigned>(row % rows * (count / rows) + column % (count / rows));
}
unsigned lu_home(std::size_t page, unsigned count) {
    const std::size_t which = page * page_bytes / (block_words * sizeof(double));
    return owner(which / blocks, which % blocks, count);
}
double& cell(char* memory, std::size_t row, std::size_t column) {
    const std::size_t which = row / block * blocks + column / block;
    return reinterpret_cast<double*>(
        memory)[which * block_words + row % block * block + column % block];
}
double lu_value(std::size_t row, std::size_t column) {
    return noise(row * 977 + column) + (row == column ? 300 : 0);
}
void lu_begin(char* memory) {
    for (std::size_t row = 0; row < block * blocks; ++row)
        for (std::size_t column = 0; column < block * blocks; ++column)
            cell(memory, row, column) = lu_value(row, column);
}
/// Of the block at (row, column), what the columns or rows `step` of both sides take away.
void reduce(char* memory, std::size_t row, std::size_t column, std::size_t step) {
    const std::size_t pivots = step * block;
    for (std::size_t k = pivots; k < pivots + block; ++k) {
        for (std::size_t i = row * block; i < (row + 1) * block; ++i) {
            if (i <= k) continue;
            if (column == step) cell(memory, i, k) /= cell(memory, k, k);
            const double part = cell(memory, i, k);
            for (std::size_t j = column * block; j < (column + 1) * block; ++j)
                if (j > k) cell(memory, i, j) -= part * cell(memory, k, j);
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
        world.barrier();
    }
}
std::string lu_wrong(const char* memory) {
    char* const all = const_cast<char*>(memory);
    for (std::size_t n = 0; n < 200; ++n) {
        const std::size_t row = n * 37 % (block * blocks), column = n * 101 % (block * blocks);
        double sum = 0;
        for (std::size_t k = 0; k <= std::min(row, column); ++k)
            sum += (k == row ? 1 : cell(all, row, k)) * cell(all, k, column);
        if (std::abs(sum - lu_value(row, column)) > 1e-9) return "L times U is not the matrix";
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

constexpr std::size_t keys = 1 << 16;
constexpr std::size_t digits = 256;
constexpr std::size_t processes_max = 16;
constexpr std::size_t radix_arrays[] = {keys * 4, keys * 4, processes_max* digits * 4};

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
    {"fft", "transposes", [] { return bytes_of(fft_arrays); },
     [](std::size_t page, unsigned count) { return home_within(fft_arrays, page, count); },
     fft_begin, fft_run, fft_wrong},
    {"lu", "broadcast of contiguous blocks", [] { return bytes_of(lu_arrays); }, lu_home, lu_begin,
     lu_run, lu_wrong},
    {"ocean", "neighbours on grids of four sizes", [] { return bytes_of(ocean_arrays); },
     [](std::size_t page, unsigned count) { return home_within(ocean_arrays, page, count); },
     ocean_begin, ocean_run, nothing_more},
    {"radix", "a permutation to scattered pages", [] { return bytes_of(radix_arrays); },
     [](std::size_t page, unsigned count) { return home_within(radix_arrays, page, count); },
     radix_begin, radix_run, radix_wrong},
};

}  // namespace

std::span<const Kernel> matrix_kernels() { return all_matrix; }

}  // namespace via::pages
