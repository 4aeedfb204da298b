#include "lab/exec/process.hpp"

#include <fstream>

namespace via::lab::exec {
namespace {

/// Empty: it has ended, or the system does not tell.
std::string line_of(pid_t pid, const char* name) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/" + name);
    std::string line;
    std::getline(file, line);
    return line;
}

}  // namespace

std::string describe_process(pid_t pid) {
    const std::string name = line_of(pid, "comm");
    const std::string number = "process " + std::to_string(pid);
    return name.empty() ? number : name + " (" + number + ")";
}

/// The state stands behind the name, which is in parentheses and may hold any letters.
std::string what_it_does(pid_t pid) {
    const std::string stat = line_of(pid, "stat");
    const std::size_t end = stat.rfind(") ");
    if (end == std::string::npos) return "has ended";
    const char state = stat[end + 2];
    if (state == 'R') return "runs: it computes, or polls memory";
    if (state == 'T' || state == 't') return "was stopped";
    const std::string where = line_of(pid, "wchan");
    const bool told = !where.empty() && where != "0";
    return "sleeps in the system" + (told ? " (" + where + ")" : std::string());
}

}  // namespace via::lab::exec
