// Posting and taking descriptors (VIPL 4.9 to 4.15).
#include <memory>
#include <new>

#include <via/via.h>

#include "agent/yield.hpp"
#include "api/call.hpp"

using namespace via;
using namespace via::api;

namespace {

struct QueueWait {
    const engine::ViQueue* queue;
};

bool has_done_or_is_empty(const void* subject) {
    const engine::ViQueue& queue = *static_cast<const QueueWait*>(subject)->queue;
    return queue.work.has_done() || queue.expects_nothing();
}

[[gnu::always_inline]] inline VIP_RETURN take(const FoundVi& found, engine::ViQueue& queue,
                                              VIP_DESCRIPTOR** descriptor) {
    const nic::Nic::Done done = found.open->nic->done(queue);
    *descriptor = static_cast<VIP_DESCRIPTOR*>(done.descriptor);
    return answer(done.status);
}

VIP_RETURN wait_and_take(const FoundVi& found, engine::ViQueue& queue, VIP_ULONG timeout,
                         VIP_VI_HANDLE handle, VIP_DESCRIPTOR** descriptor) {
    if (queue.completions != nullptr) return VIP_ERROR_RESOURCE;
    VIP_RETURN result = take(found, queue, descriptor);
    if (result != VIP_NOT_DONE) return result;
    agent::Agent& agent = *found.open->agent;
    const Time deadline = deadline_of(agent, timeout);
    const QueueWait subject{&queue};
    while (result == VIP_NOT_DONE) {
        const bool ready = agent.wait({has_done_or_is_empty, &subject}, deadline);
        if (!find_vi(handle)) return VIP_INVALID_STATE;
        result = take(found, queue, descriptor);
        if (!ready && result == VIP_NOT_DONE) return VIP_TIMEOUT;
    }
    return result;
}

}  // namespace

VIA_VIPL_HOT via_VipPostSend(VIP_VI_HANDLE handle, VIP_DESCRIPTOR* descriptor,
                             VIP_MEM_HANDLE memory_handle) {
    VIA_REFUSE_CHILD(handle);
    const FoundVi found = find_vi(handle);
    if (!found) return VIP_INVALID_PARAMETER;
    return answer(found.open->nic->post_send(*found.vi, descriptor, memory_handle));
}

VIA_VIPL_HOT via_VipPostRecv(VIP_VI_HANDLE handle, VIP_DESCRIPTOR* descriptor,
                             VIP_MEM_HANDLE memory_handle) {
    VIA_REFUSE_CHILD(handle);
    const FoundVi found = find_vi(handle);
    if (!found) return VIP_INVALID_PARAMETER;
    return answer(found.open->nic->post_receive(*found.vi, descriptor, memory_handle));
}

namespace {

VIP_RETURN post_atomic(VIP_VI_HANDLE handle, VIP_DESCRIPTOR* descriptor,
                       VIP_MEM_HANDLE memory_handle, const memory::WordChange& change) {
    const FoundVi found = find_vi(handle);
    if (!found) return VIP_INVALID_PARAMETER;
    return answer(found.open->nic->post_atomic(*found.vi, descriptor, memory_handle, change));
}

}  // namespace

VIA_VIPL ViaPostCompareSwap(VIP_VI_HANDLE handle, VIP_DESCRIPTOR* descriptor,
                            VIP_MEM_HANDLE memory_handle, VIP_UINT64 expected, VIP_UINT64 desired) {
    VIA_REFUSE_CHILD(handle);
    return post_atomic(handle, descriptor, memory_handle, {false, expected, desired});
}

VIA_VIPL ViaPostFetchAdd(VIP_VI_HANDLE handle, VIP_DESCRIPTOR* descriptor,
                         VIP_MEM_HANDLE memory_handle, VIP_UINT64 addend) {
    VIA_REFUSE_CHILD(handle);
    return post_atomic(handle, descriptor, memory_handle, {true, addend});
}

VIA_VIPL via_VipSendDone(VIP_VI_HANDLE handle, VIP_DESCRIPTOR** descriptor) {
    VIA_REFUSE_CHILD(handle);
    const FoundVi found = find_vi(handle);
    if (!found || descriptor == nullptr) return VIP_INVALID_PARAMETER;
    return take(found, found.vi->send, descriptor);
}

VIA_VIPL via_VipRecvDone(VIP_VI_HANDLE handle, VIP_DESCRIPTOR** descriptor) {
    VIA_REFUSE_CHILD(handle);
    const FoundVi found = find_vi(handle);
    if (!found || descriptor == nullptr) return VIP_INVALID_PARAMETER;
    return take(found, found.vi->receive, descriptor);
}

VIA_VIPL via_VipSendWait(VIP_VI_HANDLE handle, VIP_ULONG timeout, VIP_DESCRIPTOR** descriptor) {
    VIA_REFUSE_CHILD(handle);
    const FoundVi found = find_vi(handle);
    if (!found || descriptor == nullptr) return VIP_INVALID_PARAMETER;
    return wait_and_take(found, found.vi->send, timeout, handle, descriptor);
}

VIA_VIPL via_VipRecvWait(VIP_VI_HANDLE handle, VIP_ULONG timeout, VIP_DESCRIPTOR** descriptor) {
    VIA_REFUSE_CHILD(handle);
    const FoundVi found = find_vi(handle);
    if (!found || descriptor == nullptr) return VIP_INVALID_PARAMETER;
    return wait_and_take(found, found.vi->receive, timeout, handle, descriptor);
}

// Several at once ---------------------------------------------------------------------------------

namespace {

[[gnu::hot]] VIP_RETURN post_many(VIP_VI_HANDLE handle, bool receive,
                                  VIP_DESCRIPTOR* const* descriptors, const VIP_MEM_HANDLE* handles,
                                  VIP_UINT32 count, VIP_UINT32* posted) {
    const FoundVi found = find_vi(handle);
    if (!found || posted == nullptr ||
        (count != 0 && (descriptors == nullptr || handles == nullptr)))
        return VIP_INVALID_PARAMETER;
    return answer(found.open->nic->post_many(*found.vi, receive,
                                             {reinterpret_cast<void* const*>(descriptors), count},
                                             handles, *posted));
}

[[gnu::hot]] VIP_RETURN done_many(VIP_VI_HANDLE handle, bool receive, VIP_DESCRIPTOR** descriptors,
                                  VIP_UINT32 room, VIP_UINT32* taken) {
    const FoundVi found = find_vi(handle);
    if (!found || taken == nullptr || descriptors == nullptr || room == 0)
        return VIP_INVALID_PARAMETER;
    engine::ViQueue& queue = receive ? found.vi->receive : found.vi->send;
    return answer(
        found.open->nic->done_many(queue, {reinterpret_cast<void**>(descriptors), room}, *taken));
}

}  // namespace

VIA_VIPL ViaPostSendMany(VIP_VI_HANDLE handle, VIP_DESCRIPTOR* const* descriptors,
                         const VIP_MEM_HANDLE* handles, VIP_UINT32 count, VIP_UINT32* posted) {
    VIA_REFUSE_CHILD(handle);
    return post_many(handle, false, descriptors, handles, count, posted);
}

VIA_VIPL ViaPostRecvMany(VIP_VI_HANDLE handle, VIP_DESCRIPTOR* const* descriptors,
                         const VIP_MEM_HANDLE* handles, VIP_UINT32 count, VIP_UINT32* posted) {
    VIA_REFUSE_CHILD(handle);
    return post_many(handle, true, descriptors, handles, count, posted);
}

VIA_VIPL ViaSendDoneMany(VIP_VI_HANDLE handle, VIP_DESCRIPTOR** descriptors, VIP_UINT32 room,
                         VIP_UINT32* taken) {
    VIA_REFUSE_CHILD(handle);
    return done_many(handle, false, descriptors, room, taken);
}

VIA_VIPL_HOT ViaRecvDoneMany(VIP_VI_HANDLE handle, VIP_DESCRIPTOR** descriptors, VIP_UINT32 room,
                             VIP_UINT32* taken) {
    VIA_REFUSE_CHILD(handle);
    return done_many(handle, true, descriptors, room, taken);
}

// Notify (VIPL 4.17) ------------------------------------------------------------------------------

namespace {

class ViNotification final : public agent::Notification {
public:
    ViNotification(std::uint64_t object, VIP_VI_HANDLE handle, bool receive,
                   const queue::WorkQueue& work, VIP_PVOID context, VIP_VI_CALLBACK handler)
        : Notification(object),
          handle_(handle),
          receive_(receive),
          work_(work),
          context_(context),
          handler_(handler) {}

    bool has_object() const override { return static_cast<bool>(find_vi(handle_)); }
    bool ready() const override { return work_.has_done(); }
    bool run() override {
        const FoundVi found = find_vi(handle_);
        if (!found) return true;
        VIP_DESCRIPTOR* descriptor = nullptr;
        take(found, receive_ ? found.vi->receive : found.vi->send, &descriptor);
        if (descriptor == nullptr) return false;
        handler_(context_, nic_handle(*found.open), handle_, descriptor);
        return true;
    }

private:
    VIP_VI_HANDLE handle_;
    bool receive_;
    const queue::WorkQueue& work_;
    VIP_PVOID context_;
    VIP_VI_CALLBACK handler_;
};

VIP_RETURN notify(VIP_VI_HANDLE handle, bool receive, VIP_PVOID context, VIP_VI_CALLBACK handler) {
    const FoundVi found = find_vi(handle);
    if (!found || handler == nullptr) return VIP_INVALID_PARAMETER;
    const engine::ViQueue& queue = receive ? found.vi->receive : found.vi->send;
    if (queue.completions != nullptr) return VIP_ERROR_RESOURCE;
    std::unique_ptr<agent::Notification> notification(new (std::nothrow) ViNotification(
        notification_object(handle, receive), handle, receive, queue.work, context, handler));
    if (notification == nullptr) return VIP_ERROR_RESOURCE;
    return answer(found.open->agent->notify(std::move(notification)));
}

}  // namespace

VIA_VIPL via_VipSendNotify(VIP_VI_HANDLE handle, VIP_PVOID context, VIP_VI_CALLBACK handler) {
    VIA_REFUSE_CHILD(handle);
    return notify(handle, false, context, handler);
}

VIA_VIPL via_VipRecvNotify(VIP_VI_HANDLE handle, VIP_PVOID context, VIP_VI_CALLBACK handler) {
    VIA_REFUSE_CHILD(handle);
    return notify(handle, true, context, handler);
}

extern "C" __attribute__((visibility("default"))) void ViaPutOffRests(void) {
    agent::put_off_yields();
}

extern "C" __attribute__((visibility("default"))) void ViaTakeRests(void) { agent::take_yields(); }
