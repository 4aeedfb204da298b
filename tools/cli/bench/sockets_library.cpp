#include "bench/sockets_library.hpp"

#include <unistd.h>

#include <filesystem>

#include "ring.hpp"

namespace via::bench {

std::string sockets_library() {
    namespace fs = std::filesystem;
    std::error_code error;
    const fs::path ours = fs::read_symlink("/proc/self/exe", error).parent_path().parent_path();
    for (const char* const folder : {"lib", VIA_LIBRARY_FOLDER}) {
        const fs::path file = ours / folder / "libvia-sockets.so";
        if (access(file.c_str(), R_OK) == 0) return file.string();
    }
    return {};
}

std::string why_in_kernel(int fd) {
    const auto process = static_cast<std::uint32_t>(getpid());
    for (const sockets::HeldArena& arena : sockets::Arena::all()) {
        for (const std::uint64_t first : arena->head().buckets) {
            for (std::uint64_t at = first; at != 0; at = arena->at<sockets::Stream>(at)->next) {
                const sockets::Stream& one = *arena->at<sockets::Stream>(at);
                if (one.process != process || one.descriptor != static_cast<std::uint32_t>(fd))
                    continue;
                const std::uint64_t offset = one.pipe.load();
                const sockets::HeldArena its =
                    offset == 0 ? nullptr : sockets::Arena::open(one.pipe_arena.load());
                if (its != nullptr && its->at<sockets::Pipe>(offset)->state() == sockets::stored)
                    return {};
                return sockets::text_of(static_cast<sockets::Reason>(one.reason.load()));
            }
        }
    }
    return "it is not known to libvia-sockets.so";
}

}  // namespace via::bench
