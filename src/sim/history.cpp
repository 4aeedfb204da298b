#include "sim/history.hpp"

#include <cstdarg>
#include <cstdio>

#include "sim/checker.hpp"

namespace via::sim {

namespace {

__attribute__((format(printf, 1, 2))) std::string print(const char* format, ...) {
    char text[256];
    std::va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return text;
}

const char* to_text(Cause cause) {
    switch (cause) {
        case Cause::turn:
            return "turn";
        case Cause::connect:
            return "connect";
        case Cause::accept:
            return "accept";
        case Cause::disconnect:
            return "disconnect";
    }
    return "?";
}

unsigned long long wide(std::uint64_t number) { return number; }

}  // namespace

const char* to_text(ViState state) {
    switch (state) {
        case ViState::idle:
            return "idle";
        case ViState::connected:
            return "connected";
        case ViState::connect_pending:
            return "pending";
        case ViState::error:
            return "error";
    }
    return "?";
}

std::string to_text(const Happening& what) {
    return std::visit(
        Overloaded{
            [](const Granted& e) {
                return print("granted node=%u handle=%u at=%llu length=%llu tag=%llu %s%s", e.node,
                             e.handle, wide(e.begin), wide(e.length), wide(e.attributes.tag),
                             e.attributes.rdma_write ? "w" : "-",
                             e.attributes.rdma_read ? (e.attributes.atomics ? "ra" : "r")
                             : e.attributes.atomics ? "-a"
                                                    : "-");
            },
            [](const Revoked& e) { return print("revoked node=%u handle=%u", e.node, e.handle); },
            [](const Opened& e) {
                return print("opened %llu node=%u at=%llu length=%llu%s", wide(e.id), e.node,
                             wide(e.begin), wide(e.length), e.remote ? " remote" : "");
            },
            [](const Closed& e) { return print("closed %llu", wide(e.id)); },
            [](const Changed& e) {
                return print("changed node=%u at=%llu length=%llu", e.node, wide(e.begin),
                             wide(e.length));
            },
            [](const ViMade& e) {
                return print("made vi=%u node=%u level=%u tag=%llu %s%s", e.vi, e.node,
                             static_cast<unsigned>(e.attributes.reliability),
                             wide(e.attributes.tag), e.attributes.rdma_write ? "w" : "-",
                             e.attributes.rdma_read ? "r" : "-");
            },
            [](const StateChanged& e) {
                return print("state vi=%u %s -> %s by %s", e.vi, to_text(e.from), to_text(e.to),
                             to_text(e.cause));
            },
            [](const Lost& e) { return print("lost vi=%u", e.vi); },
            [](const Called& e) { return print("called %s: %s", e.what, to_string(e.got)); },
            [](const Posted& e) {
                return print("posted work=%u vi=%u %s operation=%u fault=%x in %s", e.work, e.vi,
                             e.receive ? "receive" : "send", e.operation >> 16, e.fault,
                             to_text(e.state));
            },
            [](const Completed& e) {
                return print("completed work=%u status=%x%s", e.work, e.status,
                             e.placed ? " placed" : "");
            },
            [](const Taken& e) { return print("taken work=%u", e.work); },
            [](const Sent& e) {
                return print("sent work=%u channel=%u length=%zu", e.work, e.channel,
                             e.bytes.size());
            },
            [](const Delivered& e) {
                return print("delivered work=%u channel=%u length=%zu", e.work, e.channel,
                             e.bytes.size());
            },
            [](const RdmaAsked& e) {
                return print("rdma work=%u %s vi=%u node=%u handle=%u at=%llu length=%llu", e.work,
                             e.write    ? "write"
                             : e.atomic ? "atomic"
                                        : "read",
                             e.vi, e.node, e.handle, wide(e.begin), wide(e.length));
            },
            [](const ReadLanded& e) { return print("landed read=%u", e.work); },
            [](const WordMade& e) {
                return print("made word=%u value=%llu", e.word, wide(e.value));
            },
            [](const WordAsked& e) {
                return print("asked work=%u word=%u channel=%u adds=%llu if=%llu", e.work, e.word,
                             e.channel, wide(e.step), wide(e.expected.value_or(0)));
            },
            [](const WordFound& e) { return print("found work=%u was=%llu", e.work, wide(e.was)); },
            [](const WordEnded& e) {
                return print("ended word=%u value=%llu", e.word, wide(e.value));
            },
            [](const Quiet& e) { return print("quiet channel=%u", e.channel); },
            [](const TurnDone& e) {
                return print("turn node=%u frames=%u bytes=%llu", e.node, e.frames, wide(e.bytes));
            },
            [](const Stopped& e) {
                return print("stopped bound=%lld", static_cast<long long>(e.bound.ns));
            },
            [](const Rested&) { return print("rested"); },
            [](const Emptied&) { return print("emptied"); },
        },
        what);
}

}  // namespace via::sim
