#include "bench/machine.hpp"

#include <gnu/libc-version.h>
#include <sys/utsname.h>

#include <ctime>
#include <fstream>
#include <iterator>

#include "bench/cpus.hpp"
#include "json.hpp"

namespace via::bench {

namespace {

std::string text_of(const char* path) {
    std::ifstream file(path);
    std::string text(std::istreambuf_iterator<char>(file), {});
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
}

std::string utc_now() {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    ::gmtime_r(&now, &parts);
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return text;
}

std::string_view trimmed(std::string_view text) {
    const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '"'; };
    while (!text.empty() && blank(text.front())) text.remove_prefix(1);
    while (!text.empty() && blank(text.back())) text.remove_suffix(1);
    return text;
}

}  // namespace

std::string value_in(std::string_view lines, std::string_view key) {
    while (!lines.empty()) {
        const std::string_view line = lines.substr(0, lines.find('\n'));
        lines.remove_prefix(std::min(line.size() + 1, lines.size()));
        const std::size_t mark = line.find_first_of(":=");
        if (mark == std::string_view::npos || trimmed(line.substr(0, mark)) != key) continue;
        return std::string(trimmed(line.substr(mark + 1)));
    }
    return {};
}

std::string machine_json(const std::vector<AskedQuestion>& asked, const std::string& options) {
    utsname system{};
    ::uname(&system);
    cli::JsonLine line("via-bench-machine-1");
    line.text("time", utc_now());
    line.text("processor", value_in(text_of("/proc/cpuinfo"), "model name"));
    line.text("architecture", system.machine).number("processors", online_processors());
    line.text("memory", value_in(text_of("/proc/meminfo"), "MemTotal"));
    line.text("huge_pages", text_of("/sys/kernel/mm/transparent_hugepage/enabled"));
    line.text("governor", text_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"));
    line.text("system", value_in(text_of("/etc/os-release"), "PRETTY_NAME"));
    line.text("kernel", fmt::format("{} {} {}", system.sysname, system.release, system.version));
    line.open("versions").text("openvia", VIA_VERSION).text("libc", ::gnu_get_libc_version());
    line.text("compiler", __VERSION__).close();
    line.text("options", options);
    for (const AskedQuestion& question : asked) {
        line.open(question.name).text("command", question.command).number("code", question.code);
        line.figure("seconds", question.seconds).close();
    }
    return line.line();
}

}  // namespace via::bench
