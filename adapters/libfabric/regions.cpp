// SPDX-License-Identifier: Apache-2.0
#include "regions.hpp"

namespace via::fabric {

void Regions::add(const Region& region) {
    const std::lock_guard guard(lock_);
    by_key_.insert_or_assign(region.handle, region);
}

void Regions::remove(const Region& region) {
    const std::lock_guard guard(lock_);
    by_key_.erase(region.handle);
}

bool Regions::allows(const Access& access) const {
    if (access.length == 0) return true;
    const auto found = by_key_.find(access.key);
    if (found == by_key_.end()) return false;
    const Region& region = found->second;
    return (region.writable || !access.writes) && (region.readable || !access.reads) &&
           access.address >= region.begin && access.length <= region.length &&
           access.address - region.begin <= region.length - access.length;
}

}  // namespace via::fabric
