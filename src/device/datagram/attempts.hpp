// Which hello of an instance was the last: an older one that comes late makes no path again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "base/address.hpp"
#include "device/datagram/constants.hpp"
#include "device/datagram/whom.hpp"

namespace via::device::datagram {

/// Owns the last attempt of each instance that said hello; the oldest instances are forgotten.
class Attempts {
public:
    /// 0: there was none, as far as is known.
    std::uint64_t last(std::uint64_t instance, const HostAddress& peer) const {
        const auto found = at_.find({peer, instance});
        return found == at_.end() ? 0 : kept_[found->second].attempt;
    }
    void note(std::uint64_t instance, const HostAddress& peer, std::uint64_t attempt) {
        const Whom whom{peer, instance};
        if (const auto found = at_.find(whom); found != at_.end()) {
            kept_[found->second].attempt = attempt;
            return;
        }
        std::size_t at = kept_.size();
        if (at < attempts_kept) {
            kept_.push_back({whom, attempt});
        } else {
            at = oldest_;
            oldest_ = (oldest_ + 1) % attempts_kept;
            at_.erase(kept_[at].whom);
            kept_[at] = {whom, attempt};
        }
        at_.emplace(whom, at);
    }

private:
    struct Attempt {
        Whom whom;
        std::uint64_t attempt;
    };
    std::vector<Attempt> kept_;
    std::map<Whom, std::size_t> at_;  ///< where it stands there
    std::size_t oldest_ = 0;
};

}  // namespace via::device::datagram
