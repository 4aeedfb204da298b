#include "support/traffic.hpp"

namespace system_test {

const char* name_of(Operation operation) {
    switch (operation) {
        case Operation::send:
            return "send";
        case Operation::write:
            return "write";
        case Operation::read:
            return "read";
    }
    return "?";
}

// The initiator
// -------------------------------------------------------------------------------------

void Initiator::step(Where where) {
    start_all(where);
    while (const auto outcome = end_.sent(where)) take(*outcome, where);
    broken_ = all_back() && end_.state(where) == VIP_STATE_ERROR;
}

bool Initiator::wait(VIP_ULONG timeout_ms, Where where) {
    start_all(where);
    const auto outcome = end_.wait_sent(timeout_ms, where);
    if (outcome) take(*outcome, where);
    return outcome.has_value();
}

void Initiator::start_all(Where where) {
    while (!over() && started_ - done_ < end_.wants().sends && started_ < page_.credits.load())
        start(where);
}

void Initiator::start(Where where) {
    const auto slot = static_cast<unsigned>(started_ % end_.wants().sends);
    const std::size_t length = end_.wants().length;
    const std::uint64_t address =
        page_.address.load() + started_ % page_.slots.load() * page_.stride.load();
    if (operation_ != Operation::read) fill(end_.send_buffer(slot), length, started_);
    switch (operation_) {
        case Operation::send:
            end_.post_send(slot, length, where);
            break;
        case Operation::write:
            end_.post_write(slot, address, page_.handle.load(),
                            static_cast<std::uint32_t>(started_), where);
            break;
        case Operation::read:
            end_.post_read(slot, address, page_.handle.load(), where);
            break;
    }
    page_.started.store(++started_);
}

void Initiator::take(const Outcome& outcome, Where where) {
    require(outcome.slot == (done_ + failed_) % end_.wants().sends,
            "descriptors come back in the order of posting", where);
    if (!outcome.ok()) {
        ++failed_;
        return;
    }
    require(!over(), "nothing succeeds after a failure", where);
    if (operation_ == Operation::read)
        require(
            holds(end_.send_buffer(outcome.slot), end_.wants().length, done_ % page_.slots.load()),
            "the bytes read are the target's", where);
    page_.done.store(++done_);
}

// The target
// ----------------------------------------------------------------------------------------

Target::Target(End& end, Operation operation, TrafficPage& page)
    : end_(end), operation_(operation), page_(page) {
    const unsigned slots = end.wants().receives;
    page.address.store(reinterpret_cast<std::uint64_t>(end.receive_buffer(0)));
    page.stride.store(static_cast<std::uint64_t>(end.receive_buffer(1) - end.receive_buffer(0)));
    page.slots.store(slots);
    page.handle.store(end.memory().handle());
    if (operation == Operation::read)
        for (unsigned slot = 0; slot < slots; ++slot)
            fill(end.receive_buffer(slot), end.wants().length, slot);
    page.credits.store(operation == Operation::read ? ~std::uint64_t{0} : slots);
}

void Target::step(Where where) {
    for (unsigned taken = 0; taken < end_.wants().receives; ++taken) {
        const auto outcome = end_.received(where);
        if (!outcome) return;
        take(*outcome, where);
    }
}

bool Target::wait(VIP_ULONG timeout_ms, Where where) {
    const auto outcome = end_.wait_received(timeout_ms, where);
    if (outcome) take(*outcome, where);
    return outcome.has_value();
}

void Target::take(const Outcome& outcome, Where where) {
    require(outcome.slot == (taken_ + failed_) % end_.wants().receives,
            "descriptors come back in the order of posting", where);
    if (!outcome.ok()) {
        require(outcome.flushed(), "a receive of a lost connection is flushed", where);
        ++failed_;
        return;
    }
    require(!over(), "nothing is delivered after the flush began", where);
    if (operation_ == Operation::write)
        require(outcome.descriptor->CS.ImmediateData == static_cast<std::uint32_t>(taken_),
                "the immediate data is the message's number", where);
    require(outcome.descriptor->CS.Length == end_.wants().length, "the length is right", where);
    require(holds(end_.receive_buffer(outcome.slot), end_.wants().length, taken_),
            "message " + std::to_string(taken_) + " arrived whole", where);
    end_.post_receive(outcome.slot, where);
    page_.taken.store(++taken_);
    page_.credits.store(taken_ + end_.wants().receives);
}

}  // namespace system_test
