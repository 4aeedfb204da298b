// `via-pages KERNEL [PROCESSES]`: a kernel on processes that share its memory by pages over RDMA.
// Its result must be that of one process alone, to the last bit, and hold what it has to.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "kernels.hpp"

namespace {

using namespace via::pages;

const Kernel* kernel_of(const char* name) {
    for (const auto kernels : {matrix_kernels(), scene_kernels()})
        for (const Kernel& kernel : kernels)
            if (std::strcmp(kernel.name, name) == 0) return &kernel;
    return nullptr;
}

int usage() {
    std::fprintf(stderr, "usage: via-pages KERNEL [PROCESSES]\n");
    for (const auto kernels : {matrix_kernels(), scene_kernels()})
        for (const Kernel& kernel : kernels)
            std::fprintf(stderr, "  %-16s %s\n", kernel.name, kernel.what);
    return 2;
}

/// Of one process alone, without any pages shared.
std::vector<char> alone(const Kernel& kernel, const char* memory, std::size_t bytes) {
    std::vector<char> own(memory, memory + bytes);
    World world(0, 1);
    kernel.run(world, own.data());
    return own;
}

void run(const Kernel& kernel, char* memory, unsigned me, unsigned count, const std::string& job) {
    const std::size_t bytes = kernel.bytes();
    std::vector<char> right;
    if (me == 0) right = alone(kernel, memory, bytes);
    std::vector<unsigned> homes;
    for (std::size_t page = 0; page < bytes / page_bytes; ++page)
        homes.push_back(kernel.home(page, count));
    SharedPages world(me, job, memory, homes, count);
    kernel.run(world, memory);
    if (me == 0) {
        if (std::memcmp(memory, right.data(), bytes) != 0)
            fail("the result is not that of one process alone");
        const std::string wrong = kernel.wrong(memory);
        if (!wrong.empty()) fail(wrong.c_str());
    }
    world.barrier();  // until then the homes have to be there
    if (me == 0)
        std::printf("%s: %u processes, %zu pages, right\n", kernel.name, count, homes.size());
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2 || argc > 3) return usage();
    const Kernel* const kernel = kernel_of(argv[1]);
    const long wanted = argc == 3 ? std::strtol(argv[2], nullptr, 10) : 4;
    if (kernel == nullptr || wanted < 1 || wanted > 16) return usage();
    const auto count = static_cast<unsigned>(wanted);
    // The same address in all processes, and in each run: far from what the system gives out.
    void* const place = reinterpret_cast<void*>(std::uintptr_t{1} << 45);
    void* const mapped = ::mmap(place, kernel->bytes(), PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (mapped != place) fail("there is no room for the shared pages");
    char* const memory = static_cast<char*>(mapped);
    kernel->begin(memory);
    const std::string job = std::to_string(::getpid());
    for (unsigned me = 0; me < count; ++me) {
        if (::fork() != 0) continue;
        run(*kernel, memory, me, count, job);
        std::fflush(stdout);
        return 0;
    }
    bool good = true;
    for (unsigned n = 0; n < count; ++n) {
        int status = 0;
        good = ::wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 && good;
    }
    return good ? 0 : 1;
}
