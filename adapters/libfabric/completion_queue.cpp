// SPDX-License-Identifier: Apache-2.0
#include "completion_queue.hpp"

#include <algorithm>

#include "domain.hpp"
#include "endpoint.hpp"

namespace via::fabric {
namespace {

constexpr std::uint32_t part_size_min = 1024;
constexpr VIP_UINT32 batch = 16;

CompletionQueue& queue_of(fid_cq* queue) { return *static_cast<CompletionQueue*>(queue); }
CompletionQueue& queue_of(fid* queue) { return queue_of(reinterpret_cast<fid_cq*>(queue)); }

/// Takes one that is done; false: there is none, or it tells the program nothing.
bool take(VIP_VI_HANDLE vi, bool receive, Completion& completion, bool& any) {
    VIP_DESCRIPTOR* descriptor = nullptr;
    any = false;
    const VIP_RETURN code = receive ? VipRecvDone(vi, &descriptor) : VipSendDone(vi, &descriptor);
    // DESCRIPTOR_ERROR without one: the endpoint was closed since.
    if ((code != VIP_SUCCESS && code != VIP_DESCRIPTOR_ERROR) || descriptor == nullptr)
        return false;
    any = true;
    auto& operation = *reinterpret_cast<Operation*>(descriptor);
    // Of a shared receive context: whoever's VI took it.
    Endpoint* const endpoint = operation.shared == nullptr
                                   ? operation.endpoint
                                   : static_cast<Endpoint*>(VipGetUserData(vi));
    return endpoint->complete(operation, receive, completion);
}

}  // namespace

struct CompletionQueueOperations {
    static ssize_t read(fid_cq* queue, void* buffer, std::size_t count) {
        return guarded([&] { return queue_of(queue).read(buffer, count); });
    }
    static ssize_t readfrom(fid_cq* queue, void* buffer, std::size_t count, fi_addr_t* from) {
        const ssize_t got = read(queue, buffer, count);
        for (ssize_t index = 0; from != nullptr && index < got; ++index)
            from[index] = FI_ADDR_NOTAVAIL;
        return got;
    }
    static ssize_t readerr(fid_cq* queue, fi_cq_err_entry* entry, std::uint64_t) {
        return guarded([&] { return queue_of(queue).read_error(entry); });
    }
    static ssize_t sread(fid_cq* queue, void* buffer, std::size_t count, const void*,
                         int timeout_ms) {
        return guarded([&] { return queue_of(queue).wait_and_read(buffer, count, timeout_ms); });
    }
    static ssize_t sreadfrom(fid_cq* queue, void* buffer, std::size_t count, fi_addr_t* from,
                             const void* condition, int timeout_ms) {
        const ssize_t got = sread(queue, buffer, count, condition, timeout_ms);
        for (ssize_t index = 0; from != nullptr && index < got; ++index)
            from[index] = FI_ADDR_NOTAVAIL;
        return got;
    }
    static int signal(fid_cq* queue) { return queue_of(queue).signal(); }
    static const char* strerror(fid_cq*, int provider_error, const void*, char* buffer,
                                std::size_t length) {
        return tell_text(fi_strerror(error_of_status(static_cast<VIP_UINT32>(provider_error))),
                         buffer, length);
    }
    static int control(fid* queue, int command, void* argument) {
        return CompletionQueue::control(queue, command, argument);
    }
    static int close(fid* queue) {
        if (forked()) return -FI_EOPBADSTATE;
        if (queue_of(queue).users.any()) return -FI_EBUSY;
        delete &queue_of(queue);
        return 0;
    }
};

namespace {

using Operations = CompletionQueueOperations;
fi_ops object_operations = {sizeof(fi_ops), Operations::close, unsupported, Operations::control,
                            unsupported,    unsupported,       unsupported};
fi_ops_cq queue_operations = {sizeof(fi_ops_cq),   Operations::read,    Operations::readfrom,
                              Operations::readerr, Operations::sread,   Operations::sreadfrom,
                              Operations::signal,  Operations::strerror};

}  // namespace

int CompletionQueue::open(fid_domain* domain, fi_cq_attr* attributes, fid_cq** queue,
                          void* context) {
    return guarded([&] {
        fi_cq_attr wanted;
        if (const int error = look_at(attributes, FI_CQ_FORMAT_DATA, wanted)) return error;
        *queue = new CompletionQueue(*static_cast<Domain*>(domain), wanted, false, context);
        return 0;
    });
}

CompletionQueue::CompletionQueue(Domain& domain, const fi_cq_attr& attributes, bool discards,
                                 void* context)
    : QueueBase(domain, attributes, object_operations, queue_operations, context),
      discards_(discards),
      shared_(discards || attributes.wait_obj != FI_WAIT_NONE || domain.shares_queues()) {
    if (!discards_) domain_.users.add();
}

CompletionQueue::~CompletionQueue() {
    for (const Part& part : parts_) VipDestroyCQ(part.queue);
    if (!discards_) domain_.users.remove();
}

// Room ------------------------------------------------------------------------------------------

bool CompletionQueue::add_part(std::uint32_t entries) {
    Part part{nullptr, std::max(entries, part_size_min), 0};
    if (VipCreateCQ(domain_.nic().handle(), part.room, &part.queue) != VIP_SUCCESS) return false;
    int readable = -1;
    if (waiting_ &&
        (ViaCQDescriptor(part.queue, &readable) != VIP_SUCCESS || !waiting_->add(readable))) {
        VipDestroyCQ(part.queue);
        return false;
    }
    parts_.push_back(part);
    return true;
}

int CompletionQueue::reserve(std::uint32_t entries, VIP_CQ_HANDLE& queue) {
    const auto limit = static_cast<std::uint32_t>(domain_.nic().attributes().MaxCQEntries);
    const HeldIf guard(shared_, lock_);
    for (Part& part : parts_) {
        if (part.used + entries > limit) continue;
        if (part.used + entries > part.room) {
            const std::uint32_t room =
                std::min(limit, std::max(2 * part.room, part.used + entries));
            if (VipResizeCQ(part.queue, room) != VIP_SUCCESS) return -FI_ENOMEM;
            part.room = room;
        }
        part.used += entries;
        queue = part.queue;
        return 0;
    }
    if (!add_part(entries)) return -FI_ENOMEM;
    parts_.back().used = entries;
    queue = parts_.back().queue;
    return 0;
}

void CompletionQueue::give_back(VIP_CQ_HANDLE queue, std::uint32_t entries) {
    const HeldIf guard(shared_, lock_);
    for (Part& part : parts_)
        if (part.queue == queue) part.used -= entries;
}

// Reading ---------------------------------------------------------------------------------------

void CompletionQueue::keep(const Completion& completion) {
    if (!discards_) kept_.push_back(completion);
}

std::size_t CompletionQueue::collect_from(const Part& part, void* buffer, std::size_t at,
                                          std::size_t count) {
    while (at < count) {
        VIA_COMPLETION entries[batch];
        VIP_UINT32 taken = 0;
        const auto room = static_cast<VIP_UINT32>(std::min<std::size_t>(batch, count - at));
        if (ViaCQDoneMany(part.queue, entries, room, &taken) != VIP_SUCCESS) break;
        for (VIP_UINT32 index = 0; index < taken; ++index) {
            Completion completion;
            bool any = false;
            if (!take(entries[index].ViHandle, entries[index].RecvQueue == VIP_TRUE, completion,
                      any))
                continue;
            // Behind an error all is kept, so that it is read in order.
            if (buffer == nullptr || completion.error != 0 || !kept_.empty())
                keep(completion);
            else
                write(buffer, at++, completion);
        }
        // What was not there a moment ago is left to the next call: a look at the NIC costs more.
        if (taken < room || (!kept_.empty() && buffer != nullptr)) break;
    }
    return at;
}

/// Completions for the program, or, without a buffer, up to `count` rounds' worth to be kept.
std::size_t CompletionQueue::collect(void* buffer, std::size_t count) {
    std::size_t got = 0;
    while (buffer != nullptr && got < count && !kept_.empty() && kept_.front().error == 0) {
        write(buffer, got++, kept_.front());
        kept_.pop_front();
    }
    if (buffer == nullptr || kept_.empty())
        for (const Part& part : parts_) {
            got = collect_from(part, buffer, got, count);
            if (buffer != nullptr && (got == count || !kept_.empty())) break;
        }
    return got;
}

ssize_t CompletionQueue::read(void* buffer, std::size_t count) {
    const YieldsLater later(shared_);
    const HeldIf guard(shared_, lock_);
    if (skips_next_ && count != 0 && kept_.empty()) {
        skips_next_ = false;
        return -FI_EAGAIN;
    }
    // Room for none: the program only wants things to go on.
    const std::size_t got = count == 0 ? collect(nullptr, 1) : collect(buffer, count);
    if (waiting_)
        show();
    else
        skips_next_ = got != 0 && got < count;
    if (got != 0) return static_cast<ssize_t>(got);
    if (kept_.empty()) {
        if (!closed_.empty()) closed_.clear();
        return -FI_EAGAIN;
    }
    return kept_.front().error != 0 ? -FI_EAVAIL : 0;
}

void CompletionQueue::progress() {
    const YieldsLater later(shared_);
    const HeldIf guard(shared_, lock_);
    collect(nullptr, 1);
    if (waiting_) show();
}

bool CompletionQueue::has_news() {
    progress();
    const HeldIf guard(shared_, lock_);
    return !kept_.empty();
}

ssize_t CompletionQueue::read_error(fi_cq_err_entry* entry) {
    const HeldIf guard(shared_, lock_);
    if (kept_.empty() || kept_.front().error == 0) return -FI_EAGAIN;
    write_error(*entry, kept_.front(), static_cast<int>(kept_.front().status));
    kept_.pop_front();
    if (waiting_) show();
    return 1;
}

void CompletionQueue::drain(VIP_VI_HANDLE vi, bool receives) {
    const YieldsLater later(shared_);
    const HeldIf guard(shared_, lock_);
    for (bool any = true; any;) {
        Completion completion;
        if (take(vi, receives, completion, any)) keep(completion);
    }
    if (waiting_) show();
}

void CompletionQueue::tell(const Completion& completion) {
    const HeldIf guard(shared_, lock_);
    keep(completion);
    if (waiting_) show();
}

void CompletionQueue::keep_closed(std::unique_ptr<Endpoint> endpoint) {
    const HeldIf guard(shared_, lock_);
    if (!kept_.empty()) closed_.push_back(std::move(endpoint));
}

// Waiting ---------------------------------------------------------------------------------------

/// The descriptor is readable while something is kept or signalled; under the lock.
void CompletionQueue::show() { waiting_->show(signalled_ || !kept_.empty()); }

bool CompletionQueue::is_quiet() {
    const HeldIf guard(shared_, lock_);
    return kept_.empty() && !signalled_;
}

int CompletionQueue::signal() {
    if (!waiting_) return -FI_ENOSYS;
    const HeldIf guard(shared_, lock_);
    signalled_ = true;
    show();
    return 0;
}

ssize_t CompletionQueue::wait_and_read(void* buffer, std::size_t count, int timeout_ms) {
    if (!waiting_) return -FI_ENOSYS;
    const auto interrupted = [this] {
        const HeldIf guard(shared_, lock_);
        const bool is_so = std::exchange(signalled_, false);
        show();
        return is_so;
    };
    return waiting_->read([&] { return read(buffer, count); }, interrupted, timeout_ms);
}

}  // namespace via::fabric
