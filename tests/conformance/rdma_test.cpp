// RDMA: rights, visibility, progress without the target's help (VIPL 4.10, 4.11, 4.24, 4.25).
#include <cstring>
#include <optional>

#include "harness/end.hpp"
#include "harness/random.hpp"

namespace conformance::rdma_test {
namespace {

/// A word of plain memory as a polling program reads it.
template <class Word>
Word look(const std::byte* at) {
    return __atomic_load_n(reinterpret_cast<const Word*>(at), __ATOMIC_ACQUIRE);
}

VIPL_TEST(Vipl_4_24_a_program_polls_the_last_word_of_an_rdma_write_in_plain_memory, polls_memory) {
    static constexpr std::size_t sizes[] = {8, 16, 64, 72, 256, 4096, 65536};
    constexpr VIP_UINT64 rounds = 300;
    test.role("target", [](Role& me) {
        End end(me);
        end.accept("writer");
        for (const std::size_t size : sizes) {
            const Piece room = end.take(size);
            fill_with(room, 0);
            me.tell("writer", Target(room));
            for (VIP_UINT64 round = 1; round <= rounds; ++round) {
                // From here to the answer nothing of the library is called.
                me.until([&] { return look<VIP_UINT64>(room.data + size - 8) == round; },
                         "the last word of the RDMA write shows");
                for (std::size_t at = 0; at < size; at += 8)
                    require(look<VIP_UINT64>(room.data + at) == round,
                            "lower addresses are visible no later than the tail");
                me.tell("writer", round);
            }
        }
    });
    test.role("writer", [](Role& me) {
        End end(me);
        end.connect("target");
        VIP_DESCRIPTOR* write = end.memory().descriptor();
        const Piece data = end.take(65536);
        for (const std::size_t size : sizes) {
            const auto target = me.hear<Target>("target");
            const Piece piece = data.with_length(size);
            for (VIP_UINT64 round = 1; round <= rounds; ++round) {
                for (std::size_t at = 0; at < size; at += 8)
                    std::memcpy(piece.data + at, &round, 8);
                make_write(write, target, {&piece, 1});
                end.post_send(write);
                EXPECT_EQ(write, end.sent());
                require(me.hear<VIP_UINT64>("target") == round, "the target has seen it");
            }
        }
    });
}

VIPL_TEST(Vipl_4_24_aligned_words_never_tear, polls_memory) {
    constexpr std::size_t size = 4096;
    constexpr int rounds = 500;
    test.role("target", [](Role& me) {
        End end(me);
        const Piece room = end.take(size);
        fill_with(room, 0);
        const Piece last = end.take(8);
        fill_with(last, 0);
        end.accept("writer");
        me.tell("writer", Target(room));
        me.tell("writer", Target(last));
        Random random(1);
        unsigned long looks = 0;
        me.until(
            [&] {
                for (int n = 0; n < 100; ++n, ++looks) {
                    const auto wide = look<VIP_UINT64>(room.data + random.below(size / 8) * 8);
                    require(wide % 0x0101010101010101 == 0, "eight aligned bytes do not tear");
                    const auto narrow = look<VIP_UINT32>(room.data + random.below(size / 4) * 4);
                    require(narrow % 0x01010101 == 0, "four aligned bytes do not tear");
                }
                return look<VIP_UINT64>(last.data) != 0;
            },
            "the writer has finished");
        EXPECT_GT(looks, 0U);
        me.meet();
    });
    test.role("writer", [](Role& me) {
        End end(me);
        const Piece data = end.take(size);
        const Piece one = end.filled(8, 1);
        VIP_DESCRIPTOR* write = end.memory().descriptor();
        end.connect("target");
        const auto room = me.hear<Target>("target");
        const auto last = me.hear<Target>("target");
        for (int round = 0; round < rounds; ++round) {
            fill_with(data, round % 255 + 1);
            make_write(write, room, {&data, 1});
            end.post_send(write);
            EXPECT_EQ(write, end.sent());
        }
        end.write(last, one);
        end.sent();
        me.meet();
    });
}

VIPL_TEST(Vipl_4_24_rdma_needs_no_call_by_the_targets_program, nothing) {
    test.role("target", [](Role& me) {
        End end(me);
        const Piece room = end.filled(50000, 1);
        end.accept("other");
        me.tell("other", Target(room));
        me.hear<char>("other");  // sits outside of the library until all is done
        EXPECT_TRUE(holds(room, 2));
    });
    test.role("other", [](Role& me) {
        End end(me);
        end.connect("target");
        const auto target = me.hear<Target>("target");
        const Piece before = end.take(50000);
        const Piece after = end.take(50000);
        end.read(target, before);
        end.write(target, end.filled(50000, 2), VIP_CONTROL_QFENCE);
        end.read(target, after);
        for (int n = 0; n < 3; ++n) end.sent();
        EXPECT_TRUE(holds(before, 1));
        EXPECT_TRUE(holds(after, 2));
        me.tell("target", 'd');
        me.wait_for_end_of("target");
    });
}

VIPL_TEST(Vipl_4_11_a_completed_rdma_read_and_write_say_so_in_their_status, nothing) {
    test.role("target", [](Role& me) {
        End end(me);
        end.accept("other");
        me.tell("other", Target(end.take(100)));
        me.meet();
    });
    test.role("other", [](Role& me) {
        End end(me);
        end.connect("target");
        const auto target = me.hear<Target>("target");
        const VIP_DESCRIPTOR* write = end.write(target, end.take(100));
        const VIP_DESCRIPTOR* read = end.read(target, end.take(100));
        EXPECT_EQ(write, end.sent());
        EXPECT_EQ(read, end.sent());
        EXPECT_TRUE(has_status(write, VIP_STATUS_DONE | VIP_STATUS_OP_RDMA_WRITE));
        EXPECT_TRUE(has_status(read, VIP_STATUS_DONE | VIP_STATUS_OP_RDMA_READ));
        EXPECT_EQ(100U, write->CS.Length);
        EXPECT_EQ(100U, read->CS.Length);
        me.meet();
    });
}

VIPL_TEST(Vipl_4_10_rdma_of_no_bytes_is_complete_without_a_target, nothing) {
    test.role("target", [](Role& me) {
        End end(me);
        end.accept("other");
        me.tell("other", Target(end.take(100)));
        end.expect("other", 1);
    });
    test.role("other", [](Role& me) {
        End end(me);
        end.connect("target");
        const auto target = me.hear<Target>("target");
        end.write(target, Pieces{});
        end.read(target, Pieces{});
        end.sent();
        end.sent();
        end.say("target", 1);
        me.wait_for_end_of("target");
    });
}

VIPL_TEST(Vipl_4_10_rdma_read_on_an_unreliable_vi_is_an_error_of_the_descriptor, nothing) {
    test.role("target", [](Role& me) {
        End end(me, {.level = VIP_SERVICE_UNRELIABLE});
        end.accept("other");
        me.tell("other", Target(end.take(100)));
        end.expect("other", 1);
    });
    test.role("other", [](Role& me) {
        End end(me, {.level = VIP_SERVICE_UNRELIABLE});
        end.connect("target");
        const VIP_DESCRIPTOR* read = end.read(me.hear<Target>("target"), end.take(100));
        EXPECT_EQ(read, end.sent(VIP_DESCRIPTOR_ERROR));
        EXPECT_TRUE(failed_with(read, VIP_STATUS_ERROR_MASK));
        end.say("target", 1);
        me.wait_for_end_of("target");
    });
}

// Targets that are refused ------------------------------------------------------------------------

/// Whose tags they are that VI and region carry (VIPL 4.7).
enum class Tags { none, on_the_vi_only, different };
/// The region that the handle names.
enum class Names { the_region, one_that_is_gone, one_of_another_nic };

/// A target of 64 bytes, from 100 in a region of 200, bent so that it must not be reached.
struct Refusal {
    const char* name;
    bool vi_allows = true;      ///< the operation in question; the other one is allowed
    bool region_allows = true;  ///< the same
    void (*bend)(Target&) = [](Target&) {};
    Tags tags = Tags::none;
    Names names = Names::the_region;
};

const Refusal refusals[] = {
    {.name = "the VI does not allow it", .vi_allows = false},
    {.name = "the region does not allow it", .region_allows = false},
    {.name = "it begins one byte before the region", .bend = [](Target& t) { t.address -= 101; }},
    {.name = "it ends one byte behind the region", .bend = [](Target& t) { t.address += 37; }},
    {.name = "it is elsewhere", .bend = [](Target& t) { t.address = 4096; }},
    {.name = "it wraps round", .bend = [](Target& t) { t.address = ~VIP_UINT64{0} - 20; }},
    {.name = "it ends with the last address", .bend = [](Target& t) { t.address = 0 - 64ULL; }},
    {.name = "the handle is 0", .bend = [](Target& t) { t.handle = 0; }},
    {.name = "the handle is invented", .bend = [](Target& t) { t.handle ^= 0x00800000; }},
    {.name = "the handle has bit 31", .bend = [](Target& t) { t.handle |= 0x80000000; }},
    {.name = "only the VI has a tag", .tags = Tags::on_the_vi_only},
    {.name = "the region has another tag", .tags = Tags::different},
    {.name = "the handle is of a region that is gone", .names = Names::one_that_is_gone},
    {.name = "the handle is another NIC's", .names = Names::one_of_another_nic},
};

enum class Operation { write, read };

/// Registers the bytes of `all` in a way that gives the peer nothing; keeps what that needs.
class Useless {
public:
    Useless(Role& me, const Piece& all, Names names) : nic_(me.nic()), all_(all) {
        if (names == Names::one_that_is_gone) {
            handle_ = enter(nic_);
            OK(VipDeregisterMem(nic_.handle(), all_.data, handle_));
        } else {
            other_.emplace(me.device_name());
            // Its handles are numbered by itself: the same number here may mean the region.
            do handle_ = enter(*other_);
            while (handle_ == all.handle);
        }
    }
    VIP_MEM_HANDLE handle() const { return handle_; }

private:
    VIP_MEM_HANDLE enter(Nic& nic) const {
        VIP_MEM_ATTRIBUTES attributes = rights(true, true);
        VIP_MEM_HANDLE handle = 0;
        OK(VipRegisterMem(nic.handle(), all_.data, all_.length, &attributes, &handle));
        return handle;
    }

    Nic& nic_;
    Piece all_;
    std::optional<Nic> other_;  ///< closing it ends its registrations
    VIP_MEM_HANDLE handle_ = 0;
};

/// Offers one target on a connection of its own, and sees that nothing happened to it, that the
/// right error was told, and whether the connection broke.
void offer(Role& me, VIP_RELIABILITY_LEVEL level, Operation operation, const Refusal& refusal) {
    const bool writes = operation == Operation::write;
    const Tag of_vi(me.nic());
    const Tag of_region(me.nic());
    End end(me, {.level = level,
                 .rdma_write = refusal.vi_allows || !writes,
                 .rdma_read = refusal.vi_allows || writes,
                 .tag = refusal.tags == Tags::none ? nullptr : of_vi.handle()});
    Memory region(me.nic(), 200,
                  rights(refusal.region_allows || !writes, refusal.region_allows || writes,
                         refusal.tags == Tags::different ? of_region.handle() : nullptr));
    const Piece all = region.take(200, 1);
    fill_with(all, 9);
    std::optional<Useless> useless;
    if (refusal.names != Names::the_region) useless.emplace(me, all, refusal.names);
    Target target(all.part(100, 64).with_handle(useless ? useless->handle() : all.handle));
    refusal.bend(target);
    end.accept("other");
    me.tell("other", target);
    if (level == VIP_SERVICE_UNRELIABLE) {
        end.expect("other", 1);
        EXPECT_EQ(VIP_STATE_CONNECTED, end.state());
    } else {
        end.wait_state(VIP_STATE_ERROR);
    }
    me.nic().wait_error(me, end.vi(), writes ? VIP_ERROR_RDMAW_PROT : VIP_ERROR_RDMAR_PROT);
    EXPECT_TRUE(holds_only(all, 9));
    me.meet();
}

/// The target's role: each of them in turn.
void offer(Role& me, VIP_RELIABILITY_LEVEL level, Operation operation) {
    for (const Refusal& refusal : refusals) {
        SCOPED_TRACE(refusal.name);
        offer(me, level, operation, refusal);
    }
}

VIPL_TEST(Vipl_4_25_a_refused_rdma_write_on_an_unreliable_vi_is_dropped, nothing) {
    test.role("target", [](Role& me) { offer(me, VIP_SERVICE_UNRELIABLE, Operation::write); });
    test.role("other", [](Role& me) {
        for (const Refusal& refusal : refusals) {
            SCOPED_TRACE(refusal.name);
            End end(me, {.level = VIP_SERVICE_UNRELIABLE});
            end.connect("target");
            end.write(me.hear<Target>("target"), end.filled(64, 1));
            EXPECT_TRUE(has_status(end.sent(), VIP_STATUS_DONE | VIP_STATUS_OP_RDMA_WRITE));
            end.say("target", 1);
            EXPECT_EQ(VIP_STATE_CONNECTED, end.state());
            me.meet();
        }
    });
}

VIPL_TEST(Vipl_4_25_a_refused_rdma_write_with_reliable_reception_fails_the_senders_own_descriptor,
          nothing) {
    test.role("target",
              [](Role& me) { offer(me, VIP_SERVICE_RELIABLE_RECEPTION, Operation::write); });
    test.role("other", [](Role& me) {
        for (const Refusal& refusal : refusals) {
            SCOPED_TRACE(refusal.name);
            End end(me, {.level = VIP_SERVICE_RELIABLE_RECEPTION});
            end.connect("target");
            const auto target = me.hear<Target>("target");
            const VIP_DESCRIPTOR* write = end.write(target, end.filled(64, 1));
            const VIP_DESCRIPTOR* behind = end.send(Pieces{});
            EXPECT_EQ(write, end.sent(VIP_DESCRIPTOR_ERROR));
            EXPECT_TRUE(has_status(
                write, VIP_STATUS_DONE | VIP_STATUS_RDMA_PROT_ERROR | VIP_STATUS_OP_RDMA_WRITE));
            EXPECT_EQ(behind, end.sent(VIP_DESCRIPTOR_ERROR));
            EXPECT_TRUE(flushed(behind));
            EXPECT_EQ(VIP_STATE_ERROR, end.state());
            me.meet();
        }
    });
}

VIPL_TEST(Vipl_4_25_a_refused_rdma_write_with_reliable_delivery_breaks_the_connection, nothing) {
    test.role("target",
              [](Role& me) { offer(me, VIP_SERVICE_RELIABLE_DELIVERY, Operation::write); });
    test.role("other", [](Role& me) {
        for (const Refusal& refusal : refusals) {
            SCOPED_TRACE(refusal.name);
            End end(me);
            end.connect("target");
            const VIP_DESCRIPTOR* write = end.write(me.hear<Target>("target"), end.filled(64, 1));
            end.wait_state(VIP_STATE_ERROR);
            const auto [code, taken] = end.send_outcome();
            EXPECT_EQ(write, taken);
            if (code != VIP_SUCCESS)  // it was not yet done when the error came
                EXPECT_TRUE(failed_with(write, VIP_STATUS_RDMA_PROT_ERROR));
            else
                me.nic().wait_error(me, end.vi(), VIP_ERROR_CONN_LOST);
            me.meet();
        }
    });
}

VIPL_TEST(Vipl_4_25_a_refused_rdma_read_fails_its_descriptor_and_breaks_the_connection, nothing) {
    // Roles of both levels, one after the other.
    constexpr VIP_RELIABILITY_LEVEL levels[] = {VIP_SERVICE_RELIABLE_DELIVERY,
                                                VIP_SERVICE_RELIABLE_RECEPTION};
    test.role("target", [=](Role& me) {
        for (const VIP_RELIABILITY_LEVEL level : levels) offer(me, level, Operation::read);
    });
    test.role("other", [=](Role& me) {
        for (const VIP_RELIABILITY_LEVEL level : levels) {
            for (const Refusal& refusal : refusals) {
                SCOPED_TRACE(refusal.name);
                End end(me, {.level = level});
                const Piece room = end.take(64);
                fill_with(room, 5);
                end.connect("target");
                const VIP_DESCRIPTOR* read = end.read(me.hear<Target>("target"), room);
                EXPECT_EQ(read, end.sent(VIP_DESCRIPTOR_ERROR));
                EXPECT_TRUE(has_status(
                    read, VIP_STATUS_DONE | VIP_STATUS_RDMA_PROT_ERROR | VIP_STATUS_OP_RDMA_READ));
                EXPECT_TRUE(holds_only(room, 5));
                EXPECT_EQ(VIP_STATE_ERROR, end.state());
                me.meet();
            }
        }
    });
}

VIPL_TEST(Vipl_4_6_rdma_rights_of_vi_and_region_are_for_writing_and_reading_apart, nothing) {
    test.role("target", [](Role& me) {
        End end(me);
        Memory writable(me.nic(), 64, rights(true, false));
        Memory readable(me.nic(), 64, rights(false, true));
        const Piece in = writable.take(64);
        const Piece out = readable.take(64);
        fill(out, 4);
        end.accept("other");
        me.tell("other", Target(in));
        me.tell("other", Target(out));
        end.expect("other", 1);
        EXPECT_TRUE(holds(in, 3));
        me.meet();
        end.wait_state(VIP_STATE_ERROR);
        me.nic().wait_error(me, end.vi(), VIP_ERROR_RDMAR_PROT);
        me.meet();
    });
    test.role("other", [](Role& me) {
        End end(me);
        end.connect("target");
        const auto in = me.hear<Target>("target");
        const auto out = me.hear<Target>("target");
        end.write(in, end.filled(64, 3));
        const Piece room = end.take(64);
        end.read(out, room);
        end.sent();
        end.sent();
        EXPECT_TRUE(holds(room, 4));
        end.say("target", 1);
        me.meet();
        end.read(in, room);
        end.sent(VIP_DESCRIPTOR_ERROR);
        me.meet();
    });
}

}  // namespace
}  // namespace conformance::rdma_test
