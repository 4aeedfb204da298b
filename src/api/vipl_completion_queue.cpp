// Completion queues (VIPL 4.15, 4.16).
#include <memory>
#include <new>

#include <via/via.h>

#include "api/call.hpp"

using namespace via;
using namespace via::api;

namespace {

struct EntryWait {
    const void* handle;
    const queue::CompletionQueue* queue;
};

/// An entry came, or the queue went: either way the waiter has to look.
bool has_entry_or_is_gone(const void* subject) {
    const auto& wait = *static_cast<const EntryWait*>(subject);
    return wait.queue->has_entry() || !find_queue(wait.handle);
}

VIP_RETURN take(const FoundQueue& found, VIP_VI_HANDLE* vi_handle, VIP_BOOLEAN* receive) {
    queue::Completion completion;
    const Status status = found.open->nic->completion_done(*found.queue, completion);
    if (found.queue->watched() && !found.queue->has_entry())
        found.open->agent->queue_is_empty(*found.queue);
    if (status != Status::success) return answer(status);
    *vi_handle = make_handle(Kind::vi, found.open->index, completion.vi);
    *receive = completion.receive ? VIP_TRUE : VIP_FALSE;
    return VIP_SUCCESS;
}

}  // namespace

VIA_VIPL via_VipCreateCQ(VIP_NIC_HANDLE handle, VIP_ULONG entries, VIP_CQ_HANDLE* queue_handle) {
    VIA_REFUSE_CHILD(handle);
    OpenNic* open = find_nic(handle);
    if (open == nullptr || queue_handle == nullptr || entries == 0) return VIP_INVALID_PARAMETER;
    if (entries > open->nic->limits().completion_queue_entries_max) return VIP_INVALID_PARAMETER;
    const auto name = if_memory_lasts(
        [&] { return open->nic->create_completion_queue(static_cast<std::uint32_t>(entries)); });
    if (!name) return answer(name.error());
    *queue_handle = make_handle(Kind::completion_queue, open->index, *name);
    return VIP_SUCCESS;
}

VIA_VIPL via_VipDestroyCQ(VIP_CQ_HANDLE handle) {
    VIA_REFUSE_CHILD(handle);
    const FoundQueue found = find_queue(handle);
    if (!found) return VIP_INVALID_PARAMETER;
    const Status status =
        if_memory_lasts([&] { return found.open->nic->destroy_completion_queue(name_of(handle)); });
    if (status == Status::success)
        found.open->agent->cancel_notifications(notification_object(handle, false));
    return answer(status);
}

VIA_VIPL via_VipResizeCQ(VIP_CQ_HANDLE handle, VIP_ULONG entries) {
    VIA_REFUSE_CHILD(handle);
    const FoundQueue found = find_queue(handle);
    if (!found || entries == 0 || entries > found.open->nic->limits().completion_queue_entries_max)
        return VIP_INVALID_PARAMETER;
    return answer(if_memory_lasts([&] {
        return found.open->nic->resize_completion_queue(name_of(handle),
                                                        static_cast<std::uint32_t>(entries));
    }));
}

VIA_VIPL via_VipCQDone(VIP_CQ_HANDLE handle, VIP_VI_HANDLE* vi_handle, VIP_BOOLEAN* receive) {
    VIA_REFUSE_CHILD(handle);
    const FoundQueue found = find_queue(handle);
    if (!found || vi_handle == nullptr || receive == nullptr) return VIP_INVALID_PARAMETER;
    return take(found, vi_handle, receive);
}

VIA_VIPL via_VipCQWait(VIP_CQ_HANDLE handle, VIP_ULONG timeout, VIP_VI_HANDLE* vi_handle,
                       VIP_BOOLEAN* receive) {
    VIA_REFUSE_CHILD(handle);
    const FoundQueue found = find_queue(handle);
    if (!found || vi_handle == nullptr || receive == nullptr) return VIP_INVALID_PARAMETER;
    VIP_RETURN result = take(found, vi_handle, receive);
    if (result != VIP_NOT_DONE) return result;
    agent::Agent& agent = *found.open->agent;
    const Time deadline = deadline_of(agent, timeout);
    const EntryWait subject{handle, found.queue};
    while (result == VIP_NOT_DONE) {
        const bool ready = agent.wait({has_entry_or_is_gone, &subject}, deadline);
        if (!find_queue(handle)) return VIP_INVALID_STATE;
        result = take(found, vi_handle, receive);
        if (!ready && result == VIP_NOT_DONE) return VIP_TIMEOUT;
    }
    return result;
}

// Beyond VIPL -------------------------------------------------------------------------------------

VIA_VIPL ViaCQDoneMany(VIP_CQ_HANDLE handle, VIA_COMPLETION* entries, VIP_UINT32 room,
                       VIP_UINT32* taken) {
    VIA_REFUSE_CHILD(handle);
    const FoundQueue found = find_queue(handle);
    if (!found || taken == nullptr || entries == nullptr || room == 0) return VIP_INVALID_PARAMETER;
    VIP_UINT32 count = 0;
    // One turn is enough: what came with it is taken without another.
    VIP_RETURN result = take(found, &entries[0].ViHandle, &entries[0].RecvQueue);
    while (result == VIP_SUCCESS && ++count < room && found.queue->has_entry())
        result = take(found, &entries[count].ViHandle, &entries[count].RecvQueue);
    *taken = count;
    return count != 0 ? VIP_SUCCESS : result;
}

VIA_VIPL ViaCQDescriptor(VIP_CQ_HANDLE handle, int* descriptor) {
    VIA_REFUSE_CHILD(handle);
    const FoundQueue found = find_queue(handle);
    if (!found || descriptor == nullptr) return VIP_INVALID_PARAMETER;
    return answer(if_memory_lasts(
        [&] { return found.open->agent->watch_queue(name_of(handle), *descriptor); }));
}

// Notify (VIPL 4.17) ------------------------------------------------------------------------------

namespace {

class EntryNotification final : public agent::Notification {
public:
    EntryNotification(VIP_CQ_HANDLE handle, const queue::CompletionQueue& queue, VIP_PVOID context,
                      VIP_CQ_CALLBACK handler)
        : Notification(notification_object(handle, false)),
          handle_(handle),
          queue_(queue),
          context_(context),
          handler_(handler) {}

    bool has_object() const override { return static_cast<bool>(find_queue(handle_)); }
    bool ready() const override { return queue_.has_entry(); }
    bool run() override {
        const FoundQueue found = find_queue(handle_);
        if (!found) return true;
        VIP_VI_HANDLE vi = nullptr;
        VIP_BOOLEAN receive = VIP_FALSE;
        if (take(found, &vi, &receive) != VIP_SUCCESS) return false;
        handler_(context_, nic_handle(*found.open), vi, receive);
        return true;
    }

private:
    VIP_CQ_HANDLE handle_;
    const queue::CompletionQueue& queue_;
    VIP_PVOID context_;
    VIP_CQ_CALLBACK handler_;
};

}  // namespace

VIA_VIPL via_VipCQNotify(VIP_CQ_HANDLE handle, VIP_PVOID context, VIP_CQ_CALLBACK handler) {
    VIA_REFUSE_CHILD(handle);
    const FoundQueue found = find_queue(handle);
    if (!found || handler == nullptr) return VIP_INVALID_PARAMETER;
    std::unique_ptr<agent::Notification> notification(
        new (std::nothrow) EntryNotification(handle, *found.queue, context, handler));
    if (notification == nullptr) return VIP_ERROR_RESOURCE;
    return answer(found.open->agent->notify(std::move(notification)));
}
