// A peer that guesses handles, addresses and lengths reaches exactly what tag and rights of its VI
// grant (VIPL 4.6, 4.7). VIA_GUESS_SECONDS says for how long (4).
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <random>

#include "hostile_attacker.hpp"
#include "support/child.hpp"
#include "support/host.hpp"
#include "support/vipl.hpp"

namespace system_test::hostile_guess_test {

namespace {

namespace flag = wire::flag;
using wire::FrameKind;

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t transfer_max = 6000;  ///< more than a region has
constexpr unsigned receives = 64;

double seconds() {
    const char* text = std::getenv("VIA_GUESS_SECONDS");
    return text != nullptr ? std::atof(text) : 4;
}

/// A region of the victim, between pages that belong to none.
struct Grant {
    std::uint64_t begin;
    std::uint32_t handle;
    bool write, read, tagged;  ///< tagged as the attacker's VI is
};
constexpr std::array<Grant, 5> grants{{{0, 0, true, true, true},
                                       {0, 0, true, false, true},
                                       {0, 0, false, true, true},
                                       {0, 0, false, false, true},
                                       {0, 0, true, true, false}}};
/// Not a page's multiple, so that their ends lie within pages.
constexpr std::size_t region_bytes = page_bytes - 100;

/// Shared by victim and attacker: the victim's memory lies open, to be compared with what it should
/// be.
struct GuessPage {
    std::array<Grant, grants.size()> grant;
    std::atomic<std::uint32_t> ready, leave;
    std::atomic<std::uint64_t> received;  ///< RDMA writes that were granted: they consume a receive
    std::atomic<std::uint64_t> refused;   ///< refusals that the victim was told of
    alignas(page_bytes) std::byte memory[(2 * grants.size() + 1) * page_bytes];
};

void note_refusal(VIP_PVOID context, VIP_ERROR_DESCRIPTOR* error) {
    if (error->ErrorCode == VIP_ERROR_RDMAW_PROT || error->ErrorCode == VIP_ERROR_RDMAR_PROT)
        ++static_cast<GuessPage*>(context)->refused;
}

void be_guessed_at(Parent& parent) {
    auto& page = parent.shared<GuessPage>();
    Nic nic;
    OK(VipErrorCallback(nic.handle(), &page, note_refusal));
    VIP_PROTECTION_HANDLE mine = nullptr;
    VIP_PROTECTION_HANDLE other = nullptr;
    OK(VipCreatePtag(nic.handle(), &mine));
    OK(VipCreatePtag(nic.handle(), &other));
    page.grant = grants;
    for (std::size_t index = 0; index < grants.size(); ++index) {
        Grant& grant = page.grant[index];
        std::byte* begin = page.memory + (2 * index + 1) * page_bytes + 36;
        VIP_MEM_ATTRIBUTES attributes{grant.tagged ? mine : other,
                                      grant.write ? VIP_TRUE : VIP_FALSE,
                                      grant.read ? VIP_TRUE : VIP_FALSE};
        grant.begin = reinterpret_cast<std::uint64_t>(begin);
        OK(VipRegisterMem(nic.handle(), begin, region_bytes, &attributes, &grant.handle));
    }
    Wants wants;
    wants.length = transfer_max;
    wants.receives = receives;
    wants.tag = mine;
    wants.remote = false;
    wants.level = VIP_SERVICE_UNRELIABLE;  // the first one is to be written through
    page.ready = 1;
    while (page.leave == 0) {
        End end(nic, wants);
        end.accept("evil");
        while (end.state() == VIP_STATE_CONNECTED)
            while (const auto outcome = end.received())
                if (outcome->ok()) {
                    end.post_receive(outcome->slot);
                    ++page.received;
                }
        wants.level = VIP_SERVICE_RELIABLE_DELIVERY;
    }
    parent.say("over");
    parent.expect("end");
}
const Role guessed_role("guessed-at", be_guessed_at);

struct Guess {
    std::uint64_t address;
    std::uint32_t handle;
    std::uint32_t length;
};

/// Guesses near the truth and far from it, at random and one after the other; knows which are legal
/// and what memory must hold.
class Guesser {
public:
    explicit Guesser(GuessPage& page) : page_(page), model_(sizeof page.memory) {
        std::memcpy(model_.data(), page.memory, sizeof page.memory);
    }

    Guess next() {
        const Grant& grant = page_.grant[below(grants.size())];
        Guess guess{grant.begin + below(region_bytes), grant.handle,
                    static_cast<std::uint32_t>(below(8) == 0 ? below(transfer_max) : below(100))};
        switch (below(8)) {  // the address
            case 0:
            case 1:  // about one of its ends
                guess.address = grant.begin + (below(2) == 0 ? 0 : region_bytes) + below(33) - 16;
                break;
            case 2:  // up to one of its ends, one byte more or less
                guess.address = grant.begin + region_bytes - guess.length + below(3) - 1;
                break;
            case 3:  // round the end of all addresses
                guess.address = 0 - std::uint64_t{below(2UL * guess.length + 2)};
                break;
            case 4:
                guess.address ^= std::uint64_t{1} << below(64);
                break;
            default:
                break;
        }
        switch (below(8)) {  // the handle
            case 0:
                guess.handle ^= 1U << below(32);
                break;
            case 1:  // all small indices and generations, in turn
                guess.handle = static_cast<std::uint32_t>(turn_ / 64 % 64 << 20 | turn_ % 64);
                ++turn_;
                break;
            case 2:
                guess.handle = page_.grant[below(grants.size())].handle;
                break;
            case 3:
                guess.handle = static_cast<std::uint32_t>(random_());
                break;
            default:
                break;
        }
        return guess;
    }
    bool legal(const Guess& guess, bool write) const {
        if (guess.length == 0) return true;  // touches nothing
        for (const Grant& grant : page_.grant)
            if (guess.handle == grant.handle)
                return grant.tagged && (write ? grant.write : grant.read) &&
                       guess.address >= grant.begin && guess.length <= region_bytes &&
                       guess.address - grant.begin <= region_bytes - guess.length;
        return false;
    }
    /// What the model holds there.
    std::byte* at(const Guess& guess) {
        return model_.data() + (guess.address - reinterpret_cast<std::uint64_t>(page_.memory));
    }
    /// Bytes to write.
    const std::vector<std::byte>& bytes(std::uint32_t length) {
        bytes_.resize(length);
        for (std::byte& byte : bytes_) byte = static_cast<std::byte>(random_());
        return bytes_;
    }
    bool memory_is_right() const {
        return std::memcmp(model_.data(), page_.memory, model_.size()) == 0;
    }

private:
    std::size_t below(std::size_t bound) { return random_() % bound; }

    GuessPage& page_;
    std::vector<std::byte> model_;
    std::vector<std::byte> bytes_;
    std::mt19937_64 random_{1};
    std::uint64_t turn_ = 0;
};

/// The victim has its memory where we do not: its addresses are translated to our view of them.
class GuessStage {
public:
    GuessStage() : victim_("guessed-at") {
        until("the victim is ready", [&] { return page().ready != 0; });
        shift_ = reinterpret_cast<std::uint64_t>(page().memory) + page_bytes + 36 -
                 page().grant[0].begin;
        for (Grant& grant : page().grant) grant.begin += shift_;
        attacker_ = std::make_unique<Attacker>(host_.meeting_place(), victim_.pid());
        attacker_->enter();
    }
    GuessPage& page() { return victim_.shared<GuessPage>(); }
    Attacker& attacker() { return *attacker_; }

    wire::Header header(FrameKind kind, std::uint32_t vi, std::uint32_t message,
                        const Guess& guess) const {
        wire::Header header;
        header.kind = kind;
        header.flags = flag::first | flag::last | flag::extent | flag::remote;
        header.vi = vi;
        header.message = message;
        header.message_length = guess.length;
        header.remote_address = guess.address - shift_;
        header.remote_handle = guess.handle;
        return header;
    }
    /// Leaves the connection, for good or so that the victim waits for the next.
    void leave(std::uint32_t vi, bool for_good) {
        page().leave = for_good ? 1 : 0;
        wire::Header header;
        header.kind = FrameKind::disconnect;
        header.vi = vi;
        require(attacker_->send(header), "the attacker leaves");
    }
    void end() {
        victim_.expect("over");
        victim_.say("end");
        victim_.join();
    }

private:
    Host host_;
    Child victim_;
    std::uint64_t shift_ = 0;
    std::unique_ptr<Attacker> attacker_;
};

struct Tally {
    std::uint64_t guesses = 0;
    std::uint64_t legal = 0;
};

/// Enough of both, however slow the machine.
bool tells(const Tally& tally) { return tally.legal > 0 && tally.guesses > tally.legal; }

/// Each write carries immediate data, so that it consumes a receive if, and only if, it is granted.
Tally guess_writes(GuessStage& stage, Guesser& guesser, double until_ms) {
    const std::uint32_t vi = stage.attacker().connect_vi(VIP_SERVICE_UNRELIABLE, transfer_max, 1);
    Tally tally;
    const auto taken = [&] { return stage.page().received == tally.legal; };
    const auto write = [&](const Guess& guess) {
        wire::Header header = stage.header(FrameKind::rdma_write, vi,
                                           static_cast<std::uint32_t>(tally.guesses++), guess);
        header.flags |= flag::immediate;
        const auto& bytes = guesser.bytes(guess.length);
        if (guesser.legal(guess, true)) {
            ++tally.legal;
            if (guess.length != 0) std::memcpy(guesser.at(guess), bytes.data(), bytes.size());
        }
        require(stage.attacker().send(header, bytes.data(), bytes.size()), "a guess is sent");
    };
    while (now_ms() < until_ms || !tells(tally)) {
        for (int count = 0; count < 1000; ++count) {
            write(guesser.next());
            if (tally.legal % (receives / 2) == 0) until("those granted arrive", taken);
        }
    }
    write({stage.page().grant[0].begin, stage.page().grant[0].handle, 1});
    until("the last one arrives", taken);
    EXPECT_TRUE(guesser.memory_is_right());
    stage.leave(vi, false);
    return tally;
}

/// One read on VI `vi`: its bytes, or that it was refused.
bool read(GuessStage& stage, std::uint32_t vi, std::uint32_t message, const Guess& guess,
          std::vector<std::byte>& bytes) {
    wire::Header header = stage.header(FrameKind::read_request, vi, message, guess);
    header.read_number = message;
    require(stage.attacker().send(header), "a guess is sent");
    bytes.clear();
    double woken = 0;
    for (;;) {
        std::optional<Attacker::Received> answer;
        until("the victim answers", [&] {
            answer = stage.attacker().receive();
            // It may sleep; who wakes it for each guess is cut off.
            if (!answer && now_ms() - woken > 2) {
                stage.attacker().wake();
                woken = now_ms();
            }
            return bool(answer);
        });
        if (answer->header.kind == FrameKind::nak) {
            EXPECT_EQ(answer->header.immediate_or_code,
                      static_cast<std::uint32_t>(wire::NakCode::protection));
            return false;
        }
        if (answer->header.kind != FrameKind::read_reply) continue;
        bytes.insert(bytes.end(), answer->payload.begin(), answer->payload.end());
        if (answer->header.has(flag::last)) return true;
    }
}

/// A refused read costs the connection (VIPL 4.25), so that there are fewer of these.
Tally guess_reads(GuessStage& stage, Guesser& guesser, double until_ms) {
    Tally tally;
    std::vector<std::byte> bytes;
    for (std::uint32_t epoch = 0;; ++epoch) {
        const std::uint32_t vi = stage.attacker().connect_vi(VIP_SERVICE_RELIABLE_DELIVERY,
                                                             transfer_max, epoch << 16 | 2);
        for (std::uint32_t message = 0;; ++message) {
            if (now_ms() > until_ms && tells(tally)) {
                stage.leave(vi, true);
                return tally;
            }
            const Guess guess = guesser.next();
            const bool legal = guesser.legal(guess, false);
            const bool granted = read(stage, vi, message, guess, bytes);
            ++tally.guesses;
            tally.legal += legal ? 1 : 0;
            require(legal == granted, "just what is legal is granted");
            if (!granted) break;
            require(bytes.size() == guess.length &&
                        (bytes.empty() ||
                         std::memcmp(bytes.data(), guesser.at(guess), bytes.size()) == 0),
                    "a read gets what lies there");
        }
    }
}

TEST(Guesser, ReachesWhatIsGrantedAndNothingElse) {
    GuessStage stage;
    Guesser guesser(stage.page());
    const double start = now_ms();
    const double half = seconds() * 500;
    const Tally writes = guess_writes(stage, guesser, start + half);
    const Tally reads = guess_reads(stage, guesser, now_ms() + half);
    EXPECT_TRUE(guesser.memory_is_right()) << "reading changes nothing";
    EXPECT_EQ(stage.page().received, writes.legal) << "just the legal ones were granted";
    EXPECT_GT(stage.page().refused, 0U);
    for (const Tally& tally : {writes, reads}) {
        EXPECT_GT(tally.legal, 0U);
        EXPECT_GT(tally.guesses, tally.legal);
    }
    std::printf("%llu of %llu writes and %llu of %llu reads were legal, and granted\n",
                static_cast<unsigned long long>(writes.legal),
                static_cast<unsigned long long>(writes.guesses),
                static_cast<unsigned long long>(reads.legal),
                static_cast<unsigned long long>(reads.guesses));
    stage.end();
}

}  // namespace

}  // namespace system_test::hostile_guess_test
