#include "lab/study/trace_rows.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "lab/study/bench.hpp"
#include "lab/study/figures.hpp"
#include "lab/study/replay.hpp"
#include "lab/study/sweep.hpp"

namespace via::lab::study {
namespace {

double compulsory(const Missed& of) {
    const auto all = static_cast<double>(std::max<std::uint64_t>(of.lookups, 1));
    return 100 * static_cast<double>(of.send_cold + of.receive_cold) / all;
}
/// Percent of look-ups that miss what was there before, as a run that goes on and on would.
double others(const Missed& of) { return of.percent() - compulsory(of); }

std::string joined(std::initializer_list<std::string_view> parts) {
    std::string all;
    for (const std::string_view part : parts) all += part;
    return all;
}

/// FirmVIA's figures 2 to 5, of each trace. The paper's programs are NAS's.
class TlbFigures : Figures {
public:
    TlbFigures(const std::vector<NamedTrace>& traces, std::uint32_t per_host)
        : traces_(traces), per_host_(per_host) {}

    std::vector<Row> all() {
        for (const NamedTrace& one : traces_) rows_of_one(one);
        return take();
    }

private:
    Missed at(const NamedTrace& one, const CacheShape& shape) const {
        return missed(one.trace, shape, per_host_);
    }
    static std::string parts_of(const Missed& of) {
        return text_of(compulsory(of), "% compulsory, ") + text_of(others(of), "% others");
    }
    void alike(const std::string& figure, const char* paper, const Missed& one, const Missed& other,
               const char* note) {
        add({figure, paper, text_of(one.percent(), "and ") + text_of(other.percent(), "%"), "",
             "1 point", false, std::abs(one.percent() - other.percent()) <= 1, false, note});
    }
    void rows_of_one(const NamedTrace& one) {
        const Missed small = at(one, {128, 1, 1}), large = at(one, {1024, 1, 1});
        add({one.name + ": misses of 128 entries, direct-mapped",
             "over 80 % in four of NAS's at 4 processes (figure 2)", parts_of(small), "",
             "over 80 %", false, small.percent() > 80, false, ""});
        add({one.name + ": misses of 1024 entries, direct-mapped",
             "negligible, but IS (figures 3 and 5)", parts_of(large), "", "others 5 %", false,
             others(large) < 5, false, ""});
        alike(one.name + ": 1024 entries, direct-mapped and of 8 ways", "identical (5.2, its text)",
              large, at(one, {1024, 1, 8}), "");
        alike(one.name + ": 1024 entries direct-mapped, and 128 of 8 ways",
              "identical (captions of figures 3 and 5)", large, at(one, {128, 1, 8}),
              "the text has 1024 entries of 8 ways, which is 128 sets: the captions may mean that");
        const Missed victims = at(one, {128, 1, 1, 8});
        add({one.name + ": 128 entries, without and with a victim cache of 8",
             "the gain is minimal (5.2)",
             text_of(small.percent(), "and ") + text_of(victims.percent(), "%"),
             percent(victims.percent(), small.percent()), "a tenth", false,
             victims.percent() >= 0.9 * small.percent(), false, ""});
    }

    const std::vector<NamedTrace>& traces_;
    std::uint32_t per_host_;
};

/// What 001's section V.C reads from table III and figure 5, with its shapes divided.
class SweepFigures : Figures {
public:
    SweepFigures(const std::vector<NamedTrace>& traces, const TraceQuestion& question,
                 const Machine& machine)
        : traces_(traces), question_(question), bench_(machine) {}

    Rows all() {
        extremes();
        lines();
        conflicts();
        sizes();
        ways();
        classes();
        best();
        execution();
        if (bench_.error()) return std::unexpected(*bench_.error());
        if (error_) return std::unexpected(*error_);
        std::vector<Row> rows = take();
        if (rows.empty())
            return std::unexpected(
                "no trace is of a program of 001 (fft, lu, ocean, radix, water-nsquared, "
                "water-spatial, volrend, raytrace), by the file's name");
        return rows;
    }

private:
    static constexpr std::string_view programs[] = {
        "fft", "lu", "ocean", "radix", "water-nsquared", "water-spatial", "volrend", "raytrace"};
    static constexpr std::string_view insensitive[] = {"ocean", "water-nsquared", "water-spatial",
                                                       "volrend", "raytrace"};

    /// Of a shape of the paper: C8K is 8.
    std::optional<Missed> found_at(std::string_view program, std::int64_t kilo, std::int64_t line,
                                   std::int64_t associativity) const {
        const auto found = std::ranges::find(traces_, program, &NamedTrace::name);
        const CacheShape shape{kilo * 1024 / question_.divide, line / question_.divide_lines,
                               associativity};
        if (found == traces_.end() || shape.line < 1 || shape.entries < shape.line * shape.ways)
            return std::nullopt;
        return missed(found->trace, shape, question_.per_host);
    }
    std::optional<double> at(std::string_view program, std::int64_t kilo, std::int64_t line,
                             std::int64_t associativity) const {
        const auto found = found_at(program, kilo, line, associativity);
        return found ? std::optional(found->percent()) : std::nullopt;
    }
    static constexpr const char* short_run = ": runs of seconds look a page up a few times";

    static double fewer(double before, double after) {
        return before > 0 ? (1 - after / before) * 100 : 0;
    }
    void extremes() {
        double least = 100, most = 0;
        bool any = false;
        for (const std::string_view program : programs) {
            for (const std::int64_t line : {8, 128}) {
                for (const std::int64_t kilo : {8, 32}) {
                    const auto found = at(program, kilo, line, 2);
                    if (!found) continue;
                    any = true;
                    least = std::min(least, *found);
                    most = std::max(most, *found);
                }
            }
        }
        if (any)
            add({"misses of all programs, A2", "0 to about 40 % (figure 5)",
                 text_of(least, "to ") + text_of(most, "%"), "", "0 to 45 %", false, most <= 45,
                 false, ""});
    }
    void lines() {
        for (const std::string_view program : programs) {
            const auto first = at(program, 8, 8, 2), last = at(program, 8, 128, 2);
            if (!first || !last || program == "ocean") continue;
            add({std::string(program) + ": lines of 8 and of 128 entries, C8 A2",
                 "long lines prefetch (V.C)", text_of(*first, "and ") + text_of(*last, "%"), "",
                 "the sign", false, *last < *first, false, ""});
        }
    }
    void conflicts() {
        const auto first = at("ocean", 8, 8, 2), last = at("ocean", 8, 128, 2);
        const auto wide = at("ocean", 32, 128, 2);
        if (!first || !last || !wide) return;
        add({"ocean: lines of 8 and of 128 entries, C8 A2; C32", "conflicts below 32K (V.C)",
             text_of(*first, "and ") + text_of(*last, "%; ") + text_of(*wide, "%"), "", "the sign",
             false, *last > *first && *wide < *last, false, ""});
    }
    void sizes() {
        for (const std::string_view program : {"fft", "lu"}) {
            const auto half = found_at(program, 16, 128, 4), whole = found_at(program, 32, 128, 4);
            if (!half || !whole) continue;
            add({std::string(program) + ": misses of C32 less than of C16, L128 A4",
                 "more than half (V.C)", text_of(fewer(half->percent(), whole->percent()), "%"), "",
                 "50 %", false, whole->percent() < half->percent() / 2, false,
                 others(*half) == 0
                     ? std::string("all of them are compulsory") + short_run
                     : text_of(fewer(others(*half), others(*whole)), "% of those not compulsory") +
                           short_run});
        }
    }
    void ways() {
        for (const std::string_view program : {"fft", "lu", "radix"}) {
            const auto two = found_at(program, 16, 64, 2), four = found_at(program, 16, 64, 4);
            const auto eight = found_at(program, 16, 64, 8);
            if (!two || !four || !eight) continue;
            const double first = fewer(two->percent(), four->percent());
            const double second = fewer(four->percent(), eight->percent());
            add({std::string(program) + ": fewer misses with 4 ways than with 2, 8 than 4, C16 L64",
                 "it helps, and then little (V.C)", text_of(first, "and ") + text_of(second, "%"),
                 "", "the sign", false, first > 0 && first > second, false,
                 "not compulsory: " + text_of(others(*two), "% by 2 ways, ") +
                     text_of(others(*four), "% by 4, ") + text_of(others(*eight), "% by 8")});
        }
    }
    void classes() {
        for (const std::string_view program : insensitive) {
            const auto found = found_at(program, 16, 64, 4);
            if (!found) continue;
            add({std::string(program) + ": misses, C16 L64 A4", "mostly 0 to 2 % (V.C)",
                 text_of(found->percent(), "%"), "", "2 %", false, found->percent() <= 2, false,
                 text_of(others(*found), "% not compulsory") + short_run});
        }
    }
    void best() {
        double most = 0;
        bool any = false;
        for (const std::string_view program : programs) {
            const auto ours = at(program, 16, 64, 4), large = at(program, 32, 128, 4);
            if (!ours || !large) continue;
            any = true;
            most = std::max(most, *ours - *large);
        }
        if (any)
            add({"C16 L64 A4 misses more than C32 L128 A4 by at most", "the best trade (V.C)",
                 text_of(most, "points"), "", "2 points", false, most <= 2, false, ""});
    }

    // Execution -------------------------------------------------------------------------------

    /// Messages of a program, in ms: all of its processes', one after the other.
    struct Taken {
        double first = 0;
        double again = 0;  ///< of the same once more, by caches that have seen it
    };
    Taken taken_by(const Trace& trace, std::string_view words) {
        const auto found =
            replay(bench_.trial(words), trace, {.per_host = question_.per_host, .passes = 2});
        if (!found) {
            if (!error_) error_ = found.error();
            return {};
        }
        const auto ms = [&](std::size_t pass) {
            return static_cast<double>(found->passes[pass].time.ns) / 1e6;
        };
        return {ms(0), ms(1)};
    }
    /// Of table III, with which the program misses least once it has been seen, and then at first.
    std::optional<CacheShape> best_of(const Trace& trace) const {
        const auto misses = [&](const CacheShape& shape, std::uint32_t passes) {
            const Missed found = missed(trace, shape, question_.per_host, passes);
            return found.send + found.receive;
        };
        std::optional<CacheShape> best;
        std::pair<std::uint64_t, std::uint64_t> least;
        for (const CacheShape& shape : table_of_shapes(question_.divide, question_.divide_lines)) {
            const std::uint64_t first = misses(shape, 1);
            const std::pair found{misses(shape, 2) - first, first};
            if (best && found >= least) continue;
            best = shape;
            least = found;
        }
        return best;
    }
    /// The paper has no times of its processors. So computing is what our kernels compute. Its
    /// figure 7 has each program by the caches that are the best for it.
    void execution() {
        for (const auto& [program, instructions] : computed) {
            const auto found = std::ranges::find(traces_, program, &NamedTrace::name);
            if (found == traces_.end()) continue;
            const auto best = best_of(found->trace);
            if (!best) continue;
            const std::string entries = std::to_string(best->entries),
                              line = std::to_string(best->line), ways = std::to_string(best->ways);
            const Taken fixed = taken_by(found->trace, "at=2,cbh=static,pch=static");
            const Taken cached =
                taken_by(found->trace, joined({"cache=", entries, ",line=", line, ",ways=", ways}));
            const double computing = instructions / instructions_a_ms;
            const double first = (cached.first - fixed.first) / (computing + fixed.first) * 100;
            const double again = (cached.again - fixed.again) / (computing + fixed.again) * 100;
            const bool is_the_one = program == "radix";
            add({std::string(program) + ": takes longer by dynamic look-up, the best caches",
                 is_the_one ? "more than 3 % (figure 7)" : "at most 3 % (figure 7)",
                 text_of(again, "%, at first ") + text_of(first, "%"), "", "3 %", false,
                 (again > 3) == is_the_one, false,
                 joined({"C", entries, " L", line, " A", ways, ": ",
                         text_of(computing, "ms of computing, "),
                         text_of(fixed.again, "of messages; "),
                         text_of(cached.again - fixed.again, "more by misses, "),
                         text_of(cached.first - fixed.first, "at first")})});
        }
    }

    struct Computed {
        std::string_view program;
        double instructions;
    };
    /// Of all its processes: what callgrind counts in the kernel of `via-pages PROGRAM 1`, halved,
    /// since that runs it twice.
    static constexpr Computed computed[] = {{"fft", 7.45e6},
                                            {"lu", 377e6},
                                            {"ocean", 5.95e6},
                                            {"radix", 7.75e6},
                                            {"water-nsquared", 19.8e6},
                                            {"water-spatial", 9.73e6},
                                            {"volrend", 40.9e6},
                                            {"raytrace", 318e6}};
    static constexpr double instructions_a_ms =
        800e3;  ///< 800 MHz (table II); one a cycle: assumed

    const std::vector<NamedTrace>& traces_;
    const TraceQuestion& question_;
    Bench bench_;
    std::optional<std::string> error_;
};

}  // namespace

std::expected<std::vector<Row>, std::string> trace_rows(std::string_view study,
                                                        const std::vector<NamedTrace>& traces,
                                                        const TraceQuestion& question,
                                                        const Machine& machine) {
    if (study == "firmvia") return TlbFigures(traces, question.per_host).all();
    if (study == "handles") return SweepFigures(traces, question, machine).all();
    return std::unexpected(std::string(study) + " has no figures of traces");
}

}  // namespace via::lab::study
