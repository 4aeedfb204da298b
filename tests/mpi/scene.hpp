// What the scenes of test_mpi share: who we are, saying what failed, and data that can be checked.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string>
#include <vector>

namespace mpi_test {

extern int rank;
extern int ranks;

/// Says where and what, and ends the whole job.
[[noreturn]] void fail(const std::string& what,
                       std::source_location where = std::source_location::current());

/// What the watchdog names when it ends the program; a literal.
void step(const char* name);

inline void must(bool holds, const char* what,
                 std::source_location where = std::source_location::current()) {
    if (!holds) fail(what, where);
}

/// Both are what `what` is; wanted first.
inline void same(long long wanted, long long got, const std::string& what,
                 std::source_location where = std::source_location::current()) {
    if (wanted != got)
        fail(what + ": " + std::to_string(got) + ", not " + std::to_string(wanted), where);
}

/// Seeded numbers (SplitMix64).
class Random {
public:
    explicit Random(std::uint64_t seed) : state_(seed) {}
    std::uint64_t next();
    /// 0 to bound - 1.
    int below(int bound) { return static_cast<int>(next() % static_cast<std::uint64_t>(bound)); }

private:
    std::uint64_t state_;
};

using Bytes = std::vector<std::byte>;

/// `size` bytes that depend on the seed and on the place of each.
Bytes pattern(std::size_t size, std::uint64_t seed);

/// The same into memory that is there.
void fill(std::byte* bytes, std::size_t size, std::uint64_t seed);

/// Ends the job if these are not the bytes that `fill` makes.
void check(const std::byte* bytes, std::size_t size, std::uint64_t seed, const std::string& what,
           std::source_location where = std::source_location::current());

inline void check(const Bytes& bytes, std::uint64_t seed, const std::string& what,
                  std::source_location where = std::source_location::current()) {
    check(bytes.data(), bytes.size(), seed, what, where);
}

inline int length(const Bytes& bytes) { return static_cast<int>(bytes.size()); }

/// The ranks beside us in a ring.
inline int right() { return (rank + 1) % ranks; }
inline int left() { return (rank + ranks - 1) % ranks; }

/// An integer of the environment.
int setting(const char* variable, int otherwise);

// One function a scene, each in its file.
void pingpong();
void modes();
void completions();
void probes();
void wildcards();
void collectives();
void collectives_of_vectors();
void types();
void windows();
void threads();
void spawn();
void spawned();
void death();
void traffic();

}  // namespace mpi_test
