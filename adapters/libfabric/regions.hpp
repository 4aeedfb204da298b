// SPDX-License-Identifier: Apache-2.0
// What a program lets peers do with its memory, by key: for operations that we carry out ourselves,
// where VIA, which checks all RDMA, is not asked.
#pragma once

#include <mutex>
#include <unordered_map>

#include "nic.hpp"

namespace via::fabric {

/// Any thread.
class Regions {
public:
    void add(const Region& region);
    /// Nobody touches its memory any more when this returns.
    void remove(const Region& region);

    struct Access {
        std::uint64_t address;
        std::size_t length;
        std::uint64_t key;
        bool writes;
        bool reads;
    };
    /// Calls `work` with the memory, if the region allows that: 0; otherwise FI_EACCES.
    template <class Work>
    int use(const Access& access, Work&& work) {
        const std::lock_guard guard(lock_);
        if (!allows(access)) return FI_EACCES;
        work(reinterpret_cast<std::byte*>(access.address));
        return 0;
    }

private:
    bool allows(const Access& access) const;

    std::mutex lock_;
    std::unordered_map<std::uint64_t, Region> by_key_;
};

}  // namespace via::fabric
