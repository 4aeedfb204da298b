#include "sim/check_completion.hpp"

namespace via::sim {

namespace status = queue::status;

namespace {

constexpr std::uint32_t reserved_mask = 0xFFF0FE00;
constexpr std::uint32_t remote_errors =
    status::transport_error | status::rdma_protection_error | status::remote_descriptor_error;

}  // namespace

void CheckCompletion::observe(const Event& event) {
    std::visit(Overloaded{
                   [this](const Posted& e) { on_posted(e); },
                   [this](const Completed& e) { on_completed(e); },
                   [this](const Taken& e) { on_taken(e); },
                   ignore,
               },
               event.what);
}

void CheckCompletion::on_posted(const Posted& posted) {
    works_.emplace(posted.work, posted);
    queue_of(posted).posted.push_back(posted.work);
}

void CheckCompletion::on_completed(const Completed& completed) {
    const auto found = works_.find(completed.work);
    if (found == works_.end())
        return violate("work %u completed, but was never posted", completed.work);
    Queue& queue = queue_of(found->second);
    if (queue.posted.empty() || queue.posted.front() != completed.work)
        return violate("work %u of VI %u completed again, or before work %u", completed.work,
                       found->second.vi, queue.posted.empty() ? 0 : queue.posted.front());
    queue.posted.pop_front();
    queue.completed.push_back(completed.work);
    check_bits(found->second, completed);
}

void CheckCompletion::check_bits(const Posted& posted, const Completed& completed) {
    const std::uint32_t bits = completed.status;
    const std::uint32_t errors = bits & status::error_mask;
    const std::uint32_t operation = bits & status::operation_mask;
    const auto wrong = [&](const char* why) {
        violate("work %u completed with status %x: %s", completed.work, bits, why);
    };
    if ((bits & status::done) == 0 || (bits & reserved_mask) != 0) return wrong("not DONE alone");
    if ((errors & (errors - 1)) != 0) return wrong("more than one error");
    const bool operation_fits = posted.receive
                                    ? operation == status::operation_receive ||
                                          operation == status::operation_remote_rdma_write
                                    : operation == posted.operation;
    if (!operation_fits) return wrong("another operation than posted");
    if (!posted.receive && (bits & status::immediate) != 0)
        return wrong("IMMEDIATE is for receives");
    if (posted.fault != 0 && errors != posted.fault && errors != status::flushed)
        return wrong("its fault was not found");
    if (posted.fault == 0 && (errors & (status::format_error | status::protection_error)) != 0)
        return wrong("nothing was wrong with it");
    if (posted.fault == 0 && !posted.receive && (errors & status::length_error) != 0)
        return wrong("its length was right");
    if ((errors & remote_errors) != 0 && posted.receive) return wrong("an error of sends");
    if ((errors & remote_errors) != 0 && posted.reliability == Reliability::unreliable)
        return wrong("an unreliable VI hears nothing of the other side");
    if (errors == status::rdma_protection_error && operation == status::operation_send)
        return wrong("an error of RDMA");
    if (errors == 0 && !posted.receive && posted.reliability == Reliability::reception &&
        operation < status::operation_rdma_read && !completed.placed)
        wrong("done before it was placed");
}

void CheckCompletion::on_taken(const Taken& taken) {
    const auto found = works_.find(taken.work);
    if (found == works_.end()) return violate("work %u was given back, never posted", taken.work);
    Queue& queue = queue_of(found->second);
    if (queue.completed.empty() || queue.completed.front() != taken.work)
        return violate("work %u of VI %u was given back before it was its turn", taken.work,
                       found->second.vi);
    queue.completed.pop_front();
    works_.erase(found);
}

void CheckCompletion::finish(Time /*now*/) {
    for (const auto& [key, queue] : queues_) {
        if (!queue.posted.empty())
            return violate("work %u of VI %u never completed", queue.posted.front(), key.first);
        if (!queue.completed.empty())
            return violate("work %u of VI %u was never given back", queue.completed.front(),
                           key.first);
    }
}

}  // namespace via::sim
