// What a program gives bytes in, and takes them in.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <span>

namespace via::sockets {

/// A program's buffers, and how far they have been used.
class Buffers {
public:
    Buffers(const iovec* first, int count) : next_(first), last_(first + count) { skip_empty(); }
    bool done() const { return next_ == last_; }
    std::size_t left() const;
    /// What lies in one piece, at most so much.
    std::span<std::byte> piece(std::size_t longest) const {
        return {static_cast<std::byte*>(next_->iov_base) + used_,
                std::min(next_->iov_len - used_, longest)};
    }
    void use(std::size_t bytes);
    /// The rest, as the kernel's calls take it; at most `most` parts.
    int rest(iovec* to, int most) const;

private:
    void skip_empty() {
        while (next_ != last_ && next_->iov_len == used_) ++next_, used_ = 0;
    }
    const iovec* next_;
    const iovec* last_;
    std::size_t used_ = 0;
};

}  // namespace via::sockets
