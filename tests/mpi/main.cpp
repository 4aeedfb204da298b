// test_mpi SCENE...: scenes on all ranks, one after the other. Ends with 0, or says what failed and
// ends the job.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "scene.hpp"

namespace mpi_test {

int rank = 0;
int ranks = 1;

namespace {

const char* volatile current_step = "MPI_Init";
int watchdog_s = 60;

struct Scene {
    const char* name;
    void (*play)();
    int level = MPI_THREAD_SINGLE;
};

constexpr Scene scenes[] = {
    {"pingpong", pingpong},
    {"modes", modes},
    {"completions", completions},
    {"probes", probes},
    {"wildcards", wildcards},
    {"collectives", collectives},
    {"vectors", collectives_of_vectors},
    {"types", types},
    {"windows", windows},
    {"threads", threads, MPI_THREAD_MULTIPLE},
    {"spawn", spawn},
    {"spawned", spawned},
    {"death", death},
    {"traffic", traffic},
};

void say_raw(const char* text) {
    // There is nobody left to tell if this fails.
    if (write(STDERR_FILENO, text, std::strlen(text)) < 0) _exit(4);
}

void bark(int) {
    say_raw("test_mpi: the watchdog ends this rank in step: ");
    say_raw(current_step);
    say_raw("\n");
    _exit(3);
}

}  // namespace

void fail(const std::string& what, std::source_location where) {
    std::fprintf(stderr, "rank %d of %d: %s:%u: %s (step: %s)\n", rank, ranks, where.file_name(),
                 static_cast<unsigned>(where.line()), what.c_str(), current_step);
    MPI_Abort(MPI_COMM_WORLD, 1);
    std::abort();
}

void step(const char* name) {
    current_step = name;
    alarm(static_cast<unsigned>(watchdog_s));
}

std::uint64_t Random::next() {
    std::uint64_t mixed = state_ += 0x9e3779b97f4a7c15;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    return mixed ^ (mixed >> 31);
}

void fill(std::byte* bytes, std::size_t size, std::uint64_t seed) {
    Random random(seed);
    for (std::size_t at = 0; at < size; at += sizeof(std::uint64_t)) {
        const std::uint64_t word = random.next();
        std::memcpy(bytes + at, &word, std::min(sizeof word, size - at));
    }
}

Bytes pattern(std::size_t size, std::uint64_t seed) {
    Bytes bytes(size);
    fill(bytes.data(), size, seed);
    return bytes;
}

void check(const std::byte* bytes, std::size_t size, std::uint64_t seed, const std::string& what,
           std::source_location where) {
    Random random(seed);
    for (std::size_t at = 0; at < size; at += sizeof(std::uint64_t)) {
        const std::uint64_t word = random.next();
        if (std::memcmp(bytes + at, &word, std::min(sizeof word, size - at)) == 0) continue;
        fail(what + ": wrong at byte " + std::to_string(at) + " of " + std::to_string(size), where);
    }
}

int setting(const char* variable, int otherwise) {
    const char* value = std::getenv(variable);
    return value == nullptr ? otherwise : std::atoi(value);
}

namespace {

const Scene* find(std::string_view name) {
    for (const Scene& scene : scenes) {
        if (name == scene.name) return &scene;
    }
    return nullptr;
}

int play(const std::vector<const Scene*>& wanted, int argc, char** argv) {
    watchdog_s = setting("VIA_MPI_WATCHDOG_S", 60);
    signal(SIGALRM, bark);
    step("MPI_Init_thread");
    int level = MPI_THREAD_SINGLE;
    int wanted_level = MPI_THREAD_SINGLE;
    for (const Scene* scene : wanted) wanted_level = std::max(wanted_level, scene->level);
    MPI_Init_thread(&argc, &argv, wanted_level, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    must(level >= wanted_level, "MPI gives fewer threads than asked for");
    for (const Scene* scene : wanted) {
        if (scene != wanted.front()) {  // whose messages may not meet receives of the next one
            step("between two scenes");
            MPI_Barrier(MPI_COMM_WORLD);
        }
        step("start of the scene");
        scene->play();
        if (rank == 0) std::printf("%s: played on %d ranks\n", scene->name, ranks);
        std::fflush(stdout);
    }
    step("MPI_Finalize");
    MPI_Finalize();
    if (rank == 0) std::printf("good on %d ranks\n", ranks);
    return 0;
}

}  // namespace

}  // namespace mpi_test

int main(int argc, char** argv) {
    std::vector<const mpi_test::Scene*> wanted;
    bool known = argc > 1;
    for (int n = 1; n < argc; ++n) {
        wanted.push_back(mpi_test::find(argv[n]));
        known = known && wanted.back() != nullptr;
    }
    if (known) return mpi_test::play(wanted, argc, argv);
    std::fprintf(stderr, "usage: test_mpi SCENE...; there are:");
    for (const auto& scene : mpi_test::scenes) std::fprintf(stderr, " %s", scene.name);
    std::fprintf(stderr, "\n");
    return 2;
}
