// A region's end against RDMA that is running (VIPL 4.8), very often: VIA_RACE_ROUNDS says how
// often (20000). Nothing here looks at memory while a NIC may touch it, so that the sanitizers,
// under which both ends are threads of one process, judge every access.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "harness/end.hpp"
#include "harness/random.hpp"
#include "harness/stage.hpp"

namespace conformance::deregister_test {
namespace {

/// How many regions are to end. Turns of simulated nodes cost more and race less.
std::size_t race_rounds(Role& me) {
    const char* text = std::getenv("VIA_RACE_ROUNDS");
    const std::size_t rounds = text != nullptr ? std::strtoul(text, nullptr, 10) : 20000;
    return me.stage().by_turns() ? rounds / 20 : rounds;
}

constexpr std::size_t batch = 64;  ///< regions that are given out at once
constexpr std::size_t room_max = 60000;
constexpr std::byte fresh{0xA5};   ///< of memory that is registered now
constexpr std::byte poison{0x3C};  ///< of memory that the program uses for something else
constexpr std::byte written{0x77};

struct Place {
    Target target;
    VIP_UINT32 length = 0;
};
/// Where the peer is to go. No places: nowhere any more.
struct Order {
    std::size_t places = 0;
    std::array<Place, batch> place{};
};

bool all_are(const Piece& piece, std::byte byte) {
    return piece.length == 0 || (piece.data[0] == byte &&
                                 std::memcmp(piece.data, piece.data + 1, piece.length - 1) == 0);
}
void make_all(const Piece& piece, std::byte byte) {
    std::memset(piece.data, std::to_integer<int>(byte), piece.length);
}

/// Memory that is given out and taken back; what was taken back is poisoned and stays so.
class Rooms {
public:
    explicit Rooms(Nic& nic) : nic_(nic) {}

    /// Regions of lengths by chance; their memory must be as it was left.
    Order give_out(Random& random, std::size_t regions) {
        Order order;
        for (std::size_t index = 0; index < batch; ++index) {
            Piece& room = room_[index];
            require(all_are(room, poison), "no byte changes after VipDeregisterMem has returned");
            if (index >= regions) continue;
            const std::size_t drawn = random.below(100);
            const std::size_t longest = drawn < 2 ? room_max : drawn < 20 ? 4096 : 64;
            const auto length = static_cast<VIP_UINT32>(1 + random.below(longest));
            room = {memory_.data() + index * room_max, length, 0};
            make_all(room, fresh);
            VIP_MEM_ATTRIBUTES attributes = rights(true, true);
            must(VipRegisterMem(nic_.handle(), room.data, length, &attributes, &room.handle),
                 "VipRegisterMem");
            order.place[order.places++] = {Target(room), length};
        }
        return order;
    }
    /// Was anything written to it before? From here on nothing is.
    bool take_back(std::size_t index) {
        const Piece& room = room_[index];
        must(VipDeregisterMem(nic_.handle(), room.data, room.handle), "VipDeregisterMem");
        const bool touched = !all_are(room, fresh);
        make_all(room, poison);
        return touched;
    }

private:
    Nic& nic_;
    std::array<Piece, batch> room_{};
    std::vector<std::byte> memory_ = std::vector<std::byte>(batch * room_max);
};

/// Turns the NIC in a thread of its own, so that frames are taken while the owner does its calls.
class Turner {
public:
    Turner(Role& me, VIP_VI_HANDLE vi)
        : thread_(me, [this, &me, vi] {
              while (!over_) {
                  VIP_DESCRIPTOR* none = nullptr;
                  VipRecvDone(vi, &none);  // not done; so it looks for what came
                  me.pause();
              }
          }) {}
    ~Turner() {
        over_ = true;
        thread_.join();
    }

private:
    std::atomic<bool> over_{false};
    Thread thread_;
};

void count_refusals(VIP_PVOID context, VIP_ERROR_DESCRIPTOR* error) {
    if (error->ErrorCode == VIP_ERROR_RDMAW_PROT)
        ++*static_cast<std::atomic<std::uint32_t>*>(context);
}

/// Lets the peer's frames come, for a moment of a length by chance.
void linger(Role& me, VIP_VI_HANDLE vi, Random& random) {
    for (std::size_t times = random.below(20); times != 0; --times) {
        VIP_DESCRIPTOR* none = nullptr;
        VipRecvDone(vi, &none);
        if (me.stage().by_turns()) me.pause();
    }
}

void end_regions_in_writes(Role& me) {
    std::atomic<std::uint32_t> refused{0};
    OK(VipErrorCallback(me.nic().handle(), &refused, count_refusals));
    std::size_t hit = 0;
    {
        End end(me, {.level = VIP_SERVICE_UNRELIABLE});
        end.accept("peer");
        end.receive(end.take(8));
        Rooms rooms(me.nic());
        Random random(1);
        const Turner turner(me, end.vi());
        for (std::size_t left = race_rounds(me); left != 0;) {
            const std::size_t regions = std::min(left, batch);
            me.tell("peer", rooms.give_out(random, regions));
            me.hear<char>("peer");  // it has begun, and goes on until the next order
            for (std::size_t index = 0; index < regions; ++index) {
                linger(me, end.vi(), random);
                hit += rooms.take_back(index) ? 1 : 0;
            }
            left -= regions;
        }
        me.tell("peer", Order{});
        me.hear<char>("peer");
        rooms.give_out(random, 0);  // looks at all once more
        EXPECT_EQ(VIP_STATE_CONNECTED, end.state());
        me.meet();
    }
    me.nic().restore_handler();
    EXPECT_GT(hit, 0U) << "some were written to before their end";
    EXPECT_GT(refused, 0U) << "and some writes came later";
}

void write_without_end(Role& me) {
    End end(me, {.level = VIP_SERVICE_UNRELIABLE});
    const Piece data = end.take(room_max);
    make_all(data, written);
    end.connect("owner");
    std::vector<VIP_DESCRIPTOR*> idle;
    for (int count = 0; count < 4; ++count) idle.push_back(end.memory().descriptor());
    std::size_t posted = 0;
    for (auto order = me.hear<Order>("owner"); order.places != 0; order = me.hear<Order>("owner")) {
        bool told = false;
        for (std::size_t count = 0; !told || !me.was_told_by("owner"); ++count) {
            if (posted == idle.size()) {
                end.sent();
                --posted;
            }
            const Place& place = order.place[count % order.places];
            const Piece piece = data.with_length(place.length);
            std::rotate(idle.begin(), idle.begin() + 1, idle.end());
            make_write(idle.back(), place.target, {&piece, 1});
            end.post_send(idle.back());
            ++posted;
            if (!std::exchange(told, true)) me.tell("owner", 'b');
        }
    }
    for (; posted != 0; --posted) end.sent();
    me.tell("owner", 'e');
    me.meet();
}

VIPL_TEST(Vipl_4_8_a_region_ends_in_a_stream_of_rdma_writes_and_no_byte_comes_later, nothing) {
    test.role("owner", end_regions_in_writes);
    test.role("peer", write_without_end);
}

/// Every end of a region breaks the connection here, which costs more than all the rest.
std::size_t read_rounds(Role& me) { return race_rounds(me) / 100; }

void end_regions_in_reads(Role& me) {
    Rooms rooms(me.nic());
    Random random(2);
    End end(me);
    VIP_DESCRIPTOR* receive = end.memory().descriptor();
    for (std::size_t left = read_rounds(me); left != 0; --left) {
        end.accept("peer");
        make_receive(receive, {});
        end.post_receive(receive);
        {
            const Turner turner(me, end.vi());
            me.tell("peer", rooms.give_out(random, 1));
            me.hear<char>("peer");
            linger(me, end.vi(), random);
            EXPECT_FALSE(rooms.take_back(0));
        }
        end.wait_state(VIP_STATE_ERROR);
        end.disconnect();
        drain(end.vi());
        me.nic().wait_error(me, end.vi(), VIP_ERROR_RDMAR_PROT);
    }
}

void read_without_end(Role& me) {
    End end(me);
    const Piece rooms[] = {end.take(room_max), end.take(room_max)};
    VIP_DESCRIPTOR* reads[] = {end.memory().descriptor(), end.memory().descriptor()};
    for (std::size_t left = read_rounds(me); left != 0; --left) {
        end.connect("owner");
        const Place place = me.hear<Order>("owner").place[0];
        const auto into = [&](unsigned which) { return rooms[which].with_length(place.length); };
        const auto post = [&](unsigned which) {
            const Piece piece = into(which);
            make_read(reads[which], place.target, {&piece, 1});
            end.post_send(reads[which]);
        };
        post(0);
        post(1);
        me.tell("owner", 'b');
        for (unsigned which = 0;; which = 1 - which) {
            const auto [code, descriptor] = end.send_outcome();
            if (code != VIP_SUCCESS) {
                EXPECT_TRUE(failed_with(descriptor, VIP_STATUS_RDMA_PROT_ERROR));
                break;
            }
            require(all_are(into(which), fresh), "a read gets what was granted");
            post(which);
        }
        end.wait_state(VIP_STATE_ERROR);
        end.disconnect();
        drain(end.vi());
    }
}

VIPL_TEST(Vipl_4_8_a_region_ends_in_a_stream_of_rdma_reads_and_gives_nothing_away_later, nothing) {
    test.role("owner", end_regions_in_reads);
    test.role("peer", read_without_end);
}

}  // namespace
}  // namespace conformance::deregister_test
