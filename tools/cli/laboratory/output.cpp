#include "laboratory/output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "json.hpp"
#include "lab/design/list.hpp"
#include "lab/kernel/setting.hpp"

namespace via::cli {
namespace {

std::string us(double nanoseconds) { return fmt::format("{:.2f}", nanoseconds / 1e3); }

std::string share_name(std::size_t share) { return lab::name_of(static_cast<lab::Share>(share)); }

}  // namespace

std::string key_of(lab::Share share) {
    std::string name = lab::name_of(share);
    std::ranges::replace(name, ' ', '_');
    return name + "_us";
}

void LabOutput::head(std::vector<std::string> names) {
    if (!std::exchange(begun_, true)) table_.add(std::move(names));
}

void LabOutput::add(std::int64_t size, const lab::study::Latency& latency) {
    if (json_) {
        JsonLine line("via-lab-latency-1");
        line.text("machine", machine_).number("size", size).figure("us", latency.mean_ns / 1e3);
        line.figure("least_us", static_cast<double>(latency.least_ns) / 1e3);
        line.figure("most_us", static_cast<double>(latency.most_ns) / 1e3);
        line.text("busiest", latency.busiest).open("parts");
        for (std::size_t share = 0; share < lab::share_count; ++share)
            line.figure(key_of(static_cast<lab::Share>(share)), latency.parts_ns[share] / 1e3);
        lines_ += line.close().line();
        return;
    }
    std::vector<std::string> names = {"bytes", "us", "least", "most"};
    std::vector<std::string> row = {std::to_string(size), us(latency.mean_ns),
                                    us(static_cast<double>(latency.least_ns)),
                                    us(static_cast<double>(latency.most_ns))};
    for (std::size_t share = 0; parts_ && share < lab::share_count; ++share) {
        names.push_back(share_name(share));
        row.push_back(us(latency.parts_ns[share]));
    }
    names.push_back("busiest");
    row.push_back(latency.busiest);
    head(std::move(names));
    table_.add(std::move(row));
}

void LabOutput::add(std::int64_t size, const lab::study::Bandwidth& bandwidth) {
    const double packets =
        static_cast<double>(bandwidth.packets) / static_cast<double>(bandwidth.messages);
    if (json_) {
        JsonLine line("via-lab-bandwidth-1");
        line.text("machine", machine_).number("size", size);
        line.figure("bytes_per_second", bandwidth.bytes_per_second);
        line.number("messages", bandwidth.messages).figure("packets_per_message", packets);
        lines_ += line.text("busiest", bandwidth.busiest).line();
        return;
    }
    head({"bytes", "MB/s", "packets", "busiest"});
    table_.add({std::to_string(size), fmt::format("{:.2f}", bandwidth.bytes_per_second / 1e6),
                fmt::format("{:.4g}", packets), bandwidth.busiest});
}

std::string text_of(const lab::study::Explanation& explanation) {
    Table table;
    table.add({"  from us", "to us", "takes", "who", "share", "what"});
    for (const auto& one : explanation.happenings) {
        table.add({fmt::format("{} {:>8.3f}", one.on_path ? '*' : ' ',
                               static_cast<double>(one.start_ns) / 1e3),
                   fmt::format("{:>8.3f}", static_cast<double>(one.end_ns) / 1e3),
                   fmt::format("{:>7.3f}", static_cast<double>(one.end_ns - one.start_ns) / 1e3),
                   one.resource, lab::name_of(one.share), one.what});
    }
    std::string text = table.text(true);
    text += "\n*: the message's way; the rest went on beside it. Its parts:\n";
    Table parts;
    for (std::size_t share = 0; share < lab::share_count; ++share) {
        if (explanation.parts_ns[share] == 0) continue;
        parts.add(
            {"  " + share_name(share),
             fmt::format("{:.3f} us", static_cast<double>(explanation.parts_ns[share]) / 1e3)});
    }
    parts.add({"  all", fmt::format("{:.3f} us", static_cast<double>(explanation.total_ns) / 1e3)});
    return text + parts.text() + fmt::format("Most of it: {}\n", explanation.longest);
}

std::string json_of(const lab::study::Explanation& explanation) {
    std::string lines;
    for (const auto& one : explanation.happenings) {
        JsonLine line("via-lab-event-1");
        line.number("start_ns", one.start_ns).number("end_ns", one.end_ns);
        line.text("resource", one.resource).text("share", lab::name_of(one.share));
        lines += line.text("what", one.what).boolean("on_path", one.on_path).line();
    }
    return lines;
}

/// Which of the machine's numbers were set so that a figure comes out.
std::string calibrations_of(const lab::Machine& machine) {
    std::string text;
    for (const auto& [key, origin] : machine.origins) {
        if (origin.standing != lab::Standing::calibrated) continue;
        const std::string whose = origin.file.empty() ? "" : ", by " + origin.file;
        text += fmt::format("  {}: {}{}\n", key, origin.source, whose);
    }
    return text.empty() ? text : "Calibrated\n" + text;
}

std::string text_of(const lab::Machine& machine, const std::vector<lab::study::Row>& rows) {
    Table table;
    table.add({"figure", "paper", "ours", "difference", "within", "kind", "verdict"});
    std::string notes;
    for (const auto& row : rows) {
        const char* const kind = row.calibrated ? "calibrated" : "predicted";
        const char* const verdict = row.reproduced ? "reproduced"
                                    : row.expected ? "NOT ANY MORE"
                                                   : "not reproduced";
        table.add({row.figure, row.paper, row.ours, row.difference, row.within, kind, verdict});
        if (!row.note.empty()) notes += fmt::format("  {}: {}\n", row.figure, row.note);
    }
    return fmt::format("{}: {}\n{}{}{}\n", machine.name, machine.title, table.text(true),
                       calibrations_of(machine), notes.empty() ? "" : "Notes\n" + notes);
}

std::string json_of(const lab::Machine& machine, const std::vector<lab::study::Row>& rows) {
    std::string lines;
    for (const auto& row : rows) {
        JsonLine line("via-lab-row-1");
        line.text("machine", machine.name);
        line.text("figure", row.figure).text("paper", row.paper).text("ours", row.ours);
        line.text("difference", row.difference).text("within", row.within);
        line.boolean("calibrated", row.calibrated).boolean("reproduced", row.reproduced);
        lines += line.boolean("expected", row.expected).text("note", row.note).line();
    }
    return lines;
}

std::string text_of(const lab::Machine& machine) {
    std::string words;
    for (const auto& [word, value] : machine.design)
        words += fmt::format("{}{}={}", words.empty() ? "" : ",", word, value);
    return fmt::format("{}: {}\n  paper {}\n  design {}\n", machine.name, machine.title,
                       machine.paper, words);
}

std::string json_of(const lab::Machine& machine) {
    JsonLine line("via-lab-machine-1");
    line.text("machine", machine.name).text("title", machine.title).text("paper", machine.paper);
    line.open("costs");
    for (const lab::Field& field : lab::fields()) {
        const auto found = machine.origins.find(field.key);
        if (found == machine.origins.end()) continue;  // of parts that it does not have
        const lab::Origin& origin = found->second;
        line.open(field.key).number("value", machine.costs.*(field.place));
        line.text("standing", lab::name_of(origin.standing)).text("source", origin.source).close();
    }
    return line.close().line();
}

std::string text_of(const lab::Design& design, const lab::study::Trial& trial) {
    const lab::Load& load = trial.load;
    return fmt::format(
        "NIC memory for {} VIs with {} descriptors a receive queue and {} sends, {} bytes "
        "registered: {} of {} bytes (addresses {}, doorbells {}, descriptors {}, completions {}, "
        "payload {}, handles {})\n",
        load.vis, trial.design.find("rqc")->second, trial.design.find("csqc")->second,
        load.registered, design.nic_memory(load), trial.machine.costs.nic_memory,
        design.translation->nic_memory(load), design.doorbell->nic_memory(load),
        design.descriptors->nic_memory(load), design.completions->nic_memory(load),
        design.payload->nic_memory(load), design.lookups_memory(load));
}

std::string text_of_parts() {
    Table table;
    for (const auto& one : lab::design::alternatives())
        table.add({fmt::format("  {}={}", one.part, one.name), std::string(one.what)});
    for (const auto& one : lab::kernel::choices())
        table.add({fmt::format("  {}={}", one.word, one.value), std::string(one.what)});
    return "\nParts of a design\n" + table.text(true);
}

}  // namespace via::cli
