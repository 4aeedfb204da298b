// A file that only this process has, for what is read by its path.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <span>
#include <string>

#include "input.hpp"

namespace fuzz {

class MemoryFile {
public:
    explicit MemoryFile(std::span<const std::byte> bytes)
        : file_(::memfd_create("fuzz", MFD_CLOEXEC)) {
        require(file_ >= 0, "there is a file in memory");
        require(::write(file_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
                "it can be written");
    }
    MemoryFile(const MemoryFile&) = delete;
    MemoryFile& operator=(const MemoryFile&) = delete;
    ~MemoryFile() { ::close(file_); }
    std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

private:
    int file_;
};

}  // namespace fuzz
