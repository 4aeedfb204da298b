// What arrives, and in which order (VIPL 4.23).
#include <via/via.h>

#include <algorithm>
#include <vector>

#include "harness/end.hpp"
#include "harness/one_processor.hpp"
#include "harness/random.hpp"

namespace conformance::delivery_test {
namespace {

constexpr std::size_t megabyte = 1 << 20;

/// Sizes from 0 to 1 MB: around every power of two, and some between.
std::vector<std::size_t> sizes() {
    std::vector<std::size_t> all{0, 1, 2, 3};
    for (std::size_t power = 4; power <= megabyte; power *= 2)
        for (const std::size_t size : {power - 1, power, power + 1})
            if (size <= megabyte) all.push_back(size);
    Random random(11);
    for (int n = 0; n < 30; ++n) all.push_back(random.below(1U << (4 + n / 2)));
    return all;
}

/// Cuts memory for `length` bytes into up to 20 pieces of any length and alignment, each between
/// guard bytes.
class Cut {
public:
    Cut(End& end, std::size_t arena_bytes) : arena_(end.take(arena_bytes)) {}

    void again(Random& random, std::size_t length) {
        fill_with(arena_, guard);
        pieces_.clear();
        std::size_t at = 0;
        std::size_t left = length;
        for (std::size_t count = 1 + random.below(20); count > 0; --count) {
            at += 1 + random.below(70);
            const std::size_t bytes = count == 1 ? left : random.below(left + 1);
            pieces_.push_back(arena_.part(at, bytes));
            at += bytes;
            left -= bytes;
        }
        used_ = at + 1;
    }
    Pieces pieces() const { return pieces_; }
    void fill(std::uint64_t seed) {
        std::size_t from = 0;
        for (const Piece& piece : pieces_) {
            conformance::fill(piece, seed, from);
            from += piece.length;
        }
    }
    /// The first `length` bytes are the pattern's, all else is as it was.
    testing::AssertionResult holds(std::uint64_t seed, std::size_t length) const {
        std::size_t from = 0;
        std::size_t at = 0;
        for (const Piece& piece : pieces_) {
            const auto begin = static_cast<std::size_t>(piece.data - arena_.data);
            const std::size_t bytes = std::min<std::size_t>(piece.length, length - from);
            if (auto result = holds_only(arena_.part(at, begin - at), guard); !result)
                return result << " (in front of a segment)";
            if (auto result = conformance::holds(piece.with_length(bytes), seed, from); !result)
                return result << " (in a segment at " << from << ")";
            from += bytes;
            at = begin + bytes;
        }
        auto result = holds_only(arena_.part(at, used_ - at), guard);
        return result ? result : result << " (behind the message)";
    }

private:
    static constexpr int guard = 0xC3;
    Piece arena_;
    std::vector<Piece> pieces_;
    std::size_t used_ = 0;
};

constexpr std::size_t arena_bytes = megabyte + 4096;
constexpr std::size_t end_bytes = megabyte + (256 << 10);

VIPL_TEST(Vipl_4_23_messages_of_all_sizes_in_random_segments_arrive_whole, nothing) {
    test.role("server", [](Role& me) {
        for (const VIP_RELIABILITY_LEVEL level : levels_that_deliver()) {
            Random random(1);
            End end(me, {.level = level, .transfer_max = megabyte, .memory = end_bytes});
            Cut cut(end, arena_bytes);
            VIP_DESCRIPTOR* descriptor = end.memory().descriptor(20);
            end.accept("client");
            for (const std::size_t size : sizes()) {
                SCOPED_TRACE(testing::Message() << size << " bytes, level " << level);
                cut.again(random, size + random.below(megabyte + 1 - size));
                make_receive(descriptor, cut.pieces());
                end.post_receive(descriptor);
                me.tell("client", 'r');
                EXPECT_EQ(descriptor, end.received());
                EXPECT_EQ(size, descriptor->CS.Length);
                EXPECT_TRUE(cut.holds(size, size));
            }
            me.meet();
        }
    });
    test.role("client", [](Role& me) {
        const OneProcessor here;
        for (const VIP_RELIABILITY_LEVEL level : levels_that_deliver()) {
            Random random(2);
            End end(me, {.level = level, .transfer_max = megabyte, .memory = end_bytes});
            Cut cut(end, arena_bytes);
            VIP_DESCRIPTOR* descriptor = end.memory().descriptor(20);
            end.connect("server");
            for (const std::size_t size : sizes()) {
                cut.again(random, size);
                cut.fill(size);
                make_send(descriptor, cut.pieces());
                me.hear<char>("server");
                end.post_send(descriptor);
                EXPECT_EQ(descriptor, end.sent());
            }
            me.meet();
        }
    });
}

VIPL_TEST(Vipl_4_23_rdma_writes_of_all_sizes_arrive_whole_and_nothing_beyond, nothing) {
    test.role("server", [](Role& me) {
        for (const VIP_RELIABILITY_LEVEL level : levels_that_deliver()) {
            Random random(3);
            End end(me, {.level = level, .transfer_max = megabyte, .memory = end_bytes});
            const Piece arena = end.take(arena_bytes);
            VIP_DESCRIPTOR* descriptor = end.memory().descriptor();
            end.accept("client");
            for (const std::size_t size : sizes()) {
                SCOPED_TRACE(testing::Message() << size << " bytes, level " << level);
                const std::size_t at = 1 + random.below(100);
                fill_with(arena.with_length(size + 200), 9);
                make_receive(descriptor, {});
                end.post_receive(descriptor);
                me.tell("client", Target(arena.part(at, size)));
                EXPECT_EQ(descriptor, end.received());
                EXPECT_TRUE(holds_only(arena.with_length(at), 9));
                EXPECT_TRUE(holds(arena.part(at, size), size));
                EXPECT_TRUE(holds_only(arena.part(at + size, 200 - at), 9));
            }
            me.meet();
        }
    });
    test.role("client", [](Role& me) {
        const OneProcessor here;
        for (const VIP_RELIABILITY_LEVEL level : levels_that_deliver()) {
            Random random(4);
            End end(me, {.level = level, .transfer_max = megabyte, .memory = end_bytes});
            Cut cut(end, arena_bytes);
            VIP_DESCRIPTOR* write = end.memory().descriptor(21);
            VIP_DESCRIPTOR* send = end.memory().descriptor();
            end.connect("server");
            for (const std::size_t size : sizes()) {
                cut.again(random, size);
                cut.fill(size);
                make_write(write, me.hear<Target>("server"), cut.pieces());
                make_send(send, {});
                end.post_send(write);
                end.post_send(send);  // its receive says that the write is in place
                EXPECT_EQ(write, end.sent());
                EXPECT_EQ(send, end.sent());
            }
            me.meet();
        }
    });
}

VIPL_TEST(Vipl_4_23_rdma_reads_of_all_sizes_fill_random_segments_and_nothing_beyond, nothing) {
    constexpr VIP_RELIABILITY_LEVEL levels[] = {VIP_SERVICE_RELIABLE_DELIVERY,
                                                VIP_SERVICE_RELIABLE_RECEPTION};
    test.role("server", [=](Role& me) {
        for (const VIP_RELIABILITY_LEVEL level : levels) {
            End end(me, {.level = level, .transfer_max = megabyte, .memory = end_bytes});
            const Piece source = end.filled(arena_bytes, 1);
            end.accept("client");
            me.tell("client", Target(source));
            me.meet();
        }
    });
    test.role("client", [=](Role& me) {
        for (const VIP_RELIABILITY_LEVEL level : levels) {
            Random random(5);
            End end(me, {.level = level, .transfer_max = megabyte, .memory = end_bytes});
            Cut cut(end, arena_bytes);
            VIP_DESCRIPTOR* read = end.memory().descriptor(21);
            end.connect("server");
            const auto source = me.hear<Target>("server");
            for (const std::size_t size : sizes()) {
                SCOPED_TRACE(testing::Message() << size << " bytes, level " << level);
                cut.again(random, size);
                make_read(read, source, cut.pieces());
                end.post_send(read);
                EXPECT_EQ(read, end.sent());
                EXPECT_TRUE(has_status(read, VIP_STATUS_DONE | VIP_STATUS_OP_RDMA_READ));
                EXPECT_TRUE(cut.holds(1, size));
            }
            me.meet();
        }
    });
}

/// Sends `count` messages in the windows that the receiver opens.
void stream_out(Role& me, End& end, std::string_view peer, std::size_t count, std::size_t window) {
    std::vector<VIP_DESCRIPTOR*> descriptors;
    for (std::size_t n = 0; n < window; ++n) {
        descriptors.push_back(end.memory().descriptor());
    }
    const Piece data = end.take(window * 600);
    Random random(6);
    for (std::size_t n = 0; n < count; ++n) {
        if (n % window == 0) me.hear<char>(peer);
        const Piece piece = data.part(n % window * 600, random.below(600));
        fill(piece, n);
        make_send(descriptors[n % window], {&piece, 1}, VIP_CONTROL_IMMEDIATE,
                  static_cast<VIP_UINT32>(n));
        end.post_send(descriptors[n % window]);
        if (n % window != window - 1) continue;
        for (VIP_DESCRIPTOR* descriptor : descriptors) EXPECT_EQ(descriptor, end.sent());
    }
}

void stream_in(Role& me, End& end, std::string_view peer, std::size_t count, std::size_t window) {
    std::vector<VIP_DESCRIPTOR*> descriptors;
    for (std::size_t n = 0; n < window; ++n) descriptors.push_back(end.memory().descriptor());
    const Piece data = end.take(window * 600);
    Random random(6);
    for (std::size_t n = 0; n < count; ++n) {
        if (n % window == 0) {
            for (std::size_t slot = 0; slot < window; ++slot) {
                const Piece piece = data.part(slot * 600, 600);
                make_receive(descriptors[slot], {&piece, 1});
                end.post_receive(descriptors[slot]);
            }
            me.tell(peer, 'w');
        }
        VIP_DESCRIPTOR* descriptor = end.received();
        require(descriptor == descriptors[n % window], "receives end in posting order");
        require(descriptor->CS.ImmediateData == n,
                "message " + std::to_string(descriptor->CS.ImmediateData) + " is number " +
                    std::to_string(n) + ": messages come once and in order");
        const Piece piece = data.part(n % window * 600, random.below(600));
        require(descriptor->CS.Length == piece.length, "the length is the message's");
        EXPECT_TRUE(holds(piece, n));
    }
}

VIPL_TEST(Vipl_4_25_a_long_stream_arrives_exactly_once_in_order_on_every_level, nothing) {
    constexpr std::size_t count = 3200;
    constexpr std::size_t window = 64;
    test.role("server", [](Role& me) {
        for (const VIP_RELIABILITY_LEVEL level : levels_that_deliver()) {
            SCOPED_TRACE(testing::Message() << "level " << level);
            End end(me, {.level = level});
            end.accept("client");
            stream_in(me, end, "client", count, window);
            me.meet();
        }
    });
    test.role("client", [](Role& me) {
        const OneProcessor here;
        for (const VIP_RELIABILITY_LEVEL level : levels_that_deliver()) {
            End end(me, {.level = level});
            end.connect("server");
            stream_out(me, end, "server", count, window);
            me.meet();
        }
    });
}

VIPL_TEST(Vipl_4_23_both_directions_of_several_vis_at_once, nothing) {
    constexpr std::size_t rounds = 100;
    const auto act = [](Role& me, bool accepts, const char* peer) {
        std::vector<std::unique_ptr<End>> ends;
        std::vector<Piece> rooms;
        std::vector<Piece> data;
        for (std::uint64_t n = 0; n < 5; ++n) {
            End& end = *ends.emplace_back(std::make_unique<End>(me));
            rooms.push_back(end.take(20000));
            data.push_back(end.filled(20000, n));
            accepts ? end.accept(peer) : end.connect(peer);
        }
        std::vector<VIP_DESCRIPTOR*> sends;
        std::vector<VIP_DESCRIPTOR*> receives;
        for (auto& end : ends) {
            sends.push_back(end->memory().descriptor());
            receives.push_back(end->memory().descriptor());
        }
        Random random(7);
        for (std::size_t round = 0; round < rounds; ++round) {
            std::size_t lengths[5];
            for (std::size_t n = 0; n < 5; ++n) {
                lengths[n] = random.below(20000);
                make_receive(receives[n], {&rooms[n], 1});
                ends[n]->post_receive(receives[n]);
            }
            me.meet();
            for (std::size_t n = 0; n < 5; ++n) {
                const Piece piece = data[n].with_length(lengths[n]);
                make_send(sends[n], {&piece, 1});
                ends[n]->post_send(sends[n]);
            }
            for (std::size_t n = 0; n < 5; ++n) {
                EXPECT_EQ(receives[n], ends[n]->received());
                EXPECT_EQ(lengths[n], receives[n]->CS.Length);
                EXPECT_TRUE(holds(rooms[n].with_length(lengths[n]), n));
                EXPECT_EQ(sends[n], ends[n]->sent());
            }
        }
        me.meet();
    };
    test.role("server", [=](Role& me) { act(me, true, "client"); });
    test.role("client", [=](Role& me) { act(me, false, "server"); });
}

VIPL_TEST(Vipl_4_23_an_rdma_write_is_in_place_when_the_receive_behind_it_completes, nothing) {
    constexpr int rounds = 200;
    test.role("server", [](Role& me) {
        for (const VIP_RELIABILITY_LEVEL level : levels_that_deliver()) {
            Random random(8);
            End end(me, {.level = level});
            const Piece room = end.take(50000);
            VIP_DESCRIPTOR* descriptor = end.memory().descriptor();
            end.accept("client");
            for (int round = 0; round < rounds; ++round) {
                make_receive(descriptor, {});
                end.post_receive(descriptor);
                me.tell("client", Target(room));
                EXPECT_EQ(descriptor, end.received());
                EXPECT_TRUE(holds(room.with_length(random.below(50000)),
                                  static_cast<std::uint64_t>(round)));
            }
            me.meet();
        }
    });
    test.role("client", [](Role& me) {
        const OneProcessor here;
        for (const VIP_RELIABILITY_LEVEL level : levels_that_deliver()) {
            Random random(8);
            End end(me, {.level = level});
            const Piece data = end.take(50000);
            VIP_DESCRIPTOR* writes[] = {end.memory().descriptor(), end.memory().descriptor()};
            VIP_DESCRIPTOR* send = end.memory().descriptor();
            end.connect("server");
            for (int round = 0; round < rounds; ++round) {
                const Piece piece = data.with_length(random.below(50000));
                const Piece front = piece.with_length(piece.length / 2);
                const Piece back = piece.part(front.length, piece.length - front.length);
                fill(piece, static_cast<std::uint64_t>(round));
                const auto target = me.hear<Target>("server");
                make_write(writes[0], target.at(front.length), {&back, 1});
                make_write(writes[1], target, {&front, 1});
                make_send(send, {});
                for (VIP_DESCRIPTOR* one : {writes[0], writes[1], send}) end.post_send(one);
                for (int n = 0; n < 3; ++n) end.sent();
            }
            me.meet();
        }
    });
}

VIPL_TEST(Vipl_4_23_one_notification_tells_of_many_rdma_writes, nothing) {
    constexpr std::size_t writes = 40;
    constexpr std::size_t size = 600;
    constexpr std::size_t apart = 1000;
    constexpr int rounds = 20;
    test.role("server", [](Role& me) {
        for (const VIP_RELIABILITY_LEVEL level : levels_that_deliver()) {
            End end(me, {.level = level});
            const Piece room = end.take(writes * apart);
            end.accept("client");
            for (int round = 0; round < rounds; ++round) {
                end.receive(Pieces{});
                me.tell("client", Target(room));
                const VIP_DESCRIPTOR* told = end.received();
                EXPECT_EQ(static_cast<VIP_UINT32>(round), told->CS.ImmediateData);
                for (std::size_t n = 0; n < writes; ++n)
                    EXPECT_TRUE(holds(room.part(n * apart, size),
                                      static_cast<std::uint64_t>(round) * writes + n));
            }
            me.meet();
        }
    });
    test.role("client", [](Role& me) {
        for (const VIP_RELIABILITY_LEVEL level : levels_that_deliver()) {
            End end(me, {.level = level});
            const Piece data = end.take(writes * size);
            std::vector<VIP_DESCRIPTOR*> descriptors;
            const std::vector<VIP_MEM_HANDLE> handles(writes, end.memory().handle());
            for (std::size_t n = 0; n < writes; ++n)
                descriptors.push_back(end.memory().descriptor());
            end.connect("server");
            for (int round = 0; round < rounds; ++round) {
                const auto target = me.hear<Target>("server");
                for (std::size_t n = 0; n < writes; ++n) {
                    const Piece piece = data.part(n * size, size);
                    fill(piece, static_cast<std::uint64_t>(round) * writes + n);
                    make_write(descriptors[n], target.at(n * apart), {&piece, 1},
                               n + 1 == writes ? VIP_CONTROL_IMMEDIATE : 0,
                               static_cast<VIP_UINT32>(round));
                }
                VIP_UINT32 posted = 0;
                OK(ViaPostSendMany(end.vi(), descriptors.data(), handles.data(), writes, &posted));
                for (std::size_t n = 0; n < writes; ++n) EXPECT_EQ(descriptors[n], end.sent());
            }
            me.meet();
        }
    });
}

VIPL_TEST(Vipl_4_23_a_fenced_descriptor_starts_after_earlier_reads_completed, nothing) {
    constexpr std::size_t length = 500000;
    test.role("server", [](Role& me) {
        End end(me, {.transfer_max = megabyte, .memory = end_bytes});
        const Piece source = end.take(length);
        VIP_DESCRIPTOR* descriptor = end.memory().descriptor();
        for (std::uint64_t round = 0; round < 20; ++round) {
            fill(source, round);
            make_receive(descriptor, {});
            end.post_receive(descriptor);
            if (round == 0) end.accept("client");
            me.tell("client", Target(source));
            end.received();         // sent behind the fence:
            fill_with(source, 77);  // the read must not see this
            me.meet();
        }
    });
    test.role("client", [](Role& me) {
        End end(me, {.transfer_max = megabyte, .memory = end_bytes});
        const Piece room = end.take(length);
        VIP_DESCRIPTOR* read = end.memory().descriptor();
        VIP_DESCRIPTOR* send = end.memory().descriptor();
        for (std::uint64_t round = 0; round < 20; ++round) {
            if (round == 0) end.connect("server");
            make_read(read, me.hear<Target>("server"), {&room, 1});
            make_send(send, {}, VIP_CONTROL_QFENCE);
            end.post_send(read);
            end.post_send(send);
            EXPECT_EQ(read, end.sent());
            EXPECT_EQ(send, end.sent());
            EXPECT_TRUE(holds(room, round));
            me.meet();
        }
    });
}

VIPL_TEST(Vipl_4_23_a_fenced_write_does_not_overtake_the_read_of_what_it_overwrites, nothing) {
    constexpr std::size_t length = 30000;
    test.role("server", [](Role& me) {
        End end(me);
        const Piece shared = end.filled(length, 0);
        end.accept("client");
        me.tell("client", Target(shared));
        me.meet();
        EXPECT_TRUE(holds(shared, 10));
    });
    test.role("client", [](Role& me) {
        End end(me);
        Piece data[11];
        Piece rooms[11];
        Memory memory(me.nic(), 23 * length);
        for (std::uint64_t n = 0; n <= 10; ++n) {
            data[n] = memory.take(length);
            rooms[n] = memory.take(length);
            fill(data[n], n);
        }
        end.connect("server");
        const auto shared = me.hear<Target>("server");
        for (std::size_t n = 1; n <= 10; ++n) {
            end.read(shared, rooms[n - 1]);
            end.write(shared, data[n], VIP_CONTROL_QFENCE);
        }
        end.read(shared, rooms[10]);
        for (int n = 0; n < 21; ++n) end.sent();
        for (std::uint64_t n = 0; n <= 10; ++n) EXPECT_TRUE(holds(rooms[n], n)) << n;
        me.meet();
    });
}

VIPL_TEST(Vipl_4_23_more_reads_at_once_than_a_nic_may_have_in_flight_all_complete, nothing) {
    test.role("server", [](Role& me) {
        End end(me);
        const Piece source = end.filled(20000, 3);
        end.accept("client");
        me.tell("client", Target(source));
        me.meet();
    });
    test.role("client", [](Role& me) {
        End end(me);
        end.connect("server");
        const auto source = me.hear<Target>("server");
        std::vector<Piece> rooms;
        std::vector<VIP_DESCRIPTOR*> reads;
        for (std::size_t n = 0; n < 100; ++n) {
            rooms.push_back(end.take(n * 10));
            reads.push_back(end.read(source.at(n), rooms[n]));
        }
        for (std::size_t n = 0; n < 100; ++n) {
            EXPECT_EQ(reads[n], end.sent());
            EXPECT_TRUE(holds(rooms[n], 3, n));
        }
        me.meet();
    });
}

// A receive too short -----------------------------------------------------------------------------

VIPL_TEST(Vipl_4_23_a_message_longer_than_its_receive_is_a_length_error_and_writes_nothing_beyond,
          nothing) {
    for (const VIP_RELIABILITY_LEVEL level : levels_that_deliver()) {
        const std::string suffix = std::to_string(level);
        test.role("server" + suffix, [=](Role& me) {
            const std::string client = "client" + suffix;
            for (const std::size_t size : {64U, 5000U, 60000U}) {
                End end(me, {.level = level});
                const Piece room = end.take(size + 64);
                fill_with(room, 9);
                VIP_DESCRIPTOR* tight = end.receive(room.with_length(size - 1));
                end.accept(client);
                EXPECT_EQ(tight, end.received(VIP_DESCRIPTOR_ERROR));
                EXPECT_TRUE(failed_with(tight, VIP_STATUS_LENGTH_ERROR));
                EXPECT_TRUE(holds_only(room.part(size - 1, 65), 9));
                if (level == VIP_SERVICE_UNRELIABLE) {
                    EXPECT_EQ(VIP_STATE_CONNECTED, end.state());
                    end.expect(client, 1);
                } else {
                    EXPECT_EQ(VIP_STATE_ERROR, end.state());
                }
                me.meet_with(client);
            }
        });
        test.role("client" + suffix, [=](Role& me) {
            const std::string server = "server" + suffix;
            for (const std::size_t size : {64U, 5000U, 60000U}) {
                End end(me, {.level = level});
                end.connect(server);
                const VIP_DESCRIPTOR* send = end.send(end.take(size));
                if (level == VIP_SERVICE_UNRELIABLE) {
                    EXPECT_EQ(send, end.sent());
                    end.say(server, 1);
                } else {
                    end.wait_state(VIP_STATE_ERROR);
                    if (level == VIP_SERVICE_RELIABLE_RECEPTION) {
                        EXPECT_EQ(send, end.sent(VIP_DESCRIPTOR_ERROR));
                        EXPECT_TRUE(failed_with(send, VIP_STATUS_REMOTE_DESC_ERROR));
                    }
                }
                me.meet_with(server);
            }
        });
    }
}

}  // namespace
}  // namespace conformance::delivery_test
