// SPDX-License-Identifier: Apache-2.0
#include "domain.hpp"

#include <sched.h>

#include <cstdlib>
#include <utility>

#include "completion_queue.hpp"
#include "counter.hpp"
#include "endpoint.hpp"
#include "poll_set.hpp"
#include "rdm/address_vector.hpp"
#include "rdm/endpoint.hpp"
#include "rdm/queue.hpp"
#include "shared_context.hpp"

namespace via::fabric {

int close_domain(fid* domain) {
    if (forked()) return -FI_EOPBADSTATE;
    auto& object = *static_cast<Domain*>(reinterpret_cast<fid_domain*>(domain));
    if (object.users.any()) return -FI_EBUSY;
    delete &object;
    return 0;
}

namespace {

/// libfabric 1.17's ofi_rxm cuts messages of 16 to 128 KiB into packets, and loses those to matched
/// probes and to receives that are too short. It reads its parameters when an endpoint of its own
/// is made, after the domain below it; what the user says stands.
void pull_whole_messages() { setenv("FI_OFI_RXM_SAR_LIMIT", "0", 0); }

fi_ops object_operations = {sizeof(fi_ops), close_domain, unsupported, unsupported,
                            unsupported,    unsupported,  unsupported};
fi_ops_domain domain_operations = {sizeof(fi_ops_domain), unsupported, CompletionQueue::open,
                                   Endpoint::open,        unsupported, Counter::open,
                                   PollSet::open,         unsupported, SharedContext::open,
                                   unsupported,           unsupported, unsupported};
fi_ops_domain datagram_operations = {sizeof(fi_ops_domain), rdm::AddressVector::open,
                                     rdm::Queue::open,      rdm::Endpoint::open,
                                     unsupported,           Counter::open,
                                     PollSet::open,         unsupported,
                                     unsupported,           rdm::query_atomic,
                                     unsupported,           unsupported};

bool wants_datagrams(const fi_info& info) {
    return info.ep_attr != nullptr && info.ep_attr->type == FI_EP_RDM;
}

}  // namespace

Domain::Domain(Fabric& fabric, std::shared_ptr<Nic> nic, const fi_info& info, void* context)
    : fid_domain{{FI_CLASS_DOMAIN, context, &object_operations},
                 wants_datagrams(info) ? &datagram_operations : &domain_operations,
                 &memory_operations},
      fabric_(fabric),
      nic_(std::move(nic)),
      datagrams_(wants_datagrams(info)),
      has_progress_(datagrams_ && wants_progress(info)),
      threading_(info.domain_attr->threading),
      shared_(has_progress_ || threading_ != FI_THREAD_DOMAIN) {
    fabric_.users.add();
}

Domain::~Domain() { fabric_.users.remove(); }

int Domain::open(fid_fabric* fabric, fi_info* info, fid_domain** domain, void* context) {
    return guarded([&] {
        auto& owner = *static_cast<Fabric*>(fabric);
        std::shared_ptr<Nic> nic;
        if (const int error = owner.nic(info, nic)) return error;
        *domain = new Domain(owner, std::move(nic), *info, context);
        if (!wants_datagrams(*info)) pull_whole_messages();
        return 0;
    });
}

void Domain::yield() {
    if (shared_)
        yield_is_due_ = true;
    else
        sched_yield();
}

void Domain::unlock_data() noexcept {
    const bool yields = std::exchange(yield_is_due_, false);
    data_lock_.unlock();
    ViaTakeRests();
    if (yields) [[unlikely]]
        sched_yield();
}

CompletionQueue& Domain::unread() {
    const std::lock_guard guard(lock_);
    if (!unread_) unread_ = std::make_unique<CompletionQueue>(*this, fi_cq_attr{}, true, nullptr);
    return *unread_;
}

}  // namespace via::fabric
