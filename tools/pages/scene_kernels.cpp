// Water, each molecule with all others or with those of cells near it; Volrend and Raytrace: tiles
// of a picture of a scene that all read. Tiles go to processes in turn: without locks nobody
// steals.
#include <algorithm>
#include <array>
#include <cmath>

#include "kernels.hpp"

namespace via::pages {
namespace {

double scatter(std::size_t n) { return static_cast<double>(n * 40503U * 69069U % 999983) / 999983; }

// Water -------------------------------------------------------------------------------------------

/// As large as SPLASH-2's: places, speeds and forces of three atoms, and higher derivatives.
struct Molecule {
    std::array<double, 3> place, speed, force;
    std::array<double, 75> others;
};
constexpr std::size_t steps = 2;

void pull(Molecule& one, const Molecule& other) {
    double square = 1e-3;
    std::array<double, 3> way{};
    for (std::size_t n = 0; n < 3; ++n) {
        way[n] = other.place[n] - one.place[n];
        square += way[n] * way[n];
    }
    for (std::size_t n = 0; n < 3; ++n) one.force[n] += way[n] / (square * std::sqrt(square));
}
void move(Molecule& one) {
    for (std::size_t n = 0; n < 3; ++n) {
        one.speed[n] += one.force[n] * 1e-6;
        one.place[n] += one.speed[n];
        one.others[n] = one.force[n];
        one.force[n] = 0;
    }
}

constexpr std::size_t molecules = 343;
constexpr std::size_t nsquared_arrays[] = {molecules * sizeof(Molecule)};

void nsquared_run(World& world, char* memory) {
    auto* const all = reinterpret_cast<Molecule*>(memory);
    for (std::size_t step = 0; step < steps; ++step) {
        for (std::size_t one = world.first(molecules); one < world.end(molecules); ++one)
            for (std::size_t other = 0; other < molecules; ++other)
                if (other != one) pull(all[one], all[other]);
        world.barrier();
        for (std::size_t one = world.first(molecules); one < world.end(molecules); ++one)
            move(all[one]);
        world.barrier();
    }
}

constexpr std::size_t cells = 8;  ///< in each direction
constexpr std::size_t in_cell = 2;
constexpr std::size_t spatial_molecules = cells * cells * cells * in_cell;
constexpr std::size_t spatial_arrays[] = {spatial_molecules * sizeof(Molecule)};

void pull_by_cell(Molecule* all, std::size_t cell, std::size_t near) {
    for (std::size_t one = cell * in_cell; one < (cell + 1) * in_cell; ++one)
        for (std::size_t other = near * in_cell; other < (near + 1) * in_cell; ++other)
            if (other != one) pull(all[one], all[other]);
}
/// The cell itself and the 26 around it, as far as there are.
void pull_nearby(Molecule* all, std::size_t cell) {
    const std::array<std::size_t, 3> at = {cell / (cells * cells), cell / cells % cells,
                                           cell % cells};
    for (std::size_t n = 0; n < 27; ++n) {
        const std::array<std::size_t, 3> near = {at[0] + n / 9, at[1] + n / 3 % 3, at[2] + n % 3};
        const bool inside = std::ranges::all_of(
            near, [](std::size_t place) { return place >= 1 && place <= cells; });
        if (inside)
            pull_by_cell(all, cell, ((near[0] - 1) * cells + near[1] - 1) * cells + near[2] - 1);
    }
}
void spatial_run(World& world, char* memory) {
    auto* const all = reinterpret_cast<Molecule*>(memory);
    constexpr std::size_t count = cells * cells * cells;
    for (std::size_t step = 0; step < steps; ++step) {
        for (std::size_t cell = world.first(count); cell < world.end(count); ++cell)
            pull_nearby(all, cell);
        world.barrier();
        for (std::size_t one = world.first(count) * in_cell; one < world.end(count) * in_cell;
             ++one)
            move(all[one]);
        world.barrier();
    }
}
void place_all(char* memory, std::size_t count) {
    auto* const all = reinterpret_cast<Molecule*>(memory);
    for (std::size_t one = 0; one < count; ++one)
        for (std::size_t n = 0; n < 3; ++n)
            all[one].place[n] = scatter(3 * one + n) + static_cast<double>(one % 7);
}
/// Of the first step, forces of all molecules on each other add up to none.
std::string nsquared_wrong(const char* memory) {
    const auto* const all = reinterpret_cast<const Molecule*>(memory);
    double sum = 0, size = 0;
    for (std::size_t one = 0; one < molecules; ++one) {
        sum += all[one].speed[0];
        size += std::abs(all[one].speed[0]);
    }
    return std::abs(sum) < 1e-9 * size ? "" : "the molecules move away together";
}

// Volrend -----------------------------------------------------------------------------------------

constexpr std::size_t picture = 128;
constexpr std::size_t tile = 16;
constexpr std::size_t volume_side = 64;
constexpr std::size_t volrend_arrays[] = {volume_side * volume_side * volume_side,
                                          picture* picture * 4};

/// Calls for each pixel of this process's tiles.
template <class Pixel>
void draw(World& world, Pixel pixel) {
    constexpr std::size_t across = picture / tile;
    for (std::size_t which = world.me; which < across * across; which += world.count)
        for (std::size_t n = 0; n < tile * tile; ++n)
            pixel(which % across * tile + n % tile, which / across * tile + n / tile);
    world.barrier();
}

float density_along(const unsigned char* volume, std::size_t x, std::size_t y) {
    float light = 0, left = 1;
    for (std::size_t step = 0; step < volume_side && left > 0.05F; ++step) {
        const std::size_t column = (x / 2 + step / 4) % volume_side;
        const unsigned char there =
            volume[(step * volume_side + y / 2 % volume_side) * volume_side + column];
        const float part = static_cast<float>(there) / 2048;
        light += left * part * static_cast<float>(volume_side - step);
        left *= 1 - part;
    }
    return light;
}
void volrend_run(World& world, char* memory) {
    const auto* const volume = array<unsigned char>(memory, volrend_arrays, 0);
    auto* const pixels = array<float>(memory, volrend_arrays, 1);
    for (int view = 0; view < 2; ++view) {
        draw(world, [&](std::size_t x, std::size_t y) {
            pixels[y * picture + x] = density_along(volume, view == 0 ? x : y, view == 0 ? y : x);
        });
    }
}
void volrend_begin(char* memory) {
    for (std::size_t n = 0; n < volrend_arrays[0]; ++n)
        array<unsigned char>(memory, volrend_arrays, 0)[n] =
            static_cast<unsigned char>(255 * scatter(n / 3));
}

// Raytrace ----------------------------------------------------------------------------------------

struct Ball {
    double x, y, z, radius, mirror;
    std::array<double, 11> surface;
};
constexpr std::size_t balls = 600;
constexpr std::size_t raytrace_arrays[] = {balls * sizeof(Ball), picture* picture * 4};

struct Ray {
    std::array<double, 3> from, to;
};
/// The nearest ball that it meets, and how far that is; `balls` if none.
std::size_t meets(const Ball* all, const Ray& ray, double& far) {
    std::size_t found = balls;
    far = 1e9;
    for (std::size_t n = 0; n < balls; ++n) {
        const std::array<double, 3> way = {all[n].x - ray.from[0], all[n].y - ray.from[1],
                                           all[n].z - ray.from[2]};
        const double along = way[0] * ray.to[0] + way[1] * ray.to[1] + way[2] * ray.to[2];
        const double beside = way[0] * way[0] + way[1] * way[1] + way[2] * way[2] - along * along;
        const double inside = all[n].radius * all[n].radius - beside;
        if (inside < 0) continue;
        const double at = along - std::sqrt(inside);
        if (at > 1e-6 && at < far) {
            far = at;
            found = n;
        }
    }
    return found;
}
float shade(const Ball* all, Ray ray) {
    double light = 0, part = 1;
    for (int bounce = 0; bounce < 3; ++bounce) {
        double far = 0;
        const std::size_t which = meets(all, ray, far);
        if (which == balls) break;
        const Ball& ball = all[which];
        const std::array<double, 3> middle = {ball.x, ball.y, ball.z};
        std::array<double, 3> out{};
        double turned = 0;
        for (std::size_t n = 0; n < 3; ++n) {
            ray.from[n] += far * ray.to[n];
            out[n] = (ray.from[n] - middle[n]) / ball.radius;
            turned += out[n] * ray.to[n];
        }
        light += part * (1 - ball.mirror) * std::abs(turned) * ball.surface[which % 11];
        part *= ball.mirror;
        for (std::size_t n = 0; n < 3; ++n) ray.to[n] -= 2 * turned * out[n];
    }
    return static_cast<float>(light);
}
void raytrace_run(World& world, char* memory) {
    const auto* const all = array<Ball>(memory, raytrace_arrays, 0);
    auto* const pixels = array<float>(memory, raytrace_arrays, 1);
    draw(world, [&](std::size_t x, std::size_t y) {
        const double wide = static_cast<double>(x) / picture - 0.5;
        const double high = static_cast<double>(y) / picture - 0.5;
        const double length = std::sqrt(wide * wide + high * high + 1);
        pixels[y * picture + x] =
            shade(all, {{0, 0, -20}, {wide / length, high / length, 1 / length}});
    });
}
void raytrace_begin(char* memory) {
    auto* const all = array<Ball>(memory, raytrace_arrays, 0);
    for (std::size_t n = 0; n < balls; ++n) {
        all[n] = {20 * scatter(5 * n) - 10, 20 * scatter(5 * n + 1) - 10,
                  20 * scatter(5 * n + 2),  0.2 + scatter(5 * n + 3) / 2,
                  scatter(5 * n + 4) / 2,   {}};
        for (std::size_t side = 0; side < all[n].surface.size(); ++side)
            all[n].surface[side] = scatter(n + side);
    }
}

std::string dark(const float* pixels) {
    const auto lit =
        std::count_if(pixels, pixels + picture * picture, [](float light) { return light > 0; });
    return lit > static_cast<long>(picture) ? "" : "the picture is dark";
}

constexpr Kernel all_scenes[] = {
    {"water-nsquared", "each molecule with all others", molecules, nullptr,
     [] { return bytes_of(nsquared_arrays); },
     [](std::size_t page, unsigned count) { return home_within(nsquared_arrays, page, count); },
     [](char* memory) { place_all(memory, molecules); }, nsquared_run, nsquared_wrong},
    {"water-spatial", "molecules with those of cells near them", spatial_molecules, nullptr,
     [] { return bytes_of(spatial_arrays); },
     [](std::size_t page, unsigned count) { return home_within(spatial_arrays, page, count); },
     [](char* memory) { place_all(memory, spatial_molecules); }, spatial_run,
     [](const char*) { return std::string(); }},
    {"volrend", "tiles of a picture of a volume", picture, nullptr,
     [] { return bytes_of(volrend_arrays); },
     [](std::size_t page, unsigned count) { return home_within(volrend_arrays, page, count); },
     volrend_begin, volrend_run,
     [](const char* memory) {
         return dark(array<float>(const_cast<char*>(memory), volrend_arrays, 1));
     }},
    {"raytrace", "tiles of a picture of balls", picture, nullptr,
     [] { return bytes_of(raytrace_arrays); },
     [](std::size_t page, unsigned count) { return home_within(raytrace_arrays, page, count); },
     raytrace_begin, raytrace_run,
     [](const char* memory) {
         return dark(array<float>(const_cast<char*>(memory), raytrace_arrays, 1));
     }},
};

}  // namespace

std::span<const Kernel> scene_kernels() { return all_scenes; }

}  // namespace via::pages
