#include "bench/via_many.hpp"

#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "bench/clock.hpp"
#include "bench/stats.hpp"
#include "bench/via_end.hpp"
#include "bench/via_port.hpp"

namespace via::bench {

namespace {

std::string name_of_sender(const std::string& discriminator, std::uint32_t number) {
    return fmt::format("{}-{}", discriminator, number);
}

std::size_t share_of(const Arena& arena, std::uint32_t senders) {
    return arena.bytes / senders / 4096 * 4096;
}

// A NIC, a VI and the end of a stream.
class Sender {
public:
    Sender(Link& link, DeviceOptions options, std::string name)
        : link_(link), name_(std::move(name)), port_(link, one_vi(options), name_) {}

    Status open() {
        if (auto opened = port_.open_alone(); !opened) return opened;
        return port_.request(0, name_);
    }
    // All messages of one order, and the processor time that they took.
    Result<std::int64_t> stream(const Question& question, std::uint64_t messages) {
        ViaEnd end(link_, port_);
        const std::int64_t cpu_start_ns = cpu_ns();
        bool good = end.begin(question, messages);
        for (std::uint64_t i = 0; good && i < messages; ++i) good = end.send(i);
        if (!good || !end.finish()) return fail("{}", end.failure());
        return cpu_ns() - cpu_start_ns;
    }

private:
    static DeviceOptions one_vi(DeviceOptions options) {
        options.like.vis = 0;
        options.like.active_vis = 1;
        return options;
    }

    Link& link_;
    std::string name_;
    ViaPort port_;
};

// Side 0: sender number 0, and the parent of the others.
class Senders final : public Endpoint {
public:
    Senders(Link& link, const DeviceOptions& options, std::string discriminator,
            SendersBoard& board)
        : link_(link), options_(options), discriminator_(std::move(discriminator)), board_(board) {}
    ~Senders() override {
        link_.shared().closing.value.store(1);
        give_order(0);
        for (const pid_t child : children_) ::waitpid(child, nullptr, 0);
    }

    Status open() override {
        // The receiver needs it all, a sender its share.
        link_.arena.bytes = share_of(link_.arena, options_.like.senders);
        // Forked before this process has a NIC, and so threads.
        for (std::uint32_t n = 1; n < options_.like.senders; ++n) {
            const pid_t parent = ::getpid();
            const pid_t child = ::fork();
            if (child < 0) return fail_errno("fork");
            if (child == 0) run_other(n, parent);
            children_.push_back(child);
        }
        if (!link_.meet()) return fail("{}", called_off);  // the receiver has told where it is
        give_order(1);
        own_.emplace(link_, options_, name_of_sender(discriminator_, 0));
        if (auto opened = own_->open(); !opened) return opened;
        std::int64_t unused = 0;
        if (auto ready = wait_for_others(unused); !ready) return ready;
        return link_.meet() ? Status{} : fail("{}", called_off);
    }

    Result<Reading> measure(const Question& question, const Effort& effort) override {
        Reading reading;
        for (const std::uint64_t messages : {effort.warmup, effort.messages}) {
            // Twice, as the receiver makes itself ready in between.
            if (!link_.meet() || !link_.meet()) return fail("{}", called_off);
            board_.question = question;
            reading.first_ns = now_ns();
            const std::uint64_t each = std::max<std::uint64_t>(messages / question.senders, 1);
            give_order(each);
            const auto sent = own_->stream(question, each);
            if (!sent) return std::unexpected(sent.error());
            reading.messages = each * question.senders;
            reading.cpu_ns = *sent;
            if (auto done = wait_for_others(reading.cpu_ns); !done) {
                return std::unexpected(done.error());
            }
            if (!link_.meet()) return fail("{}", called_off);
        }
        return reading;
    }

private:
    void give_order(std::uint64_t messages) {
        board_.messages = messages;
        board_.order.fetch_add(1, std::memory_order_release);
        ::syscall(SYS_futex, &board_.order, FUTEX_WAKE, most_senders, nullptr, nullptr, 0);
    }

    // Until all have carried out the order, or one of them cannot: others may wait for that one.
    Status wait_for_others(std::int64_t& more_cpu_ns) {
        for (bool all = false; !all; ::sched_yield()) {
            all = true;
            for (std::uint32_t n = 1; n < options_.like.senders; ++n) {
                const auto done = has_done(n);
                if (!done) return std::unexpected(done.error());
                all = all && *done;
            }
        }
        for (std::uint32_t n = 1; n < options_.like.senders; ++n) {
            more_cpu_ns += board_.senders[n].cpu_ns;
        }
        return {};
    }

    Result<bool> has_done(std::uint32_t n) {
        const SendersBoard::Sender& other = board_.senders[n];
        if (other.done.load(std::memory_order_acquire) == board_.order.load()) {
            if (other.failure[0] == 0) return true;
            return fail("sender {}: {}", n, other.failure.data());
        }
        if (::waitpid(children_[n - 1], nullptr, WNOHANG) == 0) return false;
        return fail("sender {} ended", n);
    }

    std::uint32_t next_order(std::uint32_t last) {
        while (board_.order.load(std::memory_order_acquire) == last) {
            ::syscall(SYS_futex, &board_.order, FUTEX_WAIT, last, nullptr, nullptr, 0);
        }
        return last + 1;
    }

    // The process of sender n: connects at the first order, streams at the others.
    [[noreturn]] void run_other(std::uint32_t n, pid_t parent) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) ::_exit(0);
        SendersBoard::Sender& mine = board_.senders[n];
        const auto say = [&](std::uint32_t order, const Status& status) {
            if (!status) {
                const std::string& what = status.error().what;
                std::memcpy(mine.failure.data(), what.data(),
                            std::min(what.size(), mine.failure.size() - 1));
            }
            mine.done.store(order, std::memory_order_release);
        };
        std::uint32_t order = next_order(0);
        CPU_CLR(static_cast<unsigned>(board_.receiver_cpu), &board_.allowed);
        ::sched_setaffinity(0, sizeof board_.allowed, &board_.allowed);
        // What is published is each sender's own, but for where the receiver is.
        auto shared = std::make_unique<Shared>();
        shared->published = link_.shared().published;
        Link link(*shared, Side::first);
        link.arena = link_.arena;
        auto sender = std::make_unique<Sender>(link, options_, name_of_sender(discriminator_, n));
        say(order, board_.messages == 0 ? Status{} : sender->open());
        // What goes wrong shows in descriptors; that the receiver leaves first is no news.
        shared->closing.value.store(1);
        while (board_.messages != 0) {
            order = next_order(order);
            if (board_.messages == 0) break;
            const auto sent = sender->stream(board_.question, board_.messages);
            mine.cpu_ns = sent.value_or(0);
            say(order, sent ? Status{} : std::unexpected(sent.error()));
        }
        sender.reset();
        ::_exit(0);
    }

    Link& link_;
    DeviceOptions options_;
    std::string discriminator_;
    SendersBoard& board_;
    std::vector<pid_t> children_;
    std::optional<Sender> own_;
};

// Side 1.
class Receiver final : public Endpoint {
public:
    Receiver(Link& link, const DeviceOptions& options, std::string discriminator,
             SendersBoard& board)
        : link_(link),
          count_of_lanes_(options.like.senders),
          discriminator_(std::move(discriminator)),
          port_(link, a_vi_each(options), discriminator_) {
        board.receiver_cpu = ::sched_getcpu();
    }

    Status open() override {
        if (auto opened = port_.open_alone(); !opened) return opened;
        if (!link_.meet()) return fail("{}", called_off);
        for (std::uint32_t n = 0; n < count_of_lanes_; ++n) {
            auto accepted = port_.accept(n, name_of_sender(discriminator_, n));
            if (!accepted) return accepted;
        }
        return link_.meet() ? Status{} : fail("{}", called_off);
    }

    Result<Reading> measure(const Question& question, const Effort& effort) override {
        question_ = question;
        Reading reading;
        for (const std::uint64_t messages : {effort.warmup, effort.messages}) {
            messages_ = std::max<std::uint64_t>(messages / question.senders, 1);
            if (!link_.meet()) return fail("{}", called_off);
            const bool good = begin();
            if (!good || !link_.meet()) return fail("{}", good ? called_off : failure_.c_str());
            const std::int64_t cpu_start_ns = cpu_ns();
            if (!take_all(reading)) return fail("{}", failure_);
            reading.cpu_ns = cpu_ns() - cpu_start_ns;
            reading.messages = messages_ * count_of_lanes_;
            if (!link_.meet()) return fail("{}", called_off);
        }
        return reading;
    }

private:
    // What comes from one sender.
    struct Lane {
        Pool pool;
        DescriptorRing receives, credits;
        std::uint64_t taken = 0;
        std::uint64_t credits_sent = 0;
        std::uint64_t credits_out = 0;  // posted and not done
    };

    static DeviceOptions a_vi_each(DeviceOptions options) {
        options.like.vis = options.like.senders - 1;
        options.like.active_vis = options.like.senders;
        return options;
    }

    bool begin() {
        lanes_.assign(count_of_lanes_, {});
        const std::size_t bytes = share_of(link_.arena, count_of_lanes_);
        for (std::uint32_t n = 0; n < count_of_lanes_; ++n) {
            Lane& lane = lanes_[n];
            const Pools pools = pools_of({link_.arena.base + n * bytes, bytes}, question_);
            lane.pool = pools.receive;
            wipe(lane.pool, question_.size);
            window_ = lane.pool.window();
            lane.receives = DescriptorRing(pools.rest, window_, 1);
            lane.credits = DescriptorRing(lane.receives.end(), control_sends, 1);
            for (std::uint64_t i = 0; i < std::min(window_, messages_); ++i) {
                set_pieces(port_, *lane.receives.at(i), 0, lane.pool.at(i), question_);
                if (!posted(port_.post_receive(n, lane.receives.at(i)))) return false;
            }
        }
        credit_step_ = std::max<std::uint64_t>(window_ / credits_per_window, 1);
        return true;
    }

    // Fair is measured when the first sender has sent everything: until then all wanted to.
    bool take_all(Reading& reading) {
        const std::uint64_t all = messages_ * count_of_lanes_;
        bool first_is_through = false;
        for (std::uint64_t taken = 0; taken < all;) {
            Lane* lane = nullptr;
            if (!take(lane)) return false;
            if (lane == nullptr) continue;
            ++taken;
            if (lane->taken != messages_ || first_is_through) continue;
            first_is_through = true;
            std::vector<double> shares;
            for (const Lane& each : lanes_) shares.push_back(static_cast<double>(each.taken));
            reading.fairness = jain_index(shares);
        }
        reading.last_ns = now_ns();
        const auto busy = [](const Lane& lane) { return lane.credits_out > 0; };
        while (owes() || std::any_of(lanes_.begin(), lanes_.end(), busy)) {
            Lane* none = nullptr;
            if (!take(none)) return false;
        }
        return true;
    }

    bool owes() const {
        return std::any_of(lanes_.begin(), lanes_.end(), [&](const Lane& lane) {
            return lane.taken / credit_step_ > lane.credits_sent;
        });
    }

    // One completion, of whomever; `lane`: whose message it was, if it was one.
    bool take(Lane*& lane) {
        bool receive = true;
        VIP_DESCRIPTOR* descriptor = nullptr;
        switch (port_.take(receive, 0, descriptor)) {
            case Took::failed:
                return posted(false);
            case Took::nothing:
                return true;
            case Took::one:
                break;
        }
        for (std::uint32_t n = 0; n < count_of_lanes_; ++n) {
            Lane& each = lanes_[n];
            if (receive && each.receives.has(descriptor)) {
                lane = &each;
                return took_message(each, n) && pay(each, n);
            }
            if (!receive && each.credits.has(descriptor)) {
                --each.credits_out;
                return pay(each, n);
            }
        }
        failure_ = "a descriptor that nobody posted";
        return false;
    }

    bool took_message(Lane& lane, std::uint32_t vi) {
        const std::uint64_t i = lane.taken++;
        if (!read_and_check(lane.pool.at(i), question_.size, i, lane.pool.count)) {
            failure_ = fmt::format("message {} of sender {} arrived with wrong bytes", i, vi);
            return false;
        }
        if (i + window_ >= messages_) return true;
        return posted(port_.post_receive(vi, lane.receives.at(i & (window_ - 1))));
    }

    // The credits that the sender has earned, as far as there are descriptors for them.
    bool pay(Lane& lane, std::uint32_t vi) {
        while (lane.credits_sent < lane.taken / credit_step_ && lane.credits_out < control_sends) {
            VIP_DESCRIPTOR* credit = lane.credits.at(lane.credits_sent % control_sends);
            if (!posted(port_.post_send(vi, credit))) return false;
            ++lane.credits_sent;
            ++lane.credits_out;
        }
        return true;
    }

    bool posted(bool good) {
        if (!good) failure_ = port_.failure();
        return good;
    }

    Link& link_;
    std::uint32_t count_of_lanes_;
    std::string discriminator_;
    ViaPort port_;
    Question question_;
    std::vector<Lane> lanes_;
    std::uint64_t messages_ = 0;  // from each sender
    std::uint64_t window_ = 1;
    std::uint64_t credit_step_ = 1;
    std::string failure_;
};

}  // namespace

std::unique_ptr<Endpoint> make_many_to_one(Link& link, const DeviceOptions& options,
                                           const std::string& discriminator, SendersBoard& board) {
    if (link.is_first()) return std::make_unique<Senders>(link, options, discriminator, board);
    return std::make_unique<Receiver>(link, options, discriminator, board);
}

}  // namespace via::bench
