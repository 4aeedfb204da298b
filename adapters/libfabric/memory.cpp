// SPDX-License-Identifier: Apache-2.0
// Memory regions. Only peers need them: for local use the NIC has one handle for everything.
#include "domain.hpp"

namespace via::fabric {
namespace {

struct MemoryRegion : fid_mr {
    MemoryRegion(Domain& owner, Region memory, bool is_for_peers, void* context, fi_ops* operations)
        : fid_mr{{FI_CLASS_MR, context, operations},
                 reinterpret_cast<void*>(std::uintptr_t{memory.handle}),
                 memory.handle},
          domain(owner),
          region(memory),
          for_peers(is_for_peers) {
        if (for_peers) domain.regions().add(region);
        domain.users.add();
    }
    ~MemoryRegion() {
        if (for_peers) {
            domain.regions().remove(region);
            domain.nic().release(region);
        }
        domain.users.remove();
    }
    Domain& domain;
    Region region;
    bool for_peers;
};

int close_region(fid* region) {
    if (forked()) return -FI_EOPBADSTATE;
    delete static_cast<MemoryRegion*>(reinterpret_cast<fid_mr*>(region));
    return 0;
}

fi_ops region_operations = {sizeof(fi_ops), close_region, unsupported, unsupported,
                            unsupported,    unsupported,  unsupported};

int register_region(Domain& domain, const void* begin, std::size_t length, std::uint64_t access,
                    void* context, fid_mr** answer) {
    return guarded([&] {
        Region region{reinterpret_cast<std::uintptr_t>(begin), length,
                      (access & FI_REMOTE_WRITE) != 0, (access & FI_REMOTE_READ) != 0,
                      domain.nic().everything()};
        // Of no bytes a peer can move none: any key will do, and VIA has no such regions.
        const bool for_peers = length != 0 && (region.writable || region.readable);
        if (for_peers)
            if (const VIP_RETURN code = domain.nic().register_memory(region); code != VIP_SUCCESS)
                return -error_of(code);
        try {
            *answer = new MemoryRegion(domain, region, for_peers, context, &region_operations);
        } catch (...) {
            if (for_peers) domain.nic().release(region);
            throw;
        }
        return 0;
    });
}

Domain& domain_of(fid* domain) {
    return *static_cast<Domain*>(reinterpret_cast<fid_domain*>(domain));
}

// Offset, requested key and flags belong to other ways to register, or are libfabric's own.
int reg(fid* domain, const void* begin, std::size_t length, std::uint64_t access, std::uint64_t,
        std::uint64_t, std::uint64_t, fid_mr** region, void* context) {
    return register_region(domain_of(domain), begin, length, access, context, region);
}

int regv(fid* domain, const iovec* pieces, std::size_t count, std::uint64_t access, std::uint64_t,
         std::uint64_t, std::uint64_t, fid_mr** region, void* context) {
    if (count != 1) return -FI_EINVAL;
    return register_region(domain_of(domain), pieces->iov_base, pieces->iov_len, access, context,
                           region);
}

int regattr(fid* domain, const fi_mr_attr* attributes, std::uint64_t, fid_mr** region) {
    if (attributes->iov_count != 1 || attributes->iface != FI_HMEM_SYSTEM) return -FI_EINVAL;
    return register_region(domain_of(domain), attributes->mr_iov->iov_base,
                           attributes->mr_iov->iov_len, attributes->access, attributes->context,
                           region);
}

}  // namespace

fi_ops_mr memory_operations = {sizeof(fi_ops_mr), reg, regv, regattr};

}  // namespace via::fabric
