#include "buffers.hpp"

namespace via::sockets {

std::size_t Buffers::left() const {
    std::size_t sum = 0;
    for (const iovec* one = next_; one != last_; ++one) sum += one->iov_len;
    return sum - used_;
}

void Buffers::use(std::size_t bytes) {
    used_ += bytes;
    skip_empty();
}

int Buffers::rest(iovec* to, int most) const {
    int count = 0;
    for (const iovec* one = next_; one != last_ && count < most; ++one) to[count++] = *one;
    if (count > 0) {
        to[0].iov_base = static_cast<std::byte*>(to[0].iov_base) + used_;
        to[0].iov_len -= used_;
    }
    return count;
}

}  // namespace via::sockets
