#include "device/datagram/cookie.hpp"

#include <array>
#include <cstring>

#include "device/datagram/constants.hpp"
#include "device/datagram/mutation.hpp"

namespace via::device::datagram {

wire::Cookie make_cookie(const HashKey& key, const HostAddress& from, std::uint64_t connection,
                         Time moment) {
    std::array<std::byte, 8 + 8 + sizeof from.bytes> bytes{};
    std::memcpy(bytes.data(), &moment.ns, 8);
    std::memcpy(bytes.data() + 8, &connection, 8);
    std::memcpy(bytes.data() + 16, from.bytes.data(), from.length);
    return {static_cast<std::uint64_t>(moment.ns), siphash(key, bytes)};
}

bool is_proof(const HashKey& key, const wire::Cookie& cookie, const HostAddress& from,
              std::uint64_t connection, Time now) {
    if (mutated(Mutation::skip_cookie_check)) return true;
    const Time moment{static_cast<std::int64_t>(cookie.moment)};
    if (!cookie.is_given() || moment.ns < 0 || moment > now || now - moment > cookie_life)
        return false;
    return make_cookie(key, from, connection, moment).proof == cookie.proof;
}

}  // namespace via::device::datagram
