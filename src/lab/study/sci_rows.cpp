// The figures of 003: the VIA/SCI card (with Dolphin's D310), and NetPIPE's table of MPI over it,
// over cLAN and over Fast Ethernet.
#include <algorithm>
#include <cstdio>

#include "lab/study/bench.hpp"
#include "lab/study/figures.hpp"
#include "lab/study/passing.hpp"
#include "lab/study/storing.hpp"

namespace via::lab::study {
namespace {

constexpr std::int64_t netpipe_size = 1 << 20;  // of long messages
constexpr const char* comparing = "003 Comparing III";

/// What all three machines' rows are made with; the first error ends them.
class Measuring : protected Figures {
public:
    Measuring(const Machine& machine, const Without& without) : bench_(machine, without) {}

protected:
    template <class Found>
    auto value(const std::expected<Found, std::string>& found) {
        if (!found && !error_) error_ = found.error();
        return found.value_or(Found{});
    }
    double passing_us(const Way& way, std::int64_t size, bool registers = false) {
        return value(passing_ns(bench_.trial(), way, size, registers)) / 1e3;
    }
    double passing_mb(const Way& way, std::int64_t size, bool registers = false) {
        return static_cast<double>(size) / passing_us(way, size, registers);
    }
    Rows done() {
        if (bench_.error()) return std::unexpected(*bench_.error());
        if (error_) return std::unexpected(*error_);
        return take();
    }

    Bench bench_;
    std::optional<std::string> error_;
};

class Sci : Measuring {
public:
    using Measuring::Measuring;

    Rows all() {
        stores();
        descriptors();
        processor();
        chempi();
        scampi();
        return done();
    }

private:
    double stores_us(std::int64_t size) {
        return static_cast<double>(value(by_stores(bench_.trial(), size)).one_way_ns) / 1e3;
    }
    double dma_us(std::int64_t size) {
        return static_cast<double>(value(by_dma(bench_.trial(), size)).one_way_ns) / 1e3;
    }
    double store_mb(std::int64_t size) {
        return value(store_bytes_per_second(bench_.trial(), size)) / 1e6;
    }
    void between(const char* figure, double least, double most, const char* unit, const char* place,
                 double ours, const char* note = "", bool expected = true) {
        char paper[48];
        std::snprintf(paper, sizeof paper, "%g to %g %s", least, most, unit);
        add({figure, std::string(paper) + " (" + place + ")", text_of(ours, unit), "-", paper,
             false, ours >= least && ours <= most, expected, note});
    }
    void is_so(const char* figure, const char* paper, const char* place, bool so,
               const std::string& ours, const char* note = "", bool expected = true) {
        add({figure, std::string(paper) + " (" + place + ")", ours, "-", "the same", false, so,
             expected, note});
    }

    void stores() {
        add_figure("4 B by a store, one way", 2.3, "us", "003 Memory 7, Choices 3", stores_us(4),
                   0.01, true);
        add_figure("bandwidth of stores", 82, "MB/s", "003 Bridge II.A", store_mb(65536), 0.01,
                   true);
        const double of_large = store_mb(65536);
        const double of_small = store_mb(64);
        is_so("full bandwidth of stores from 64 B on", "it is so", "003 Bridge II.A",
              within(of_small, of_large, 0.05), text_of(of_small, "MB/s at 64 B"));
        const Costs& costs = bench_.machine().costs;
        const double host = stores_us(4) - 2 * static_cast<double>(costs.card) / 1e3;
        add_figure("of it, what is not the cards'", 0.74, "us", "003 Choices 3: 2.78 less 2.04",
                   host, 0.1, false,
                   "the paper's is from processor to processor less from PCI to PCI; ours has all "
                   "of the bus in it, and no chipset between",
                   false);
        const auto load = static_cast<double>(value(load_ns(bench_.trial()))) / 1e3;
        const auto spent =
            static_cast<double>(value(by_stores(bench_.trial(), 4)).processor_ns) / 1e3;
        is_so("a remote load is expensive, a store is not", "it is so",
              "003, An optimized MPI library 5.1", load > 10 * spent,
              text_of(load, "us of the processor, a store ") + text_of(spent, "us"));
    }
    void descriptors() {
        const double sent = bench_.one_way_us(bench_.trial(), 4);
        between("4 B by descriptors, one way", 7, 10, "us", "003 Bridge VII, Memory 7: cLAN's",
                sent);
        between("by descriptors against by stores", 3, 4, "times", "003 Bridge VII",
                sent / stores_us(4));
        double most = 0;
        for (const std::int64_t size : {16384, 65536, 1 << 20})
            most = std::max(most, static_cast<double>(size) / dma_us(size));
        add_figure("bandwidth of DMA, at most", 50, "MB/s", "003 Bridge II.A: D310", most, 0.1);
    }
    void processor() {
        const auto reckoned = dma_leaves_more_from(bench_.trial(), left_as_reckoned);
        add_figure("DMA leaves the processor more time from", 128, "B", "003 Bridge II.A, figure 2",
                   static_cast<double>(reckoned), 0.01);
        const auto whole = dma_leaves_more_from(bench_.trial(), left);
        is_so("the same, starting the DMA counted", "slightly larger sizes",
              "003 Bridge II.A, below figure 2", whole > reckoned && whole <= 4 * reckoned,
              text_of(static_cast<double>(whole), "B"));
    }
    void chempi() {
        const Way& shared = chempi_ways()[0];
        const Way& zero = chempi_ways()[2];
        is_so("CHEMPI: stores for short messages, descriptors for long ones", "it is so",
              "003, An optimized MPI library 3.2",
              passing_us(shared, 64) < passing_us(zero, 64) &&
                  passing_us(zero, 65536) < passing_us(shared, 65536),
              text_of(passing_us(zero, 64) / passing_us(shared, 64), "times at 64 B, ") +
                  text_of(passing_us(zero, 65536) / passing_us(shared, 65536), "at 64 KB"));
        add_figure("MPI by stores, 1 KB", 35, "MB/s", "003 Memory 1: MPICH",
                   passing_mb(scampi_eager(), 1024), 0.15);
    }
    void scampi() {
        const std::string note =
            "3 us of the paper's are MPI's code, 5 stores where Dolphin says 2.3: a flag behind a "
            "barrier takes " +
            text_of(passing_us(scampi_eager(), 1), "us") + " here, and may be what was measured";
        add_figure("latency, ScaMPI", 8, "us", comparing, passing_us(scampi_inline(), 1), 0.15,
                   false, note.c_str(), false);
        add_figure("bandwidth, ScaMPI", 76, "MB/s", comparing,
                   passing_mb(scampi_transport(), netpipe_size), 0.1);
        const double below = passing_mb(scampi_eager(), 128 << 10);
        const double above = passing_mb(scampi_transport(), 256 << 10);
        is_so("ScaMPI's curve has a kink at 128 KB, from eager to transport", "it has", comparing,
              above > 1.1 * below,
              text_of(below, "MB/s at 128 KB, ") + text_of(above, "at 256 KB"));
        const double in_line = passing_us(scampi_inline(), 560);
        const double by_buffer = passing_us(scampi_eager(), 560);
        is_so("the end of in-line at 560 B cannot be seen", "it cannot", comparing,
              within(by_buffer, in_line, 0.1),
              text_of(in_line, "us, eager ") + text_of(by_buffer, "us"),
              "eager pays for its barrier here; ScaMPI's way to order its stores is not told",
              false);
    }
};

class Oscar : Measuring {
public:
    using Measuring::Measuring;

    Rows clan() {
        const double blocking = passing_us(mpipro_eager(), 1);
        const double of_two =
            value(passing_ns(bench_.trial("processors=2"), mpipro_eager(), 1)) / 1e3;
        const std::string note =
            "two threads that wake are in ours; with two processors and their locks it would be " +
            text_of(of_two, "us") + ". The rest no paper names: credits, MPI's code";
        add_figure("latency, MPI/Pro over cLAN", 65, "us", comparing, blocking, 0.15, false,
                   note.c_str(), false);
        const double polling =
            value(passing_ns(bench_.trial("wait=poll"), mpipro_eager(), 1)) / 1e3;
        add({"the same, polling: a prototype", "below 20 us (003 Comparing III.C)",
             text_of(polling, "us"), "-", "below 20 us", false, polling < 20, true, ""});
        add_figure("bandwidth, MPI/Pro over cLAN", 93.5, "MB/s", comparing,
                   passing_mb(mpipro_long(), netpipe_size, true), 0.1);
        const std::int64_t turn = first_where(
            64, 65536,
            [&](std::int64_t size) {
                return passing_us(mpipro_long(), size, true) < passing_us(mpipro_eager(), size);
            },
            64);
        add({"the long protocol is faster from", "4 to 8 KB (003 Comparing III.B)",
             text_of(static_cast<double>(turn), "B"), "-", "4096 to 8192 B", false,
             turn >= 4096 && turn <= 8192, true, ""});
        return done();
    }
    Rows ethernet() {
        add_figure("latency, MPI/Pro over TCP", 125, "us", comparing, passing_us(mpipro_tcp(), 1),
                   0.15, false,
                   "TCP, the switch and two threads that wake make ours; MPI/Pro's code is not "
                   "counted by any paper",
                   false);
        add_figure("bandwidth, MPI/Pro over TCP", 10.3, "MB/s", comparing,
                   passing_mb(mpipro_tcp(), netpipe_size), 0.1, false,
                   "TCP alone has 11.9 here and 11.4 in 002; what MPI/Pro loses of it is not told",
                   false);
        return done();
    }
};

}  // namespace

Rows sci_rows(const Machine& machine, const Without& without) {
    return Sci(machine, without).all();
}
Rows oscarclan_rows(const Machine& machine, const Without& without) {
    return Oscar(machine, without).clan();
}
Rows oscarethernet_rows(const Machine& machine, const Without& without) {
    return Oscar(machine, without).ethernet();
}

}  // namespace via::lab::study
