// Results of via bench become a machine of the laboratory.
#include "laboratory/measured.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "lab/file/machine_file.hpp"

namespace via::cli::measured_test {

std::string operation(const char* name, double us, const char* device = "shm") {
    return fmt::format(R"({{"schema":"via-bench-operations-1","bench":"operations","device":"{}",)"
                       R"("operation":"{}","size":null,"unit":"us","median":{}}})"
                       "\n",
                       device, name, us);
}

std::string latency(const char* channel, std::uint64_t size, double us, const char* mode) {
    return fmt::format(
        R"({{"schema":"via-bench-1","bench":"latency","device":"{}","ours":{},"op":"send",)"
        R"("size":{},"unit":"us","median":{},"values":[{}],"rounds":1,"dropped":0,"mode":"{}"}})"
        "\n",
        channel, std::string_view(channel) == "shm" ? "true" : "false", size, us, us, mode);
}

std::string operations() {
    return operation("null system call", 0.14) + operation("post send", 0.9, "udp") +
           operation("post send", 0.03) + operation("receive done", 0.08) +
           operation("post receive", 0.02) + operation("CQ done, nothing there", 0.01) +
           operation("notify to handler", 7.8);
}

std::string latencies() {
    return latency("shm", 8, 0.4, "far") + latency("shm", 4096, 0.2, "near") +
           latency("line", 8, 0.06, "near") + latency("line", 8, 0.27, "far") +
           latency("two-copy", 65'536, 2.06, "near") + latency("shm", 8, 0.08, "near") +
           latency("two-copy", 1 << 20, 50.06, "near");
}

std::expected<MeasuredNic, std::string> measured(const std::string& text) {
    const auto run = report::parse_run("a", text);
    EXPECT_TRUE(run.has_value()) << run.error().what;
    return measured_nic({*run});
}

TEST(LabMeasured, TakesOperationsOfShmAndLatenciesOfOneMode) {
    const auto nic = measured(operations() + latencies());
    ASSERT_TRUE(nic.has_value()) << nic.error();
    EXPECT_EQ(nic->post_send, 0.03);
    EXPECT_EQ(nic->mode, "near");
    EXPECT_EQ(nic->line, 0.06);
    const std::vector<std::pair<std::int64_t, double>> ours = {{8, 0.08}, {4096, 0.2}};
    EXPECT_EQ(nic->latencies, ours);
}

TEST(LabMeasured, AsksTheSystemForTheSecondCache) {
    const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "caches";
    const auto write = [&](int index, const char* what, const char* text) {
        const auto place = folder / ("index" + std::to_string(index));
        std::filesystem::create_directories(place);
        std::ofstream(place / what) << text << '\n';
    };
    write(0, "level", "1");
    write(1, "level", "2");
    write(1, "type", "Unified");
    write(1, "size", "2048K");
    const auto found = cache_of_system(folder);
    ASSERT_TRUE(found.has_value()) << found.error();
    EXPECT_EQ(found->bytes, 2 << 20);
    EXPECT_EQ(found->source, folder.string() + "/index1");
    write(1, "size", "much");
    EXPECT_EQ(cache_of_system(folder).error(),
              folder.string() + "/index1/size: \"much\" is no number of K");
    write(1, "type", "Instruction");
    EXPECT_EQ(cache_of_system(folder).error(),
              folder.string() + " does not say what a processor's second cache holds");
    std::filesystem::remove_all(folder);
}

TEST(LabMeasured, SaysWhatNobodyMeasuredAndWhatDoes) {
    const auto no_operations = measured(latencies());
    ASSERT_FALSE(no_operations.has_value());
    EXPECT_EQ(no_operations.error(),
              "nobody measured \"post send\" of shm: via bench operations --json");
    const auto no_limits = measured(
        operations() + latency("shm", 8, 0.08, "near") + latency("line", 8, 0.06, "far") +
        latency("two-copy", 65'536, 2.06, "near") + latency("two-copy", 1 << 20, 50, "near"));
    ASSERT_FALSE(no_limits.has_value());
    EXPECT_NE(no_limits.error().find("--against line,two-copy"), std::string::npos);
}

TEST(LabMeasured, ItsFileIsAMachineWithThoseCosts) {
    const auto nic = measured(operations() + latencies());
    ASSERT_TRUE(nic.has_value()) << nic.error();
    const auto machine = lab::file::parse(
        machine_text(*nic, {1 << 20, "the system"}, "a \"good\" processor"), "mine.toml");
    ASSERT_TRUE(machine.has_value()) << machine.error();
    EXPECT_EQ(machine->costs.user_post, 30);
    EXPECT_EQ(machine->costs.software_line, 60);
    EXPECT_EQ(machine->costs.software_receive, 20) << "less its line";
    EXPECT_EQ(machine->costs.link, 65'536'000'000) << "64 KB twice in 2 us";
    EXPECT_EQ(machine->costs.software_far, 41'943'000'000) << "1 MB twice in 50 us";
    EXPECT_EQ(machine->costs.software_cache, 1 << 20);
    EXPECT_EQ(machine->costs.software_spin, 2000);
    EXPECT_EQ(machine->origins.at("software.line").source, "via bench latency: line, 8 B");
}

TEST(LabMeasured, AReceiveThatIsQuickerThanItsLineCostsNothingMore) {
    MeasuredNic nic = measured(operations() + latencies()).value();
    nic.receive_done = 0.055;
    const auto machine =
        lab::file::parse(machine_text(nic, {1 << 20, "the system"}, "a"), "mine.toml");
    ASSERT_TRUE(machine.has_value()) << machine.error();
    EXPECT_EQ(machine->costs.software_receive, 0);
}

}  // namespace via::cli::measured_test
