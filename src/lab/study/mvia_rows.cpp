// The figures of M-VIA, cLAN and TCP beside them (004, and 002 table 1), each measured anew.
#include "lab/study/bench.hpp"
#include "lab/study/figures.hpp"

namespace via::lab::study {
namespace {

constexpr std::int64_t message_of_rates = 65536;

/// A line of table 1 of 004: one processor, then two.
struct Line {
    double tcp, poll, block;
    double tcp_2, poll_2, block_2;
};

class Machines : Figures {
public:
    Machines(const Machine& machine, const Without& without) : bench_(machine, without) {}

    Rows clan() {
        table({58, 9, 9, 116, 10, 45}, false, false);
        const char* const place = "004 5.2, 788 Mbit/s";
        rate("bandwidth, VIA, one processor", 98.5, place, "", true);
        rate(
            "bandwidth, TCP, one processor", 45.3, "004 5.2, 362 Mbit/s", "stack=tcp", false,
            "constant: 32.2 us a packet in the paper, of which the copy (set on the GNIC-II's VIA) "
            "and TCP (set on latency) alone are 35.7 here; both fit the GNIC-II's TCP, and the "
            "paper's curve has dropouts that it does not explain");
        return done();
    }
    Rows gnic2() {
        table({57, 19, 19, 94, 42, 42}, true, true);
        us("latency, TCP", 59, "002 table 1", "stack=tcp");
        add_figure("bandwidth, VIA", 60, "MB/s", "002 table 1; 64 in 004 5.2", mb(""), 0.1, true,
                   "two papers, two figures: the copy was set between them");
        rate("bandwidth, TCP", 31, "002 table 1; 32 in 004 5.2", "stack=tcp", true);
        ratio("VIA against TCP, latency", 59.0 / 19, bench_us("stack=tcp") / bench_us(""));
        ratio("VIA against TCP, bandwidth", 60.0 / 31, mb("") / mb("stack=tcp"));
        rate("bandwidth, VIA, two processors", 34.1, "004 5.2, 273 Mbit/s", "processors=2", true);
        rate("bandwidth, TCP, two processors", 32.6, "004 5.2, 261 Mbit/s",
             "stack=tcp,processors=2", false,
             "constant: ours takes 50.9 us a packet and the paper's 44.8; 11.6 of ours are the "
             "lock to wake the reader, set on latency: in a stream the reader sleeps at each "
             "packet");
        return done();
    }
    Rows sk9821() {
        table({63, 29, 29, 101, 51, 53}, true, false);
        const std::string large = "mtu=9000,wiring=cable";
        add_figure("latency, VIA, 9000 B packets", 24, "us", "004 5.3", bench_us(large), 0.01,
                   true);
        us("latency, TCP, 9000 B packets", 54, "004 5.3", large + ",stack=tcp", false,
           "paper: it has TCP 38, 34 and 30 us above VIA with the same stack and one byte; a "
           "longer packet cannot make that less, and ours is 38 everywhere");
        rate("bandwidth, VIA, 9000 B packets", 81, "004 5.3, 648 Mbit/s", large, true);
        rate("bandwidth, TCP, 9000 B packets", 72, "004 5.3, 574 Mbit/s", large + ",stack=tcp",
             true);
        rate("bandwidth, VIA", 65, "004 5.2, 520 Mbit/s", "", true);
        rate("bandwidth, TCP", 37, "004 5.2, 296 Mbit/s", "stack=tcp", false,
             "paper: 39.5 us a packet where the GNIC-II takes 45.3 and cLAN 32.2, with the same "
             "stack on the same hosts; it says nothing of the drivers that could differ so");
        rate("bandwidth, VIA, two processors", 33.6, "004 5.2, 269 Mbit/s", "processors=2", true);
        rate("bandwidth, VIA, 9000 B packets, two processors", 66.9, "004 5.3, 535 Mbit/s",
             large + ",processors=2", true);
        us("latency, VIA, 9000 B packets, two processors", 53, "004 5.3: 3 us more, and unchanged",
           large + ",processors=2", false,
           "paper: it does not say more than what, and has 5 us less than through the switch on "
           "one processor and nothing less on two; its TCP is 9 and 8 us less");
        return done();
    }
    Rows tulip() {
        add_figure("latency, VIA", 23, "us", "002 table 1", bench_us(""), 0.01, true);
        us("latency, TCP", 65, "002 table 1", "stack=tcp");
        rate("bandwidth, VIA", 11.9, "002 table 1", "", true);
        rate("bandwidth, TCP", 11.4, "002 table 1", "stack=tcp", true);
        return done();
    }

private:
    Rows done() {
        if (bench_.error()) return std::unexpected(*bench_.error());
        return take();
    }
    double bench_us(const std::string& words) {
        Question question;
        question.size = 1;
        question.rounds = 256;
        return bench_.one_way(bench_.trial(words), question).mean_ns / 1e3;
    }
    double mb(const std::string& words) {
        return bench_.rate_mb(bench_.trial(words), message_of_rates);
    }
    void us(const char* figure, double paper, const char* place, const std::string& words,
            bool expected = true, const char* note = "") {
        add_figure(figure, paper, "us", place, bench_us(words), 0.1, false, note, expected);
    }
    void rate(const char* figure, double paper, const char* place, const std::string& words,
              bool expected, const char* note = "") {
        add_figure(figure, paper, "MB/s", place, mb(words), 0.1, false, note, expected);
    }
    void ratio(const char* figure, double paper, double ours) {
        add_figure(figure, paper, "times", "002 table 1", ours, 0.1);
    }
    void table(const Line& line, bool kernel, bool host_is_set_by_it) {
        const char* const place = "004 table 1";
        const auto one = [&](const char* figure, double paper, const char* words, bool calibrated) {
            add_figure(figure, paper, "us", place, bench_us(words), calibrated ? 0.01 : 0.1,
                       calibrated);
        };
        one("latency, TCP, one processor", line.tcp, "stack=tcp", host_is_set_by_it);
        one("latency, VIA polling, one processor", line.poll, "", true);
        one("latency, VIA blocking, one processor", line.block, "wait=block", false);
        one("latency, TCP, two processors", line.tcp_2, "stack=tcp,processors=2", false);
        one("latency, VIA polling, two processors", line.poll_2, "processors=2",
            host_is_set_by_it && kernel);
        one("latency, VIA blocking, two processors", line.block_2, "wait=block,processors=2",
            false);
    }

    Bench bench_;
};

}  // namespace

Rows clan_rows(const Machine& machine, const Without& without) {
    return Machines(machine, without).clan();
}
Rows gnic2_rows(const Machine& machine, const Without& without) {
    return Machines(machine, without).gnic2();
}
Rows sk9821_rows(const Machine& machine, const Without& without) {
    return Machines(machine, without).sk9821();
}
Rows tulip_rows(const Machine& machine, const Without& without) {
    return Machines(machine, without).tulip();
}

}  // namespace via::lab::study
