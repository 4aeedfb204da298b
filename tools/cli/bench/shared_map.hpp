// Memory that a parent maps and its children share.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <utility>

#include "bench/types.hpp"

namespace via::bench {

// Zeroed, in huge pages where the system gives them: a limit should not be bent by page walks.
class SharedMap {
public:
    SharedMap() = default;
    SharedMap(const SharedMap&) = delete;
    SharedMap& operator=(const SharedMap&) = delete;
    ~SharedMap() {
        if (base_ != nullptr) ::munmap(base_, bytes_);
    }

    Status create(std::size_t bytes) {
        void* at =
            ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) return fail_errno(fmt::format("mmap of {} shared bytes", bytes));
        ::madvise(at, bytes, MADV_HUGEPAGE);
        base_ = static_cast<std::byte*>(at);
        bytes_ = bytes;
        return {};
    }

    std::byte* base() const { return base_; }
    std::size_t bytes() const { return bytes_; }

private:
    std::byte* base_ = nullptr;
    std::size_t bytes_ = 0;
};

}  // namespace via::bench
