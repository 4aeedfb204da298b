// Frames that lie about messages: numbers, lengths, places, VIs, memory. All are well-formed.
#include <gtest/gtest.h>

#include <functional>

#include "hostile_stage.hpp"

namespace system_test::hostile_frame_test {

namespace {

namespace flag = wire::flag;
using wire::FrameKind;

constexpr std::uint32_t transfer_max = 20000;  ///< bytes, agreed for the attacker's VIs

/// A message or a part of one, to be sent to VI `vi`.
struct Part {
    FrameKind kind = FrameKind::send;
    std::uint8_t flags = flag::first | flag::last;
    std::uint32_t message = 0;
    std::size_t bytes = 8;  ///< of payload
    std::uint32_t total = 0, offset = 0;
    std::uint64_t address = 0;
    std::uint32_t handle = 0;
    std::uint32_t read_number = 0;
    std::uint32_t code = 0;
};

wire::Header header_of(const Part& part, std::uint32_t vi) {
    wire::Header header;
    header.kind = part.kind;
    header.flags = part.flags;
    header.vi = vi;
    header.message = part.message;
    header.immediate_or_code = part.code;
    header.message_length = part.total;
    header.offset = part.offset;
    header.remote_address = part.address;
    header.remote_handle = part.handle;
    header.read_number = part.read_number;
    return header;
}

bool send(Attacker& attacker, std::uint32_t vi, const Part& part) {
    static const std::byte nothing[8192] = {};
    return attacker.send(header_of(part, vi), nothing, part.bytes);
}

constexpr std::uint8_t in_parts = flag::extent;
constexpr std::uint8_t with_address = flag::extent | flag::remote;
constexpr std::uint8_t whole = flag::first | flag::last;

/// What one lie is about, and what it must lead to.
struct Lie {
    const char* name;
    /// Sends the lie on VI `vi`, which is connected.
    std::function<void(HostileStage&, Attacker&, std::uint32_t vi)> tell;
    VIP_RELIABILITY_LEVEL level = VIP_SERVICE_RELIABLE_DELIVERY;
    bool touches_open_memory = false;
};

void PrintTo(const Lie& lie, std::ostream* out) { *out << lie.name; }

std::function<void(HostileStage&, Attacker&, std::uint32_t)> parts(std::vector<Part> all) {
    return [all](HostileStage&, Attacker& attacker, std::uint32_t vi) {
        for (const Part& part : all) send(attacker, vi, part);
    };
}

/// An RDMA frame about the victim's memory; `guarded` or open, from `offset` on.
std::function<void(HostileStage&, Attacker&, std::uint32_t)> rdma(Part part, bool guarded,
                                                                  std::int64_t offset) {
    return [=](HostileStage& stage, Attacker& attacker, std::uint32_t vi) {
        Part lie = part;
        HostilePage& page = stage.page();
        const std::uint64_t base = guarded ? page.guard_address : page.open_address;
        lie.address = base + static_cast<std::uint64_t>(offset);
        lie.handle = guarded ? page.guard_handle : page.open_handle;
        send(attacker, vi, lie);
    };
}

Part write_part(std::uint32_t total, std::size_t bytes, std::uint8_t flags = whole) {
    return {.kind = FrameKind::rdma_write,
            .flags = static_cast<std::uint8_t>(flags | with_address),
            .bytes = bytes,
            .total = total};
}

Part read_part(std::uint32_t total) {
    return {
        .kind = FrameKind::read_request, .flags = whole | with_address, .bytes = 0, .total = total};
}

/// The victim asks for our memory, and gets this as an answer.
std::function<void(HostileStage&, Attacker&, std::uint32_t)> answer(Part part) {
    return [=](HostileStage& stage, Attacker& attacker, std::uint32_t vi) {
        stage.order("read");
        const auto request = attacker.wait_frame(FrameKind::read_request);
        EXPECT_EQ(request.header.message_length, transfer_max);
        Part lie = part;
        lie.kind = FrameKind::read_reply;
        lie.read_number += request.header.read_number;
        send(attacker, vi, lie);
    };
}

/// The victim sends something, which we take and acknowledge like this.
std::function<void(HostileStage&, Attacker&, std::uint32_t)> acknowledge(Part part) {
    return [=](HostileStage& stage, Attacker& attacker, std::uint32_t vi) {
        stage.order("send");
        attacker.wait_frame(FrameKind::send);
        send(attacker, vi, part);
    };
}

const Lie
    breaking
        [] =
            {
                {"message_number_ahead", parts({{.message = 1}})},
                {"message_number_far_ahead", parts({{.message = 1U << 31}})},
                {"message_number_again", parts({{}, {}})},
                {"no_first", parts({{.flags = flag::last}})},
                {"no_first_in_parts",
                 parts({{.flags = in_parts | flag::last, .total = 16, .offset = 8}})},
                {"begins_twice", parts({{.flags = in_parts | flag::first, .total = 16},
                                        {.flags = in_parts | flag::first, .total = 16}})},
                {"another_kind_within", parts({{.flags = in_parts | flag::first, .total = 16},
                                               {.kind = FrameKind::rdma_write,
                                                .flags = with_address | flag::last,
                                                .total = 16,
                                                .offset = 8}})},
                {"offset_of_first",
                 parts({{.flags = in_parts | flag::first, .total = 100, .offset = 8}})},
                {"offset_jumps", parts({{.flags = in_parts | flag::first, .total = 100},
                                        {.flags = in_parts, .total = 100, .offset = 24}})},
                {"offset_back", parts({{.flags = in_parts | flag::first, .total = 100},
                                       {.flags = in_parts, .total = 100, .offset = 0}})},
                {"total_changes",
                 parts({{.flags = in_parts | flag::first, .total = 100},
                        {.flags = in_parts | flag::last, .total = 16, .offset = 8}})},
                {"more_than_total",
                 parts({{.flags = in_parts | flag::first, .bytes = 100, .total = 50}})},
                {"last_too_early", parts({{.flags = in_parts | whole, .total = 100}})},
                {"last_missing", parts({{.flags = in_parts | flag::first, .total = 8}})},
                {"empty_part",
                 parts({{.flags = in_parts | flag::first, .bytes = 0, .total = 100}})},
                {"longer_than_agreed",
                 parts({{.flags = in_parts | flag::first, .total = transfer_max + 1}})},
                {"total_max", parts({{.flags = in_parts | flag::first, .total = ~0U}})},
                {"whole_without_extent_too_short", parts({{.flags = flag::first}})},
                {"send_with_address", parts({{.flags = whole | with_address, .total = 8}})},
                {"write_without_address",
                 parts({{.kind = FrameKind::rdma_write, .flags = whole | in_parts, .total = 8}})},
                // RDMA writes
                {"write_to_guarded_memory", rdma(write_part(8, 8), true, 0)},
                {"write_before_the_region", rdma(write_part(8, 8), false, -8)},
                {"write_over_the_end", rdma(write_part(8, 8), false, open_bytes - 7)},
                {"write_behind_the_end", rdma(write_part(8, 8), false, open_bytes)},
                {"write_wraps_around",
                 [](HostileStage& stage, Attacker& attacker, std::uint32_t vi) {
                     Part part = write_part(16, 16);
                     part.address = ~std::uint64_t{0} - 7;
                     part.handle = stage.page().open_handle;
                     send(attacker, vi, part);
                 }},
                {"write_total_over_the_end",
                 rdma(write_part(64, 8, flag::first), false, open_bytes - 8)},
                {"write_with_handle_0",
                 [](HostileStage& stage, Attacker& attacker, std::uint32_t vi) {
                     Part part = write_part(8, 8);
                     part.address = stage.page().open_address;
                     send(attacker, vi, part);
                 }},
                {"write_with_handle_max",
                 [](HostileStage& stage, Attacker& attacker, std::uint32_t vi) {
                     Part part = write_part(8, 8);
                     part.address = stage.page().open_address;
                     part.handle = ~0U;
                     send(attacker, vi, part);
                 }},
                // RDMA reads
                {"read_of_guarded_memory", rdma(read_part(64), true, 0)},
                {"read_over_the_end", rdma(read_part(64), false, open_bytes - 63)},
                {"read_longer_than_agreed", rdma(read_part(transfer_max + 1), false, 0)},
                {"read_of_max", rdma(read_part(~0U), false, 0)},
                {"read_on_unreliable", rdma(read_part(64), false, 0), VIP_SERVICE_UNRELIABLE},
                {"read_with_wrong_number",
                 [](HostileStage& stage, Attacker& attacker, std::uint32_t vi) {
                     Part part = read_part(64);
                     part.address = stage.page().open_address;
                     part.handle = stage.page().open_handle;
                     part.read_number = 1;
                     send(attacker, vi, part);
                 }},
                {"reads_without_end",
                 [](HostileStage& stage, Attacker& attacker, std::uint32_t vi) {
                     // We take no answers, so they fill the ring and the requests pile up.
                     for (std::uint32_t number = 0; number < 300; ++number) {
                         Part part = read_part(transfer_max);
                         part.address = stage.page().open_address;
                         part.handle = stage.page().open_handle;
                         part.message = part.read_number = number;
                         send(attacker, vi, part);
                     }
                 }},
                // Answers to the victim's own reads
                {"answer_to_no_read",
                 parts(
                     {{.kind = FrameKind::read_reply, .flags = whole | with_address, .total = 8}})},
                {"answer_with_another_number", answer({.flags = with_address | flag::first,
                                                       .bytes = 4096,
                                                       .total = transfer_max,
                                                       .read_number = 1})},
                {"answer_of_another_length", answer({.flags = with_address | flag::first,
                                                     .bytes = 4096,
                                                     .total = transfer_max + 1})},
                {"answer_too_short",
                 answer({.flags = with_address | whole, .bytes = 4096, .total = transfer_max})},
                {"answer_with_offset", answer({.flags = with_address | flag::first,
                                               .bytes = 4096,
                                               .total = transfer_max,
                                               .offset = 4096})},
                {"answer_without_first",
                 answer({.flags = with_address, .bytes = 4096, .total = transfer_max})},
                {"answer_without_address",
                 answer({.flags = in_parts | flag::first, .bytes = 4096, .total = transfer_max})},
                {"answer_empty",
                 answer({.flags = with_address | flag::first, .bytes = 0, .total = transfer_max})},
                // Acknowledgements
                {"ack_where_none_is_due",
                 parts({{.kind = FrameKind::ack, .flags = 0, .bytes = 0}})},
                {"ack_of_nothing_sent", parts({{.kind = FrameKind::ack, .flags = 0, .bytes = 0}}),
                 VIP_SERVICE_RELIABLE_RECEPTION},
                {"ack_of_more_than_was_sent",
                 acknowledge({.kind = FrameKind::ack, .flags = 0, .message = 1, .bytes = 0}),
                 VIP_SERVICE_RELIABLE_RECEPTION},
                {"ack_far_ahead",
                 acknowledge({.kind = FrameKind::ack, .flags = 0, .message = 1U << 31, .bytes = 0}),
                 VIP_SERVICE_RELIABLE_RECEPTION},
                {"nak_of_nothing_sent",
                 parts(
                     {{.kind = FrameKind::nak, .flags = 0, .message = 5, .bytes = 0, .code = 1}})},
                {"nak_on_unreliable",
                 parts({{.kind = FrameKind::nak, .flags = 0, .bytes = 0, .code = 1}}),
                 VIP_SERVICE_UNRELIABLE},
                {"nak_with_unknown_code",
                 acknowledge({.kind = FrameKind::nak, .flags = 0, .bytes = 0, .code = 0xDEAD}),
                 VIP_SERVICE_RELIABLE_RECEPTION},
                {"more_sends_than_receives",
                 [](HostileStage& stage, Attacker& attacker, std::uint32_t vi) {
                     // In one go: the victim has eight receives and posts each again when it was
                     // taken.
                     const std::byte nothing[8] = {};
                     for (std::uint32_t message = 0; stage.page().lost == 0; ++message)
                         if (!attacker.try_send(header_of({.message = message}, vi), nothing, 8))
                             --message;
                 }},
};

class HostileFrame : public testing::TestWithParam<Lie> {};

TEST_P(HostileFrame, EndsItsOwnConnectionOnly) {
    HostileStage stage;
    {
        const auto attacker = stage.attacker();
        attacker->enter();
        const std::uint32_t vi = attacker->connect_vi(GetParam().level, transfer_max);
        until("the victim knows", [&] { return stage.page().accepted == 1; });
        GetParam().tell(stage, *attacker, vi);
        stage.expect_lost(1);
        stage.expect_undisturbed();
        stage.expect_intact(!GetParam().touches_open_memory);
        EXPECT_FALSE(attacker->hung_up()) << "the channel is good for other VIs";
        // A second VI on the same channel still works.
        while (attacker->receive()) {
        }
        const std::uint32_t second =
            attacker->connect_vi(VIP_SERVICE_RELIABLE_DELIVERY, transfer_max, 2);
        const std::uint32_t received = stage.page().received;
        send(*attacker, second, {});
        until("a proper message arrives", [&] { return stage.page().received == received + 1; });
    }
    stage.expect_lost(2);
    stage.expect_given_back();
    stage.end();
}

INSTANTIATE_TEST_SUITE_P(With, HostileFrame, testing::ValuesIn(breaking),
                         [](const auto& lie) { return std::string(lie.param.name); });

TEST(HostileFrameInTheLog, SaysWhatWasWrong) {
    HostileStage stage;
    const auto attacker = stage.attacker();
    attacker->enter();
    const std::uint32_t vi = attacker->connect_vi(VIP_SERVICE_RELIABLE_DELIVERY, transfer_max);
    send(*attacker, vi, {.message = 1});
    stage.expect_lost(1);
    stage.expect_undisturbed();
    EXPECT_NE(stage.log().find("a message out of sequence"), std::string::npos) << stage.log();
    stage.end();
}

/// On an unreliable VI the message is dropped and the connection stays (VIPL 4.25).
TEST(UnreliableGuess, NeverHitsMemoryThatIsNotMeant) {
    HostileStage stage;
    const auto attacker = stage.attacker();
    attacker->enter();
    const std::uint32_t vi = attacker->connect_vi(VIP_SERVICE_UNRELIABLE, transfer_max);
    HostilePage& page = stage.page();
    std::uint32_t message = 0;
    const auto guess = [&](std::uint64_t address, std::uint32_t handle) {
        Part part = write_part(8, 8);
        part.message = message++;
        part.address = address;
        part.handle = handle;
        ASSERT_TRUE(send(*attacker, vi, part));
    };
    const std::uint64_t open = page.open_address;
    const std::uint64_t guarded = page.guard_address;
    for (std::uint32_t index = 0; index < 64; ++index)
        for (std::uint32_t generation = 0; generation < 64; ++generation)
            guess(guarded, generation << 20 | index);
    for (std::uint32_t bit = 0; bit < 32; ++bit) guess(open, page.open_handle ^ 1U << bit);
    for (std::uint32_t bit = 20; bit < 64; ++bit)
        guess(open ^ std::uint64_t{1} << bit, page.open_handle);
    send(*attacker, vi, {.message = message});
    until("the last message arrives", [&] { return page.received == 1; });
    EXPECT_EQ(page.lost, 0U);
    stage.expect_intact();
    stage.expect_undisturbed();
    stage.end();
}

TEST(ForeignVi, CannotBeAddressed) {
    HostileStage stage;
    const auto attacker = stage.attacker();
    attacker->enter();
    const std::uint32_t own = attacker->connect_vi(VIP_SERVICE_RELIABLE_DELIVERY, transfer_max);
    // The good connection's VI is among them, with each number it may have.
    for (const FrameKind kind : {FrameKind::send, FrameKind::disconnect, FrameKind::nak,
                                 FrameKind::ack, FrameKind::read_request, FrameKind::refuse})
        for (std::uint32_t epoch = 0; epoch < 4; ++epoch)
            for (std::uint32_t index = 0; index < 256; ++index) {
                const std::uint32_t vi = epoch << 16 | index;
                if (vi == own) continue;
                Part part;
                part.kind = kind;
                part.bytes = kind == FrameKind::send ? 8 : 0;
                ASSERT_TRUE(send(*attacker, vi, part));
            }
    for (const std::uint32_t vi : {~0U, 0xFFFFU, 0xFFFF0000U, 1U << 31}) {
        Part part;
        part.kind = FrameKind::disconnect;
        part.bytes = 0;
        send(*attacker, vi, part);
    }
    send(*attacker, own, {});
    until("a proper message arrives", [&] { return stage.page().received == 1; });
    EXPECT_EQ(stage.page().lost, 0U);
    stage.expect_undisturbed();
    stage.expect_intact();
    stage.end();
}

TEST(ForeignRequest, CannotBeWithdrawnOrAccepted) {
    HostileStage stage;
    const auto attacker = stage.attacker();
    attacker->enter();
    Part part;
    part.bytes = 0;
    for (std::uint32_t vi = 0; vi < 1000; ++vi) {
        part.kind = FrameKind::withdraw;
        part.message = vi;
        ASSERT_TRUE(send(*attacker, 0, part));
    }
    const auto honest = stage.attacker();
    honest->enter();
    const std::uint32_t vi = honest->connect_vi(VIP_SERVICE_RELIABLE_DELIVERY, transfer_max);
    send(*honest, vi, {});
    until("a proper message arrives", [&] { return stage.page().received == 1; });
    stage.expect_undisturbed();
    stage.end();
}

TEST(Leaver, InTheMiddleOfAMessage) {
    HostileStage stage;
    {
        const auto attacker = stage.attacker();
        attacker->enter();
        const std::uint32_t vi = attacker->connect_vi(VIP_SERVICE_RELIABLE_DELIVERY, transfer_max);
        send(*attacker, vi, {.flags = in_parts | flag::first, .bytes = 8192, .total = 16384});
        stage.order("read");  // never answered
    }
    stage.expect_lost(1);
    stage.expect_undisturbed();
    stage.expect_given_back();
    stage.end();
}

}  // namespace

}  // namespace system_test::hostile_frame_test
