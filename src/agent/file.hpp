// A file descriptor that closes itself.
#pragma once

#include <utility>

#include "posix/not_cancelled.hpp"

namespace via::agent {

class File {
public:
    File() = default;
    explicit File(int descriptor) : descriptor_(descriptor) {}
    File(File&& other) noexcept : descriptor_(other.give()) {}
    File& operator=(File&& other) noexcept {
        if (this != &other) {
            reset();
            descriptor_ = other.give();
        }
        return *this;
    }
    ~File() { reset(); }

    int get() const { return descriptor_; }
    bool valid() const { return descriptor_ >= 0; }
    /// The caller owns it from now on.
    int give() { return std::exchange(descriptor_, -1); }
    void reset() {
        if (valid()) posix::close_uncancelled(give());
    }

private:
    int descriptor_ = -1;
};

}  // namespace via::agent
