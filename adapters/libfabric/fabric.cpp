// SPDX-License-Identifier: Apache-2.0
#include "fabric.hpp"

#include "completion_queue.hpp"
#include "domain.hpp"
#include "event_queue.hpp"
#include "passive_endpoint.hpp"
#include "rdm/queue.hpp"

namespace via::fabric {

int close_fabric(fid* fabric) {
    if (forked()) return -FI_EOPBADSTATE;
    auto& object = *static_cast<Fabric*>(reinterpret_cast<fid_fabric*>(fabric));
    if (object.users.any()) return -FI_EBUSY;
    delete &object;
    return 0;
}

namespace {

/// May the program sleep on their descriptors? They tell by themselves what comes later.
int try_wait(fid_fabric*, fid** objects, int count) {
    const auto is_quiet = [](fid& object) {
        if (object.fclass != FI_CLASS_CQ) return true;
        if (rdm::Queue* const queue = rdm::Queue::of(object)) return queue->is_quiet();
        return static_cast<CompletionQueue*>(reinterpret_cast<fid_cq*>(&object))->is_quiet();
    };
    for (int index = 0; index < count; ++index)
        if (!is_quiet(*objects[index])) return -FI_EAGAIN;
    return 0;
}

fi_ops object_operations = {sizeof(fi_ops), close_fabric, unsupported, unsupported,
                            unsupported,    unsupported,  unsupported};
fi_ops_fabric fabric_operations = {sizeof(fi_ops_fabric),
                                   Domain::open,
                                   PassiveEndpoint::open,
                                   EventQueue::open,
                                   unsupported,
                                   try_wait,
                                   unsupported};

}  // namespace

Fabric::Fabric(const fi_fabric_attr& attributes, void* context)
    : fid_fabric{{FI_CLASS_FABRIC, context, &object_operations},
                 &fabric_operations,
                 attributes.api_version} {}

int Fabric::open(fi_fabric_attr* attributes, fid_fabric** fabric, void* context) {
    return guarded([&] {
        if (attributes == nullptr) return -FI_EINVAL;
        *fabric = new Fabric(*attributes, context);
        return 0;
    });
}

int Fabric::nic(const fi_info* info, std::shared_ptr<Nic>& nic) {
    if (info == nullptr || info->domain_attr == nullptr || info->domain_attr->name == nullptr)
        return -FI_EINVAL;
    const char* const name = info->domain_attr->name;
    const std::lock_guard guard(lock_);
    std::weak_ptr<Nic>& known = nics_[name];
    nic = known.lock();
    if (nic) return 0;
    std::unique_ptr<Nic> fresh;
    if (const int error = Nic::open(name, fresh)) return error;
    nic = std::move(fresh);
    known = nic;
    return 0;
}

}  // namespace via::fabric
