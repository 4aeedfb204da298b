// `via-pages KERNEL [PROCESSES [SIZE]]`: a kernel on processes that share its memory by pages over
// RDMA. Its result must be that of one process alone, to the last bit, and hold what it has to.
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
    std::fprintf(stderr, "usage: via-pages KERNEL [PROCESSES [SIZE]]\n");
    for (const auto kernels : {matrix_kernels(), scene_kernels()})
        for (const Kernel& kernel : kernels)
            std::fprintf(stderr, "  %-16s %s; size %zu%s\n", kernel.name, kernel.what, kernel.size,
                         kernel.prepare == nullptr ? " alone" : "");
    return 2;
}

/// Of one process alone, without any pages shared.
std::vector<char> alone(const Kernel& kernel, const char* memory) {
    std::vector<char> own(memory, memory + kernel.bytes());
    World world(0, 1);
    kernel.run(world, own.data());
    const std::string wrong = kernel.wrong(own.data());
    if (!wrong.empty()) fail(wrong.c_str());
    return own;
}

/// Each compares what it is the home of: nobody reads a page but the program.
void run(const Kernel& kernel, char* memory, const std::vector<char>& right, unsigned me,
         unsigned count, const std::string& job) {
    std::vector<unsigned> homes;
    for (std::size_t page = 0; page < right.size() / page_bytes; ++page)
        homes.push_back(kernel.home(page, count));
    SharedPages world(me, job, memory, homes, count);
    kernel.run(world, memory);
    world.barrier();  // until then the homes have to be there
    for (std::size_t page = 0; page < homes.size(); ++page) {
        const std::size_t at = page * page_bytes;
        if (homes[page] == me && std::memcmp(memory + at, right.data() + at, page_bytes) != 0)
            fail("the result is not that of one process alone");
    }
}

bool prepare(const Kernel& kernel, unsigned count, const char* size) {
    if (kernel.prepare == nullptr) return size == nullptr;
    const long wanted =
        size == nullptr ? static_cast<long>(kernel.size) : std::strtol(size, nullptr, 10);
    return wanted > 0 && kernel.prepare(static_cast<std::size_t>(wanted), count);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2 || argc > 4) return usage();
    const Kernel* const kernel = kernel_of(argv[1]);
    const long wanted = argc > 2 ? std::strtol(argv[2], nullptr, 10) : 4;
    if (kernel == nullptr || wanted < 1 || wanted > long{processes_max}) return usage();
    const auto count = static_cast<unsigned>(wanted);
    if (!prepare(*kernel, count, argc > 3 ? argv[3] : nullptr)) return usage();
    // The same address in all processes, and in each run: far from what the system gives out.
    void* const place = reinterpret_cast<void*>(std::uintptr_t{1} << 45);
    void* const mapped = ::mmap(place, kernel->bytes(), PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (mapped != place) fail("there is no room for the shared pages");
    char* const memory = static_cast<char*>(mapped);
    kernel->begin(memory);
    const std::vector<char> right = alone(*kernel, memory);
    const std::string job = std::to_string(::getpid());
    for (unsigned me = 0; me < count; ++me) {
        if (::fork() != 0) continue;
        run(*kernel, memory, right, me, count, job);
        return 0;
    }
    bool good = true;
    for (unsigned n = 0; n < count; ++n) {
        int status = 0;
        good = ::wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 && good;
    }
    if (good)
        std::printf("%s: %u processes, %zu pages, right\n", kernel->name, count,
                    right.size() / page_bytes);
    return good ? 0 : 1;
}
