#include "mpi/command.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace command_test {
namespace {

using namespace via::cli::mpi;
using Words = std::vector<std::string>;

const Words added{"--mca",
                  "pml",
                  "cm",
                  "--mca",
                  "mtl",
                  "ofi",
                  "--mca",
                  "osc",
                  "^ucx",
                  "--mca",
                  "mtl_ofi_provider_include",
                  "via",
                  "-x",
                  "FI_VIA_RDM=1"};

Surroundings user() { return {.mpirun = "mpirun", .provider_folder = "/lib/f", .variables = {}}; }

Words after(Words first, const Words& more) {
    first.insert(first.end(), more.begin(), more.end());
    return first;
}

TEST(MpirunCommand, PutsTheOptionsBeforeTheArguments) {
    const Words arguments{"-np", "4", "./app", "--mca", "-x"};
    Words wanted = after({"mpirun", "--oversubscribe"}, added);
    wanted = after(wanted, {"-x", "FI_PROVIDER_PATH=/lib/f"});
    wanted = after(wanted, arguments);
    EXPECT_EQ(command(user(), arguments), wanted);
}

TEST(MpirunCommand, LeavesOutTheFolderThatLibfabricKnows) {
    Surroundings around = user();
    around.provider_folder.clear();
    EXPECT_EQ(command(around, {"app"}),
              after(after({"mpirun", "--oversubscribe"}, added), {"app"}));
}

TEST(MpirunCommand, AllowsRoot) {
    Surroundings around = user();
    around.is_root = true;
    EXPECT_EQ(command(around, {"app"})[1], "--allow-run-as-root");
    EXPECT_EQ(
        std::ranges::count(command(around, {"-allow-run-as-root", "app"}), "--allow-run-as-root"),
        0);
}

TEST(MpirunCommand, SaysNothingOfWhatTheUserSays) {
    const Words arguments{
        "--nooversubscribe", "-mca", "osc",    "pt2pt", "--gmca", "pml", "ob1", "-x",
        "FI_PROVIDER_PATH",  "-x",   "FI_A=1", "app"};
    Surroundings around = user();
    around.variables = {"FI_A", "FI_B"};
    const Words made = command(around, arguments);
    EXPECT_EQ(made, after({"mpirun", "--mca", "mtl", "ofi", "--mca", "mtl_ofi_provider_include",
                           "via", "-x", "FI_VIA_RDM=1", "-x", "FI_B"},
                          arguments));
}

bool has(const Words& words, const char* first, const char* second) {
    for (std::size_t at = 0; at + 1 < words.size(); ++at)
        if (words[at] == first && words[at + 1] == second) return true;
    return false;
}

TEST(MpirunCommand, TakesTheLayerWhereTheVariableSaysNo) {
    constexpr const char* include = "mtl_ofi_provider_include";
    Surroundings around = user();
    around.variables = {"FI_VIA_RDM"};
    EXPECT_TRUE(has(command(around, {"app"}), include, "via"));
    EXPECT_TRUE(has(command(around, {"app"}), "-x", "FI_VIA_RDM"));
    EXPECT_FALSE(has(command(around, {"app"}), "-x", "FI_VIA_RDM=1"));
    around.is_layered = true;
    EXPECT_TRUE(has(command(around, {"app"}), include, "via;ofi_rxm"));
    EXPECT_TRUE(says_no("No"));
    const Words made = command(user(), {"-x", "FI_VIA_RDM=0", "app"});
    EXPECT_TRUE(has(made, include, "via;ofi_rxm"));
    EXPECT_FALSE(has(made, "-x", "FI_VIA_RDM=1"));
}

TEST(MpirunCommand, BringsWhatWindowsByTheMemoryOfPeersStandOn) {
    for (const char* osc : {"rdma", "sm,rdma", "rdma,sm"}) {
        const Words made = command(user(), {"--mca", "osc", osc, "app"});
        EXPECT_TRUE(has(made, "btl", "self,ofi")) << osc;
        EXPECT_TRUE(has(made, "btl_ofi_provider_include", "via")) << osc;
    }
    for (const char* osc : {"^rdma", "^ucx,rdma", "pt2pt", "ardma"})
        EXPECT_FALSE(has(command(user(), {"--mca", "osc", osc, "app"}), "btl", "self,ofi")) << osc;
    EXPECT_FALSE(has(command(user(), {"app"}), "btl", "self,ofi"));
    const Words own = command(user(), {"--mca", "osc", "rdma", "--mca", "btl", "self,tcp", "app"});
    EXPECT_FALSE(has(own, "btl", "self,ofi"));
    // libfabric's layer has no atomic operations there.
    const Words layered = command(user(), {"--mca", "osc", "rdma", "--mca",
                                           "mtl_ofi_provider_include", "via;ofi_rxm", "app"});
    EXPECT_FALSE(has(layered, "btl", "self,ofi"));
}

TEST(MpirunCommand, OffersOwnEndpointsToWhoeverNamesThem) {
    const Words layered = command(user(), {"--mca", "mtl_ofi_provider_include", "via;ofi_rxm"});
    EXPECT_FALSE(has(layered, "-x", "FI_VIA_RDM=1"));
    const Words own = command(user(), {"--mca", "mtl_ofi_provider_include", "via"});
    EXPECT_TRUE(has(own, "-x", "FI_VIA_RDM=1"));
}

TEST(MpirunCommand, PassesVariablesToEachProgramOfSeveral) {
    Surroundings around = user();
    around.variables = {"FI_VIA_DEVICE"};
    const Words made = command(around, {"-np", "1", "a", ":", "-np", "1", "b"});
    EXPECT_EQ(std::ranges::count(made, "FI_PROVIDER_PATH=/lib/f"), 2);
    EXPECT_EQ(std::ranges::count(made, "FI_VIA_DEVICE"), 2);
    const auto colon = std::ranges::find(made, ":");
    EXPECT_EQ(Words(colon + 1, made.end()),
              (Words{"-x", "FI_VIA_RDM=1", "-x", "FI_PROVIDER_PATH=/lib/f", "-x", "FI_VIA_DEVICE",
                     "-np", "1", "b"}));
}

TEST(MpirunCommand, LineIsWhatAShellReads) {
    EXPECT_EQ(shell_line({"a-b=/c.d", "via;ofi_rxm", "", "it's", "$x"}),
              "a-b=/c.d 'via;ofi_rxm' '' 'it'\\''s' '$x'");
}

TEST(MpirunCommand, FoldersOfAPath) {
    EXPECT_EQ(folders_of(""), Words{});
    EXPECT_EQ(folders_of("/a:@/b::/c:"), (Words{"/a", "/b", "/c"}));
}

TEST(MpirunCommand, KnowsTheVariablesToPass) {
    EXPECT_EQ(passed_name("FI_VIA_DEVICE=udp:via0"), "FI_VIA_DEVICE");
    EXPECT_EQ(passed_name("FI_OFI_RXM_USE_RNDV_WRITE=1"), "FI_OFI_RXM_USE_RNDV_WRITE");
    EXPECT_EQ(passed_name("OPENVIA_OPTIONS=a=b"), "OPENVIA_OPTIONS");
    EXPECT_EQ(passed_name("FI_PROVIDER_PATH=/a"), "");
    EXPECT_EQ(passed_name("FILES=1"), "");
    EXPECT_EQ(passed_name("FI_VIA_RDM="), "");
    EXPECT_EQ(passed_name(""), "");
}

}  // namespace
}  // namespace command_test
