// SPDX-License-Identifier: Apache-2.0
#include "rdm/queue.hpp"

#include <algorithm>
#include <utility>

#include "rdm/fast_path.hpp"

namespace via::fabric::rdm {
namespace {

constexpr std::size_t room_min = 256;

Queue& queue_of(fid_cq* queue) { return *static_cast<Queue*>(queue); }

}  // namespace

struct QueueOperations {
    static ssize_t read(fid_cq* queue, void* buffer, std::size_t count) {
        return queue_of(queue).read(buffer, count, nullptr);
    }
    static ssize_t readfrom(fid_cq* queue, void* buffer, std::size_t count, fi_addr_t* from) {
        return queue_of(queue).read(buffer, count, from);
    }
    static ssize_t readerr(fid_cq* queue, fi_cq_err_entry* entry, std::uint64_t) {
        return queue_of(queue).read_error(entry);
    }
    static const char* strerror(fid_cq*, int provider_error, const void*, char* buffer,
                                std::size_t length) {
        return tell_text(fi_strerror(provider_error), buffer, length);
    }
    static ssize_t sread(fid_cq* queue, void* buffer, std::size_t count, const void*,
                         int timeout_ms) {
        return queue_of(queue).wait_and_read(buffer, count, nullptr, timeout_ms);
    }
    static ssize_t sreadfrom(fid_cq* queue, void* buffer, std::size_t count, fi_addr_t* from,
                             const void*, int timeout_ms) {
        return queue_of(queue).wait_and_read(buffer, count, from, timeout_ms);
    }
    static int signal(fid_cq* queue) { return queue_of(queue).signal(); }
    static int control(fid* queue, int command, void* argument) {
        return Queue::control(queue, command, argument);
    }
    static int close(fid* queue) {
        if (forked()) return -FI_EOPBADSTATE;
        Queue& object = queue_of(reinterpret_cast<fid_cq*>(queue));
        if (object.users.any()) return -FI_EBUSY;
        delete &object;
        return 0;
    }
};

namespace {

using Operations = QueueOperations;
fi_ops object_operations = {sizeof(fi_ops), Operations::close, unsupported, Operations::control,
                            unsupported,    unsupported,       unsupported};
fi_ops_cq queue_operations = {sizeof(fi_ops_cq),   Operations::read,    Operations::readfrom,
                              Operations::readerr, Operations::sread,   Operations::sreadfrom,
                              Operations::signal,  Operations::strerror};

}  // namespace

int Queue::open(fid_domain* domain, fi_cq_attr* attributes, fid_cq** queue, void* context) {
    return guarded([&] {
        fi_cq_attr wanted;
        if (const int error = look_at(attributes, FI_CQ_FORMAT_TAGGED, wanted)) return error;
        *queue = new Queue(*static_cast<Domain*>(domain), wanted, context);
        return 0;
    });
}

Queue::Queue(Domain& domain, const fi_cq_attr& attributes, void* context)
    : QueueBase(domain, attributes, object_operations, queue_operations, context) {
    if (!grow()) throw std::bad_alloc();
    domain_.users.add();
}

Queue::~Queue() { domain_.users.remove(); }

bool Queue::grow() {
    const std::size_t room = std::max(room_min, 2 * room_);
    std::unique_ptr<Completion[]> entries(new (std::nothrow) Completion[room]);
    if (!entries) return false;
    for (std::size_t index = 0; index < count_; ++index)
        entries[index] = entries_[(first_ + index) & (room_ - 1)];
    entries_ = std::move(entries);
    first_ = 0;
    room_ = room;
    return true;
}

Queue* Queue::of(::fid& object) {
    if (object.fclass != FI_CLASS_CQ || object.ops != &object_operations) return nullptr;
    return &queue_of(reinterpret_cast<fid_cq*>(&object));
}

void Queue::progress() {
    if (waiting_ == nullptr) [[likely]] {
        for (Endpoint* endpoint : endpoints_) endpoint->progress();
        return;
    }
    // First: mail that comes from here on shows itself.
    waiting_->show(false);
    is_read_ = true;
    for (Endpoint* endpoint : endpoints_) endpoint->progress();
    is_read_ = false;
}

/// There is something to be read, or a signal, or mail that there was no memory for.
void Queue::show() {
    const bool has_mail = std::ranges::any_of(endpoints_, &Endpoint::has_mail);
    if (count_ != 0 || signalled_ || has_mail) waiting_->show(true);
}

bool Queue::has_news() {
    const Domain::Guard guard(domain_);
    progress();
    if (waiting_ != nullptr) show();
    return count_ != 0;
}

bool Queue::is_quiet() {
    const Domain::Guard guard(domain_);
    return count_ == 0 && !signalled_;
}

int Queue::signal() {
    if (waiting_ == nullptr) return -FI_ENOSYS;
    const Domain::Guard guard(domain_);
    signalled_ = true;
    waiting_->show(true);
    return 0;
}

ssize_t Queue::wait_and_read(void* buffer, std::size_t count, fi_addr_t* from, int timeout_ms) {
    if (waiting_ == nullptr) return -FI_ENOSYS;
    const auto interrupted = [this] {
        const Domain::Guard guard(domain_);
        return std::exchange(signalled_, false);
    };
    return waiting_->read([&] { return read(buffer, count, from); }, interrupted, timeout_ms);
}

ssize_t Queue::read(void* buffer, std::size_t count, fi_addr_t* from) {
    const Domain::Guard guard(domain_);
    bool may_skip = true;
    if (count == 0 || (count_ == 0 && !std::exchange(skips_next_, false)))
        progress();
    else if (count_ < count)
        for (Endpoint* endpoint : endpoints_) may_skip = endpoint->look_at_lines() && may_skip;
    std::size_t got = 0;
    while (got < count && count_ != 0) {
        const Completion& completion = entries_[first_];
        if (completion.error != 0) break;
        write(buffer, got, completion);
        if (from != nullptr) from[got] = completion.source;
        ++got;
        first_ = (first_ + 1) & (room_ - 1);
        --count_;
    }
    if (waiting_ != nullptr) [[unlikely]]
        show();
    else
        skips_next_ = got != 0 && got < count && may_skip;
    if (got != 0) return static_cast<ssize_t>(got);
    if (count_ == 0) return -FI_EAGAIN;
    return entries_[first_].error != 0 ? -FI_EAVAIL : 0;
}

ssize_t Queue::read_error(fi_cq_err_entry* entry) {
    const Domain::Guard guard(domain_);
    if (count_ == 0 || entries_[first_].error == 0) return -FI_EAGAIN;
    const Completion& completion = entries_[first_];
    write_error(*entry, completion, completion.error);
    entry->tag = completion.tag;
    entry->olen = completion.missing;
    first_ = (first_ + 1) & (room_ - 1);
    --count_;
    return 1;
}

}  // namespace via::fabric::rdm
