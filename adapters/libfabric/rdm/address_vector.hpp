// SPDX-License-Identifier: Apache-2.0
// Address vector: numbers for the addresses of peers.
#pragma once

#include <unordered_map>
#include <vector>

#include "address.hpp"
#include "domain.hpp"

namespace via::fabric::rdm {

class Endpoint;

/// An endpoint's address as a number: 4 bytes of host, 2 of port.
using Name = std::uint64_t;
inline Name name_of(const sockaddr_in& address) {
    return std::uint64_t{ntohl(address.sin_addr.s_addr)} << 16 | port_of(address);
}

/// All but open() is called under the domain's guard. FI_AV_MAP's addresses are numbers as well.
class AddressVector : public fid_av {
public:
    static int open(fid_domain* domain, fi_av_attr* attributes, fid_av** vector, void* context);

    void watch(Endpoint& endpoint) { endpoints_.push_back(&endpoint); }
    void unwatch(Endpoint& endpoint) { std::erase(endpoints_, &endpoint); }

    /// nullptr: there is none by that number.
    const sockaddr_in* find(fi_addr_t number) const {
        return number < entries_.size() && entries_[number].address.sin_family != 0
                   ? &entries_[number].address
                   : nullptr;
    }
    /// How many were inserted so far.
    std::uint64_t now() const { return inserted_; }
    /// Was that number, which there is, inserted after that moment?
    bool is_newer(fi_addr_t number, std::uint64_t moment) const {
        return entries_[number].inserted > moment;
    }
    /// The latest. FI_ADDR_NOTAVAIL: it was never inserted, or removed.
    fi_addr_t number_of(Name name) const {
        const auto found = numbers_.find(name);
        return found != numbers_.end() ? found->second : FI_ADDR_NOTAVAIL;
    }
    Users users;

private:
    friend struct AddressVectorOperations;
    AddressVector(Domain& domain, std::size_t count, void* context);
    ~AddressVector();
    fi_addr_t insert(const sockaddr_in& address);
    bool remove(fi_addr_t number);

    struct Entry {
        sockaddr_in address{};  ///< family 0: free
        std::uint64_t inserted = 0;
    };
    Domain& domain_;
    std::vector<Entry> entries_;
    std::uint64_t inserted_ = 0;
    std::vector<fi_addr_t> free_;
    std::unordered_map<Name, fi_addr_t> numbers_;
    std::vector<Endpoint*> endpoints_;
};

}  // namespace via::fabric::rdm
