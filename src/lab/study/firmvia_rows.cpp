// The figures of FirmVIA's paper (000), each measured anew.
#include <cmath>

#include "lab/study/bench.hpp"
#include "lab/study/figures.hpp"
#include "lab/study/rows.hpp"

namespace via::lab::study {
namespace {

class FirmviaFigures : Figures {
public:
    FirmviaFigures(const Machine& machine, const Without& without) : bench_(machine, without) {}

    Rows all() {
        latencies();
        bandwidths();
        packets();
        fifo();
        refills();
        words();
        doorbells();
        completions();
        translations();
        rdma();
        host();
        if (bench_.error()) return std::unexpected(*bench_.error());
        return take();
    }

private:
    void latencies() {
        const Trial firmvia = bench_.trial();
        add_figure("4 B one way", 18.2, "us", "7.1", bench_.one_way_us(firmvia, 4), 0.01, true);
        const double at_128 = bench_.one_way_us(firmvia, 128);
        add_figure("128 B one way", 20, "us", "7.1, about", at_128, 0.05);
        const double at_16 = bench_.one_way_us(firmvia, 16);
        add({"16 to 128 B are flat", "about 20 us (7.1)",
             text_of(at_16, "to ") + text_of(at_128, "us"), percent(at_128, at_16), "5 %", false,
             within(at_128, at_16, 0.05), true, ""});
        Question question;
        question.size = 128;
        const auto hits = bench_.one_way(firmvia, question);
        question.size = 256;
        const auto misses = bench_.one_way(firmvia, question);
        const bool missed =
            hits.sender.first_looks_missed == 0 && misses.sender.first_looks_missed == 64;
        add({"step between 128 and 256 B", "first look at the DMA fails (7.1)",
             missed ? "at 128 B it never fails, at 256 B always" : "it does not",
             text_of((misses.mean_ns - hits.mean_ns) / 1e3, "us higher"), "the cause", false,
             missed, true, ""});
        const double at_2 = bench_.one_way_us(firmvia, 2048);
        const double at_3 = bench_.one_way_us(firmvia, 3072);
        const double at_4 = bench_.one_way_us(firmvia, 4096);
        add({"slope from 2 to 4 KB", "constant (7.1)",
             text_of(at_3 - at_2, "and ") + text_of(at_4 - at_3, "us/KB"),
             percent(at_4 - at_3, at_3 - at_2), "2 %", false,
             within(at_4 - at_3, at_3 - at_2, 0.02), true, ""});
    }

    void bandwidths() {
        const Trial firmvia = bench_.trial();
        const double peak = bench_.rate_mb(firmvia, 65536);
        add_figure("peak bandwidth", 101.4, "MB/s", "7.2", peak, 0.05);
        const auto half = [&](std::int64_t size) {
            return bench_.rate_mb(firmvia, size) >= peak / 2;
        };
        const std::int64_t high = first_where(64, 4096, half, 8);
        add_figure("half of the peak is reached at", 864, "B", "7.2", static_cast<double>(high),
                   0.1);
    }

    std::uint64_t packets_of(const char* words) {
        Question question;
        question.size = 5000;
        question.rounds = 1;
        return bench_.one_way(bench_.trial(words), question).packets;
    }
    void packets() {
        const auto at_1000 = packets_of("packet=1000"), at_1024 = packets_of("packet=1024");
        add({"packets of a message of 5000 B", "6 of 1000 B, 5 of 1024 B (7.2.2)",
             std::to_string(at_1000) + ", " + std::to_string(at_1024), "", "exact", false,
             at_1000 == 6 && at_1024 == 5, true, ""});
        const double of_1000 = bench_.rate_mb(bench_.trial("packet=1000"), 65536);
        const double of_1024 = bench_.rate_mb(bench_.trial("packet=1024"), 65536);
        add({"peak with 1000 B against 1024 B", "clearly worse (figure 13)",
             text_of(of_1000, "against ") + text_of(of_1024, "MB/s"), percent(of_1000, of_1024),
             "the sign, 2 %", false, of_1000 < 0.98 * of_1024, true, "the page boundary's packet"});
        const double of_1536 = bench_.rate_mb(bench_.trial("packet=1536"), 65536);
        add({"peak with 1536 B against 1024 B", "slightly worse (figure 13)",
             text_of(of_1536, "against ") + text_of(of_1024, "MB/s"), percent(of_1536, of_1024),
             "the sign", false, of_1536 < of_1024, false,
             "paper: its Send-FIFO cannot be the cause, since one of 16 KB changes none of these "
             "figures: the receiver's DMA is the slow end (7.2.1), and 1366 to 2032 B start 3 of "
             "them a page instead of 4. From 1025 to 1365 B it is 4 uneven ones, and ours is "
             "slightly worse, too: 96.78 MB/s at 1200 B"});
    }

    std::uint64_t ahead(const char* words) {
        Question question;
        question.size = 65536;
        question.rounds = 1;
        return bench_.one_way(bench_.trial(words), question).sender.ahead_most;
    }
    void fifo() {
        const auto of_1024 = ahead("packet=1024"), of_1536 = ahead("packet=1536");
        add({"packets ahead in the Send-FIFO", "4 of 1 KB, 3 or 2 of more (7.2.2)",
             std::to_string(of_1024) + " of 1 KB, " + std::to_string(of_1536) + " of 1.5 KB", "",
             "exact", false, of_1024 == 4 && of_1536 == 3, true, ""});
    }

    /// A stream over a cache of descriptors that is smaller than what is posted.
    void refills() {
        Question question;
        question.size = 1024;
        question.stream_bytes = 1 << 18;
        const auto small = bandwidth(bench_.trial("rqc=8,watermark=4"), question);
        const double all = bench_.rate_mb(bench_.trial("rqc=64"), 1024);
        const double few = small ? small->bytes_per_second / 1e6 : 0;
        const bool asked = small && small->receiver.refill_interrupts > 0;
        add({"1 KB, 8 of 32 receives cached against all", "refills are not in the way (6.2.2)",
             small ? text_of(few, "against ") + text_of(all, "MB/s") : "it stands still",
             percent(few, all), "5 %", false, asked && within(few, all, 0.05), true, ""});
    }

    void words() {
        const auto dma_wins = [&](std::int64_t words) {
            return bench_.pio_ns(words) > bench_.fetch_ns(words * 4);
        };
        const std::int64_t most = first_where(0, 64, dma_wins) - 1;
        add({"descriptor: PIO beats DMA up to", "5 words (5.3)", std::to_string(most) + " words",
             "", "exact", false, most == 5, true, ""});
        const auto dma_is_faster = [&](std::int64_t words) {
            return bench_.overhead_ns("pio=64", words * 4) >
                   bench_.overhead_ns("payload=dma", words * 4);
        };
        const std::int64_t bytes = 4 * (first_where(0, 16, dma_is_faster) - 1);
        add({"payload: PIO beats DMA on the NIC up to", "16 B (figure 10)",
             std::to_string(bytes) + " B", "", "4 B", false, std::abs(bytes - 16) <= 4, true, ""});
    }

    void doorbells() {
        const double one = bench_.one_way_us(bench_.trial("doorbell=d1,at=2"), 4);
        const double many = bench_.one_way_us(bench_.trial("doorbell=d1,at=2", 33), 4);
        const double central = bench_.one_way_us(bench_.trial(), 4);
        const auto central_wins = [&](std::int64_t count) {
            return bench_.one_way_us(bench_.trial("doorbell=d1,at=2", count), 4) >= central;
        };
        const std::int64_t vis = first_where(0, 33, central_wins);
        add_figure(
            "D1: each active VI more", 0.6, "us", "5.4", (many - one) / 32, 0.1, false,
            ("with AT2, D2 and AT1 are faster from " + std::to_string(vis) + " VIs on").c_str());
    }

    void completions() {
        const double one = bench_.one_way_us(bench_.trial(), 128);
        const double many = bench_.one_way_us(bench_.trial(), 128, 41);
        add_figure("CQ2: each work queue more", 0.08, "us", "table 3", (many - one) / 40, 0.05);
        const double entries = bench_.one_way_us(bench_.trial("cq=1"), 128);
        const auto entries_win = [&](std::int64_t count) {
            return bench_.one_way_us(bench_.trial(), 128, count) >= entries;
        };
        const std::int64_t queues = first_where(0, 64, entries_win);
        add({"CQ1 is faster from", "20 queues (table 3)", std::to_string(queues) + " queues",
             percent(static_cast<double>(queues), 20), "exact", false, queues == 20, false,
             "paper: it counts the start of the entry's DMA alone, 1.61 us, which is 20 looks of "
             "0.08; ours also moves its 8 bytes in 0.07 us and the program looks at it in 0.08: 22 "
             "looks, and the 23rd is slower"});
    }

    void translations() {
        Question question;
        question.size = 64;
        question.rounds = 512;
        question.buffers = 96;
        const Latency found = bench_.one_way(bench_.trial("at=3,doorbell=d1,cache=64"), question);
        const auto looks =
            static_cast<double>(found.sender.translations + found.receiver.translations);
        const auto misses = static_cast<double>(found.sender.misses + found.receiver.misses);
        const double cost = static_cast<double>(found.translation.ns) / looks / 1e3;
        add_figure(
            "AT3: DMA of a translation", 1.78 * misses / looks, "us", "table 2: 1.78 x misses",
            cost, 0.05, false,
            "the DMA alone, as in the paper; firmware that starts it and waits comes on top");
        Trial table = bench_.trial("at=2,doorbell=d1");
        table.load.registered = std::int64_t{256} << 20;
        const auto made = design::make(bench_.machine(), table.design, table.load);
        const std::int64_t memory = made ? made->translation->nic_memory(table.load) : 0;
        const std::int64_t kilobytes = memory / 1024;
        add({"AT2: NIC memory for 256 MB", "256 KB (3.1)", std::to_string(kilobytes) + " KB", "",
             "exact", false, kilobytes == 256, true, ""});
    }

    /// What reception stands still for, for each page of a message.
    void rdma() {
        constexpr std::int64_t pages = 4;
        const std::int64_t size = pages * bench_.machine().costs.page;
        const Latency translated = bench_.write(bench_.trial("rdma=translated"), size);
        const Latency buffered = bench_.write(bench_.trial("rdma=buffered"), size);
        const auto fetched = [](const Latency& of) {
            return static_cast<double>(of.translation.ns) / 1e3 / pages / 64;
        };
        const double ours = fetched(translated), none = fetched(buffered);
        const std::string slower =
            text_of(buffered.mean_ns / 1e3, "us through the kernel's buffer, ") +
            text_of(translated.mean_ns / 1e3, "us translated");
        add({"RDMA: reception waits for a page's address",
             "translated on arrival; not with a kernel's buffer (6.2.6)",
             text_of(ours, "against ") + text_of(none, "us"), "", "the sign", false,
             ours > 1 && none == 0, true,
             "alone the kernel's way is slower, by its interrupt and copy: 16 KB take " + slower});
    }

    void host() {
        const Explanation found = bench_.one_message(bench_.trial(), 64);
        std::int64_t nanoseconds_of_host = 0;
        for (const Happening& happening : found.happenings) {
            const bool post = happening.share == Share::user || happening.share == Share::kernel ||
                              happening.share == Share::system_call ||
                              happening.share == Share::pio;
            const bool sender = happening.resource.starts_with("host 0");
            if (post && sender) nanoseconds_of_host += happening.end_ns - happening.start_ns;
        }
        const bool exact = nanoseconds_of_host == 5820;
        add({"host overhead of a send", "5.82 us (table 4)",
             text_of(static_cast<double>(nanoseconds_of_host) / 1e3, "us"), "", "exact", false,
             exact, true,
             "its parts are table 4's; the table's \"us/word\" of PIO is of all words"});
    }

    Bench bench_;
};

}  // namespace

Rows firmvia_rows(const Machine& machine, const Without& without) {
    return FirmviaFigures(machine, without).all();
}

}  // namespace via::lab::study
