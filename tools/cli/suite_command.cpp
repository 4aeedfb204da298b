// `via bench suite`: runs the published VIA benchmarks one after the other, each by a `via bench`
// of its own, and keeps what they print, with a description of the machine, in a folder.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "bench/clock.hpp"
#include "bench/file_handle.hpp"
#include "bench/machine.hpp"
#include "bench/suite.hpp"
#include "bench/types.hpp"
#include "commands.hpp"
#include "console/output.hpp"
#include "report/compare.hpp"

namespace via::cli {

namespace {

using namespace via::bench;
using Words = std::vector<std::string>;

constexpr std::size_t quick_rounds = 3;  // to look at, not to compare

int complain(const std::string& what, int code) {
    console::complain("via bench suite: {}", what);
    return code;
}

std::string list_of(const Words& values) {
    std::string text;
    for (const std::string& value : values) text += (text.empty() ? "" : ",") + value;
    return text;
}

// What the questions have in common. Operations and registering know less of it.
Words common_words(const BenchOptions& options, const std::string& bench) {
    const auto given = [&](const char* name) {
        return std::find(options.given.begin(), options.given.end(), name) != options.given.end();
    };
    Words words{"--device", options.device, "--rounds",
                std::to_string(given("--rounds") ? options.rounds
                               : options.quick   ? quick_rounds
                                                 : report::least_rounds)};
    const auto add = [&](const char* name, const std::string& value) {
        if (given(name)) words.insert(words.end(), {name, value});
    };
    add("--cpus", options.cpus);
    if (bench == "register") return words;
    add("--netns", list_of(options.netns));
    if (options.keep_disturbed) words.emplace_back("--keep-disturbed");
    words.insert(words.end(),
                 {"--max-seconds", std::to_string(given("--max-seconds") ? options.max_seconds
                                                  : options.quick        ? 20
                                                                         : 45)});
    if (bench == "operations") return words;
    add("--mode", options.mode);
    add("--near-below", fmt::format("{}", options.near_below_ns));
    add("--far-above", fmt::format("{}", options.far_above_ns));
    return words;
}

// Runs `via bench WORDS`, its standard output behind what is in `file`. Returns the exit code.
Result<int> run(const Words& words, int file) {
    Words all{"via", "bench"};
    all.insert(all.end(), words.begin(), words.end());
    std::vector<char*> pointers;
    for (std::string& word : all) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    std::fflush(nullptr);
    const pid_t parent = ::getpid();
    const pid_t pid = ::fork();
    if (pid < 0) return fail_errno("fork");
    if (pid == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() == parent && ::dup2(file, STDOUT_FILENO) >= 0)
            ::execv("/proc/self/exe", pointers.data());
        ::_exit(exit_failed);
    }
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) return fail_errno("waitpid");
    }
    if (!WIFEXITED(status)) return fail("'via {}' ended by a signal", joined(words));
    return WEXITSTATUS(status);
}

Result<AskedQuestion> ask(const SuiteQuestion& question, const BenchOptions& options,
                          const std::filesystem::path& folder) {
    const std::filesystem::path final_path = folder / (question.name + ".jsonl");
    const std::string path = final_path.string() + ".new";
    const FileHandle file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (!file) return fail_errno(fmt::format("cannot write {} (open)", path));
    const bool one_host = options.device.starts_with("shm") && options.netns.empty();
    AskedQuestion asked{question.name, {}, 0, 0};
    const std::int64_t start_ns = now_ns();
    const Words common = common_words(options, question.words.front());
    for (const Words& words : commands_of(question, common, options.against, one_host)) {
        asked.command += (asked.command.empty() ? "via bench " : "; via bench ") + joined(words);
        const auto code = run(words, file.get());
        if (!code) return std::unexpected(code.error());
        // Failed says more than inconclusive.
        if (*code != exit_good && asked.code != exit_failed) {
            asked.code = *code == exit_inconclusive ? exit_inconclusive : exit_failed;
        }
    }
    asked.seconds = static_cast<double>(now_ns() - start_ns) / 1e9;
    // Earlier results are not given away for what may lack lines, on a full disk for instance.
    if (asked.code == exit_failed && ::access(final_path.c_str(), F_OK) == 0) {
        complain(fmt::format("{} stays as it was; what came is in {}", final_path.string(), path),
                 exit_failed);
        return asked;
    }
    if (::rename(path.c_str(), final_path.c_str()) != 0)
        return fail_errno(fmt::format("cannot name {} {} (rename)", path, final_path.string()));
    return asked;
}

// What an earlier run of single questions left in the folder, so that theirs stay in the page.
std::vector<AskedQuestion> asked_before(const std::filesystem::path& folder,
                                        const std::vector<SuiteQuestion>& questions) {
    std::ifstream file(folder / "machine.json");
    const auto machine = nlohmann::json::parse(file, nullptr, false);
    std::vector<AskedQuestion> all;
    if (!machine.is_object()) return all;
    for (const SuiteQuestion& question : questions) {
        const auto entry = machine.find(question.name);
        if (entry == machine.end() || !entry->is_object()) continue;
        const auto command = entry->find("command");
        const auto code = entry->find("code");
        const auto seconds = entry->find("seconds");
        if (command == entry->end() || !command->is_string() || code == entry->end() ||
            !code->is_number_integer() || seconds == entry->end() || !seconds->is_number())
            continue;  // somebody else's
        all.push_back({question.name, *command, *code, *seconds});
    }
    return all;
}

// Those named, or all.
Result<std::vector<SuiteQuestion>> wanted_questions(const BenchOptions& options) {
    const bool same_memory = options.device.starts_with("shm") && options.netns.empty();
    std::vector<SuiteQuestion> all = suite_questions(options.quick);
    std::erase_if(
        all, [&](const SuiteQuestion& question) { return question.in_segments && !same_memory; });
    if (options.places.empty()) return all;
    std::vector<SuiteQuestion> named;
    for (const std::string& name : options.places) {
        const auto at = std::find_if(all.begin(), all.end(), [&](const SuiteQuestion& question) {
            return question.name == name;
        });
        if (at == all.end()) {
            Words names;
            for (const SuiteQuestion& question : all) names.push_back(question.name);
            return fail("no question '{}'; there are {}", name, list_of(names));
        }
        named.push_back(*at);
    }
    return named;
}

Status write_machine(const std::filesystem::path& folder, const std::vector<AskedQuestion>& asked,
                     const BenchOptions& options) {
    const std::filesystem::path path = folder / "machine.json";
    std::ofstream file(path);
    file << machine_json(asked, joined(common_words(options, "latency")));
    return file.flush() ? Status{}
                        : fail_errno(fmt::format("cannot write {} (open, write)", path.string()));
}

}  // namespace

int run_bench_suite(const BenchOptions& options) {
    const auto questions = wanted_questions(options);
    if (!questions) return complain(questions.error().what, exit_usage);
    const std::filesystem::path folder = options.output;
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error)
        return complain(fmt::format("cannot make {} (mkdir): {}", folder.string(), error.message()),
                        exit_failed);
    std::vector<AskedQuestion> all;
    if (!options.places.empty()) all = asked_before(folder, suite_questions(options.quick));
    int worst = exit_good;
    for (const SuiteQuestion& question : *questions) {
        const auto asked = ask(question, options, folder);
        if (!asked) return complain(asked.error().what, exit_failed);
        fmt::print("{:<22} {:>6.1f} s  {}\n", asked->name, asked->seconds,
                   asked->code == exit_good           ? "done"
                   : asked->code == exit_inconclusive ? "inconclusive"
                                                      : "failed");
        console::flush_output();
        if (worst != exit_failed && asked->code != exit_good) worst = asked->code;
        std::erase_if(all, [&](const AskedQuestion& old) { return old.name == asked->name; });
        all.push_back(*asked);
        if (auto written = write_machine(folder, all, options); !written) {
            return complain(written.error().what, exit_failed);
        }
    }
    fmt::print("{} files and machine.json are in {}\n", questions->size(), folder.string());
    return worst;
}

}  // namespace via::cli
