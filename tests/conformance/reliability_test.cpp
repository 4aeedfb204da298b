// The table of 4.25, cell by cell. What is refused of RDMA stands in rdma_test.cpp, long streams in
// delivery_test.cpp.
#include "harness/end.hpp"

namespace conformance::reliability_test {
namespace {

VIPL_TEST(Vipl_4_25_reliable_reception_is_done_when_placed_in_remote_memory, nothing) {
    test.role("receiver", [](Role& me) {
        End end(me, {.level = VIP_SERVICE_RELIABLE_RECEPTION});
        const Piece room = end.take(50000);
        const Piece target = end.take(50000);
        for (std::uint64_t round = 0; round < 50; ++round) {
            VIP_DESCRIPTOR* descriptor = end.receive(room);
            if (round == 0) end.accept("sender");
            me.tell("sender", Target(target));
            me.hear<char>("sender");  // its sends are done
            // No call of the library in between.
            EXPECT_TRUE(holds(room, round));
            EXPECT_TRUE(holds(target, round + 1000));
            EXPECT_EQ(descriptor, end.received());
        }
    });
    test.role("sender", [](Role& me) {
        End end(me, {.level = VIP_SERVICE_RELIABLE_RECEPTION});
        const Piece message = end.take(50000);
        const Piece write = end.take(50000);
        for (std::uint64_t round = 0; round < 50; ++round) {
            if (round == 0) end.connect("receiver");
            const auto target = me.hear<Target>("receiver");
            fill(message, round);
            fill(write, round + 1000);
            end.send(message);
            end.write(target, write);
            end.sent();
            end.sent();
            me.tell("receiver", 'd');
        }
        me.wait_for_end_of("receiver");
    });
}

VIPL_TEST(Vipl_4_25_what_is_done_arrives_even_if_the_sender_parts_at_once, nothing) {
    for (const VIP_RELIABILITY_LEVEL level : levels_that_deliver()) {
        const std::string suffix = std::to_string(level);
        test.role("receiver" + suffix, [=](Role& me) {
            for (std::uint64_t round = 0; round < 20; ++round) {
                End end(me, {.level = level});
                Piece rooms[10];
                for (Piece& room : rooms) end.receive(room = end.take(3000));
                end.accept("sender" + suffix);
                for (std::uint64_t n = 0; n < 10; ++n) {
                    EXPECT_EQ(3000U, end.received()->CS.Length);
                    EXPECT_TRUE(holds(rooms[n], round * 10 + n));
                }
                me.nic().wait_error(me, end.vi(), VIP_ERROR_CONN_LOST);
            }
        });
        test.role("sender" + suffix, [=](Role& me) {
            for (std::uint64_t round = 0; round < 20; ++round) {
                End end(me, {.level = level});
                end.connect("receiver" + suffix);
                for (std::uint64_t n = 0; n < 10; ++n) end.send(end.filled(3000, round * 10 + n));
                for (int n = 0; n < 10; ++n) end.sent();
                end.disconnect();
            }
            me.wait_for_end_of("receiver" + suffix);
        });
    }
}

VIPL_TEST(Vipl_4_25_unreliable_loses_nothing_on_an_idle_network, nothing) {
    constexpr int messages = 1000;
    test.role("receiver", [](Role& me) {
        End end(me, {.level = VIP_SERVICE_UNRELIABLE});
        const Piece room = end.take(64);
        for (int n = 0; n < messages; ++n) end.receive(room);
        end.accept("sender");
        for (VIP_UINT32 n = 0; n < messages; ++n)
            require(end.received()->CS.ImmediateData == n, "every message comes, in order");
        me.meet();
    });
    test.role("sender", [](Role& me) {
        End end(me, {.level = VIP_SERVICE_UNRELIABLE});
        end.connect("receiver");
        VIP_DESCRIPTOR* descriptors[50];
        for (VIP_DESCRIPTOR*& descriptor : descriptors) descriptor = end.memory().descriptor();
        const Piece data = end.take(64);
        for (VIP_UINT32 n = 0; n < messages; ++n) {
            VIP_DESCRIPTOR* descriptor = descriptors[n % 50];
            if (n >= 50) require(end.sent() == descriptor, "sends end in order");
            make_send(descriptor, {&data, 1}, VIP_CONTROL_IMMEDIATE, n);
            end.post_send(descriptor);
        }
        for (int n = 0; n < 50; ++n) end.sent();
        me.meet();
    });
}

// No receive posted -------------------------------------------------------------------------------

VIPL_TEST(Vipl_4_25_unreliable_without_receive_drops_the_message_and_stays_connected,
          polls_memory) {
    test.role("receiver", [](Role& me) {
        End end(me, {.level = VIP_SERVICE_UNRELIABLE});
        const Piece mark = end.take(4);
        end.accept("sender");
        me.tell("sender", Target(mark));
        const auto* byte = reinterpret_cast<const unsigned char*>(mark.data);
        me.until([=] { return __atomic_load_n(byte, __ATOMIC_ACQUIRE) != 0; },
                 "what was written behind the messages shows");
        const VIP_ERROR_DESCRIPTOR error = me.nic().wait_error(me, end.vi(), VIP_ERROR_RECVQ_EMPTY);
        EXPECT_EQ(VIP_RESOURCE_VI, error.ResourceCode);
        EXPECT_EQ(VIP_STATE_CONNECTED, end.state());
        end.expect("sender", 1);  // and not one of those that were dropped
        me.meet();
    });
    test.role("sender", [](Role& me) {
        End end(me, {.level = VIP_SERVICE_UNRELIABLE});
        end.connect("receiver");
        for (const std::size_t size : {4U, 4U, 20000U}) {
            const VIP_DESCRIPTOR* send = end.send(end.take(size));
            EXPECT_EQ(send, end.sent());
            EXPECT_TRUE(has_status(send, VIP_STATUS_DONE));
        }
        end.write(me.hear<Target>("receiver"), end.filled(4, 1));
        end.sent();
        EXPECT_EQ(VIP_STATE_CONNECTED, end.state());
        end.say("receiver", 1);
        me.meet();
    });
}

void receive_nothing(Role& me, VIP_RELIABILITY_LEVEL level) {
    End end(me, {.level = level});
    end.accept("sender");
    me.nic().wait_error(me, end.vi(), VIP_ERROR_RECVQ_EMPTY);
    end.wait_state(VIP_STATE_ERROR);
    me.meet();
}

VIPL_TEST(Vipl_4_25_reliable_reception_without_receive_fails_the_senders_own_descriptor, nothing) {
    test.role("receiver", [](Role& me) { receive_nothing(me, VIP_SERVICE_RELIABLE_RECEPTION); });
    test.role("sender", [](Role& me) {
        End end(me, {.level = VIP_SERVICE_RELIABLE_RECEPTION});
        end.connect("receiver");
        const VIP_DESCRIPTOR* guilty = end.send(end.take(8));
        const VIP_DESCRIPTOR* behind = end.send(end.take(8));
        EXPECT_EQ(guilty, end.sent(VIP_DESCRIPTOR_ERROR));
        EXPECT_TRUE(has_status(guilty, VIP_STATUS_DONE | VIP_STATUS_REMOTE_DESC_ERROR));
        EXPECT_EQ(behind, end.sent(VIP_DESCRIPTOR_ERROR));
        EXPECT_TRUE(flushed(behind));
        EXPECT_EQ(VIP_STATE_ERROR, end.state());
        me.meet();
    });
}

VIPL_TEST(Vipl_4_25_reliable_reception_fails_the_second_of_two_when_one_receive_is_posted,
          nothing) {
    test.role("receiver", [](Role& me) {
        End end(me, {.level = VIP_SERVICE_RELIABLE_RECEPTION});
        end.receive(end.take(8));
        end.accept("sender");
        end.received();
        end.wait_state(VIP_STATE_ERROR);
        me.meet();
    });
    test.role("sender", [](Role& me) {
        End end(me, {.level = VIP_SERVICE_RELIABLE_RECEPTION});
        end.connect("receiver");
        const VIP_DESCRIPTOR* good = end.send(end.take(8));
        const VIP_DESCRIPTOR* guilty = end.write({}, Pieces{}, VIP_CONTROL_IMMEDIATE, 5);
        EXPECT_EQ(good, end.sent());
        EXPECT_EQ(guilty, end.sent(VIP_DESCRIPTOR_ERROR));
        EXPECT_TRUE(has_status(
            guilty, VIP_STATUS_DONE | VIP_STATUS_REMOTE_DESC_ERROR | VIP_STATUS_OP_RDMA_WRITE));
        me.meet();
    });
}

/// The faulty receive ends the connection, but not before the sender's first message counts.
VIPL_TEST(Vipl_4_25_reliable_reception_is_done_for_what_came_before_a_faulty_receive, nothing) {
    static constexpr std::size_t sizes[] = {8, 65536};
    test.role("receiver", [](Role& me) {
        for (const std::size_t size : sizes) {
            End end(me, {.level = VIP_SERVICE_RELIABLE_RECEPTION, .memory = 1 << 20});
            const VIP_DESCRIPTOR* good = end.receive(end.take(size));
            VIP_DESCRIPTOR* faulty = end.memory().descriptor();
            make_receive(faulty, {});
            faulty->CS.Control |= 0x10;
            end.post_receive(faulty);
            const VIP_DESCRIPTOR* behind = end.receive(end.take(size));
            end.accept("sender");
            EXPECT_EQ(good, end.received());
            EXPECT_EQ(faulty, end.received(VIP_DESCRIPTOR_ERROR));
            EXPECT_TRUE(failed_with(faulty, VIP_STATUS_FORMAT_ERROR));
            EXPECT_EQ(behind, end.received(VIP_DESCRIPTOR_ERROR));
            EXPECT_TRUE(flushed(behind));
            EXPECT_EQ(VIP_STATE_ERROR, end.state());
            me.meet();
        }
    });
    test.role("sender", [](Role& me) {
        for (const std::size_t size : sizes) {
            End end(me, {.level = VIP_SERVICE_RELIABLE_RECEPTION, .memory = 1 << 20});
            end.connect("receiver");
            const VIP_DESCRIPTOR* taken = end.send(end.take(size));
            EXPECT_EQ(taken, end.sent());
            EXPECT_TRUE(has_status(taken, VIP_STATUS_DONE));
            end.wait_state(VIP_STATE_ERROR);
            me.nic().wait_error(me, end.vi(), VIP_ERROR_CONN_LOST);
            me.meet();
        }
    });
}

VIPL_TEST(Vipl_4_25_reliable_delivery_without_receive_breaks_both_ends, nothing) {
    test.role("receiver", [](Role& me) { receive_nothing(me, VIP_SERVICE_RELIABLE_DELIVERY); });
    test.role("sender", [](Role& me) {
        End end(me);
        end.connect("receiver");
        const VIP_DESCRIPTOR* send = end.send(end.take(8));
        end.wait_state(VIP_STATE_ERROR);
        const auto [code, taken] = end.send_outcome();
        EXPECT_EQ(send, taken);
        if (code != VIP_SUCCESS)  // it was not yet done when the error came
            EXPECT_TRUE(failed_with(send, VIP_STATUS_REMOTE_DESC_ERROR));
        else
            me.nic().wait_error(me, end.vi(), VIP_ERROR_CONN_LOST);
        me.meet();
    });
}

VIPL_TEST(Vipl_4_25_reliable_delivery_tells_the_error_at_most_once_and_flushes_the_rest, nothing) {
    test.role("receiver", [](Role& me) { receive_nothing(me, VIP_SERVICE_RELIABLE_DELIVERY); });
    test.role("sender", [](Role& me) {
        End end(me);
        end.connect("receiver");
        std::vector<VIP_DESCRIPTOR*> posted;
        for (int n = 0; n < 100; ++n) posted.push_back(end.send(end.take(100)));
        end.wait_state(VIP_STATE_ERROR);
        int errors = 0;
        bool broken = false;
        for (const VIP_DESCRIPTOR* descriptor : posted) {
            const auto [code, taken] = end.send_outcome();
            EXPECT_EQ(descriptor, taken);
            EXPECT_FALSE(broken && code == VIP_SUCCESS) << "a clean one behind one that failed";
            if (code == VIP_SUCCESS) continue;
            broken = true;
            if (flushed(descriptor)) continue;
            ++errors;
            EXPECT_TRUE(
                failed_with(descriptor, VIP_STATUS_REMOTE_DESC_ERROR | VIP_STATUS_TRANSPORT_ERROR));
        }
        EXPECT_LE(errors, 1);
        me.meet();
    });
}

VIPL_TEST(Vipl_4_25_rdma_write_with_immediate_needs_a_receive_too, nothing) {
    test.role("receiver", [](Role& me) {
        for (const VIP_RELIABILITY_LEVEL level : levels_that_deliver()) {
            End end(me, {.level = level});
            const Piece room = end.take(8);
            end.accept("sender");
            me.tell("sender", Target(room));
            me.nic().wait_error(me, end.vi(), VIP_ERROR_RECVQ_EMPTY);
            if (level == VIP_SERVICE_UNRELIABLE) {
                end.expect("sender", 1);
            } else {
                end.wait_state(VIP_STATE_ERROR);
            }
            me.meet();
        }
    });
    test.role("sender", [](Role& me) {
        for (const VIP_RELIABILITY_LEVEL level : levels_that_deliver()) {
            End end(me, {.level = level});
            end.connect("receiver");
            end.write(me.hear<Target>("receiver"), end.take(8), VIP_CONTROL_IMMEDIATE, 1);
            if (level == VIP_SERVICE_UNRELIABLE) {
                end.sent();
                end.say("receiver", 1);
            } else {
                end.wait_state(VIP_STATE_ERROR);
            }
            me.meet();
        }
    });
}

}  // namespace
}  // namespace conformance::reliability_test
