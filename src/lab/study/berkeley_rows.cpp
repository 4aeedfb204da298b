// The figures of Berkeley VIA, as papers 000 and 002 report them, each measured anew.
#include <algorithm>

#include "lab/study/bench.hpp"
#include "lab/study/figures.hpp"

namespace via::lab::study {
namespace {

class First : Figures {
public:
    First(const Machine& machine, const Without& without) : bench_(machine, without) {}

    Rows all() {
        add_figure("4 B one way", 26, "us", "000 table 5, 002 5.2",
                   bench_.one_way_us(bench_.trial(), 4), 0.01, true);
        add_figure("4 B one way, version 1 in figures of version 2", 24, "us", "000 table 5, about",
                   bench_.one_way_us(bench_.trial(), 4), 0.1, false,
                   "there on a 400 MHz Pentium II; its host takes part with 0.1 us");
        add_figure("4 B one way, descriptorless", 17, "us", "002 5.2",
                   bench_.one_way_us(bench_.trial("descriptors=token"), 4), 0.1);
        const double standard = bench_.one_way_us(bench_.trial(), 4);
        const double merged = bench_.one_way_us(bench_.trial("payload=merged"), 4);
        add({"4 B one way, merged descriptors", "faster (002 5.2; no figure)",
             text_of(merged, "us"), percent(merged, standard), "the sign", false, merged < standard,
             true, ""});
        add_figure("bandwidth at 4 KB", 53.1, "MB/s", "000 section 8",
                   bench_.rate_mb(bench_.trial(), 4096), 0.1, false,
                   "002 5.2 has 360 Mbit/s, 45 MB/s; the two papers disagree");
        add_figure("peak bandwidth", 64, "MB/s", "000 table 5, about",
                   bench_.rate_mb(bench_.trial(), 65536), 0.1);
        const double one = bench_.one_way_us(bench_.trial(), 4);
        const double many = bench_.one_way_us(bench_.trial("", 17), 4);
        add({"each active VI more", "slower, linearly (000 section 8)",
             text_of((many - one) / 16, "us"), "", "the sign", false, many > one + 1, true, ""});
        const bool staged = is_staged();
        add({"data is whole in the staging area before it goes on", "T4 before T5 (002 5.2)",
             staged ? "it is" : "it is not", "", "the cause", false, staged, true, ""});
        if (bench_.error()) return std::unexpected(*bench_.error());
        return take();
    }

private:
    /// At the receiver no byte crosses the bus while the packet comes in.
    bool is_staged() {
        const Explanation found = bench_.one_message(bench_.trial(), 4096);
        const auto comes_in = [](const Happening& one) {
            return std::string_view(one.what) == "interface to the FIFO";
        };
        const auto in = std::ranges::find_if(found.happenings, comes_in);
        if (in == found.happenings.end()) return false;
        return std::ranges::none_of(found.happenings, [&](const Happening& one) {
            return one.resource == "host 1 bus" && one.start_ns >= in->start_ns &&
                   one.start_ns < in->end_ns;
        });
    }

    Bench bench_;
};

class Second : Figures {
public:
    Second(const Machine& machine, const Without& without) : bench_(machine, without) {}

    Rows all() {
        const double found = bench_.one_way_us(bench_.trial(), 4);
        add_figure("4 B one way", 32, "us", "000 table 5, about", found, 0.1);
        const double table = found - bench_.one_way_us(bench_.trial("at=pinned"), 4);
        add({"of it the table", "6 us (000 section 8, about; more than)", text_of(table, "us"),
             percent(table, 6), "6 to 7 us", true, table >= 6 && table <= 7, true,
             "a word of the firmware more or less is 1.1 us of it; table 5 has 8 us between "
             "versions"});
        add_figure("4 B one way, misses at a VI's first use", 34, "us", "000 section 8",
                   first_use(), 0.1, false,
                   "half of a round trip whose way back finds what the way there missed");
        Question question;
        question.buffers = 2 * 256;
        question.rounds = 4 * 256;
        add_figure("4 B one way, misses all the time", 40, "us", "000 section 8",
                   bench_.one_way(bench_.trial(), question).mean_ns / 1e3, 0.1, false,
                   "buffers that are never in the table; a VI's descriptors stay there");
        const double peak = bench_.rate_mb(bench_.trial(), 65536);
        add_figure("peak bandwidth", 64, "MB/s", "000 table 5, about", peak, 0.1);
        const auto half = [&](std::int64_t size) {
            return bench_.rate_mb(bench_.trial(), size) >= peak / 2;
        };
        const std::int64_t bytes = first_where(64, 4096, half, 8);
        add({"half of the peak is reached at", "over 1000 B (000 section 8)",
             std::to_string(bytes) + " B", "", "the sign", false, bytes > 1000, bytes > 1000, ""});
        if (bench_.error()) return std::unexpected(*bench_.error());
        return take();
    }

private:
    double first_use() {
        Question question;
        question.rounds = 256;
        Trial trial = bench_.trial("cache=1,ways=1", 2);
        const auto found = half_round_trip_ns(trial, question);
        return found ? *found / 1e3 : 0;
    }

    Bench bench_;
};

}  // namespace

Rows berkeley1_rows(const Machine& machine, const Without& without) {
    return First(machine, without).all();
}

Rows berkeley2_rows(const Machine& machine, const Without& without) {
    return Second(machine, without).all();
}

}  // namespace via::lab::study
