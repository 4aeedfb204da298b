// SPDX-License-Identifier: Apache-2.0
#include "event_queue.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "fabric.hpp"

namespace via::fabric {
namespace {

EventQueue& queue_of(fid_eq* queue) { return *static_cast<EventQueue*>(queue); }
EventQueue& queue_of(fid* queue) { return queue_of(reinterpret_cast<fid_eq*>(queue)); }

}  // namespace

struct EventQueueOperations {
    static ssize_t read(fid_eq* queue, std::uint32_t* kind, void* buffer, std::size_t length,
                        std::uint64_t flags) {
        return queue_of(queue).read(kind, buffer, length, flags);
    }
    static ssize_t readerr(fid_eq* queue, fi_eq_err_entry* entry, std::uint64_t flags) {
        return guarded([&] { return queue_of(queue).read_error(entry, flags); });
    }
    static ssize_t write(fid_eq* queue, std::uint32_t kind, const void* buffer, std::size_t length,
                         std::uint64_t) {
        return guarded([&] { return queue_of(queue).write(kind, buffer, length); });
    }
    static ssize_t sread(fid_eq* queue, std::uint32_t* kind, void* buffer, std::size_t length,
                         int timeout_ms, std::uint64_t flags) {
        return guarded(
            [&] { return queue_of(queue).wait_and_read(kind, buffer, length, timeout_ms, flags); });
    }
    static const char* strerror(fid_eq*, int provider_error, const void*, char* buffer,
                                std::size_t length) {
        return tell_text(ViaReturnText(static_cast<VIP_RETURN>(provider_error)), buffer, length);
    }
    static int control(fid* queue, int command, void* argument) {
        return queue_of(queue).control(command, argument);
    }
};

int close_event_queue(fid* queue) {
    if (forked()) return -FI_EOPBADSTATE;
    EventQueue& object = queue_of(queue);
    if (object.users.any()) return -FI_EBUSY;
    delete &object;
    return 0;
}

namespace {

fi_ops object_operations = {
    sizeof(fi_ops), close_event_queue, unsupported, EventQueueOperations::control,
    unsupported,    unsupported,       unsupported};
fi_ops_eq queue_operations = {
    sizeof(fi_ops_eq),           EventQueueOperations::read,  EventQueueOperations::readerr,
    EventQueueOperations::write, EventQueueOperations::sread, EventQueueOperations::strerror};

}  // namespace

int EventQueue::open(fid_fabric* fabric, fi_eq_attr* attributes, fid_eq** queue, void* context) {
    return guarded([&] {
        const fi_eq_attr wanted = attributes != nullptr ? *attributes : fi_eq_attr{};
        if (wanted.wait_obj != FI_WAIT_NONE && wanted.wait_obj != FI_WAIT_UNSPEC &&
            wanted.wait_obj != FI_WAIT_FD)
            return -FI_ENOSYS;
        *queue = new EventQueue(*static_cast<Fabric*>(fabric), wanted, context);
        return 0;
    });
}

EventQueue::EventQueue(Fabric& fabric, const fi_eq_attr& attributes, void* context)
    : fid_eq{{FI_CLASS_EQ, context, &object_operations}, &queue_operations}, fabric_(fabric) {
    // ofi_rxm asks for the descriptor of a queue that it opened with FI_WAIT_UNSPEC.
    if (attributes.wait_obj != FI_WAIT_NONE) {
        descriptor_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        if (descriptor_ < 0) throw refused(FI_LOG_EQ, "the event queue's descriptor (eventfd)");
    }
    fabric_.users.add();
}

EventQueue::~EventQueue() {
    for (const Event& event : events_) discard(event);
    if (descriptor_ >= 0) close(descriptor_);
    fabric_.users.remove();
}

/// A request that nobody will read is rejected.
void EventQueue::discard(const Event& event) {
    if (event.info != nullptr) fabric_.requests().take(event.info->handle);
    fi_freeinfo(event.info);
}

void EventQueue::push(Event event) noexcept {
    const std::lock_guard guard(lock_);
    try {
        events_.push_back(std::move(event));
    } catch (...) {
        FI_WARN(&provider, FI_LOG_EQ, "no memory for an event\n");
        discard(event);
        return;
    }
    show();
    came_.notify_all();
}

/// Count and descriptor say what there is; under the lock.
void EventQueue::show() {
    const std::size_t before = count_.exchange(events_.size(), std::memory_order_release);
    if (descriptor_ < 0 || (before != 0) == !events_.empty()) return;
    std::uint64_t value = 1;
    const ssize_t done = events_.empty() ? ::read(descriptor_, &value, sizeof value)
                                         : ::write(descriptor_, &value, sizeof value);
    if (done < 0) refused(FI_LOG_EQ, "the event queue's descriptor (write, read)");
}

void EventQueue::pop() {
    events_.pop_front();
    show();
}

void EventQueue::forget(fid_t subject) noexcept {
    const std::lock_guard guard(lock_);
    std::erase_if(events_, [&](const Event& event) {
        if (event.subject != subject || event.written) return false;
        discard(event);
        return true;
    });
    show();
}

ssize_t EventQueue::read(std::uint32_t* kind, void* buffer, std::size_t length,
                         std::uint64_t flags) {
    if (count_.load(std::memory_order_acquire) == 0) return -FI_EAGAIN;
    const std::lock_guard guard(lock_);
    return events_.empty() ? -FI_EAGAIN : read_first(kind, buffer, length, flags);
}

/// There is an event; under the lock, so that nobody else has it in between.
ssize_t EventQueue::read_first(std::uint32_t* kind, void* buffer, std::size_t length,
                               std::uint64_t flags) {
    Event& event = events_.front();
    if (event.error != 0) return -FI_EAVAIL;
    *kind = event.kind;
    std::size_t size = 0;
    if (event.written) {
        size = event.bytes.size();
        if (length < size) return -FI_ETOOSMALL;
        if (size != 0) std::memcpy(buffer, event.bytes.data(), size);
    } else {
        if (length < sizeof(fi_eq_cm_entry)) return -FI_ETOOSMALL;
        auto& entry = *static_cast<fi_eq_cm_entry*>(buffer);
        entry.fid = event.subject;
        entry.info = event.info;
        const std::size_t data = std::min(event.bytes.size(), length - sizeof entry);
        if (data != 0)
            std::memcpy(static_cast<std::byte*>(buffer) + sizeof entry, event.bytes.data(), data);
        size = sizeof entry + data;
    }
    if ((flags & FI_PEEK) == 0) pop();
    return static_cast<ssize_t>(size);
}

ssize_t EventQueue::read_error(fi_eq_err_entry* entry, std::uint64_t flags) {
    const std::lock_guard guard(lock_);
    if (events_.empty() || events_.front().error == 0) return -FI_EAGAIN;
    Event& event = events_.front();
    // From API 1.5 on a program may bring room for the data; else it looks at ours.
    void* const room = entry->err_data;
    const std::size_t size = entry->err_data_size;
    error_data_ = event.bytes;
    entry->fid = event.subject;
    entry->context = event.context;
    entry->data = 0;
    entry->err = event.error;
    entry->prov_errno = event.provider_error;
    entry->err_data_size = error_data_.size();
    if (room != nullptr && size != 0) {
        entry->err_data_size = std::min(size, error_data_.size());
        if (entry->err_data_size != 0) std::memcpy(room, error_data_.data(), entry->err_data_size);
    } else {
        entry->err_data = error_data_.empty() ? nullptr : error_data_.data();
    }
    if ((flags & FI_PEEK) == 0) pop();
    return sizeof *entry;
}

ssize_t EventQueue::write(std::uint32_t kind, const void* buffer, std::size_t length) {
    Event event;
    event.kind = kind;
    event.written = true;
    const auto* bytes = static_cast<const std::uint8_t*>(buffer);
    event.bytes.assign(bytes, bytes + length);
    push(std::move(event));
    return static_cast<ssize_t>(length);
}

ssize_t EventQueue::wait_and_read(std::uint32_t* kind, void* buffer, std::size_t length,
                                  int timeout_ms, std::uint64_t flags) {
    const auto there = [&] { return !events_.empty(); };
    std::unique_lock guard(lock_);
    if (timeout_ms < 0)
        came_.wait(guard, there);
    else if (!came_.wait_for(guard, std::chrono::milliseconds(timeout_ms), there))
        return -FI_EAGAIN;
    return read_first(kind, buffer, length, flags);
}

int EventQueue::control(int command, void* argument) {
    return tell_wait_object(descriptor_, command, argument);
}

}  // namespace via::fabric
