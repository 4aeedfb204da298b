// kill -9 in the middle of a transfer, of either side, for every operation.
#include <gtest/gtest.h>

#include <tuple>

#include "death_scene.hpp"
#include "support/host.hpp"

namespace system_test::death_transfer_test {

namespace {

class DeathInTransfer : public testing::TestWithParam<std::tuple<Operation, std::size_t, bool>> {};

TEST_P(DeathInTransfer, SurvivorHasWhatWasSentThenTheFlushThenConnLost) {
    const auto [operation, length, victim_initiates] = GetParam();
    Host host;
    Nic nic;
    for (const bool stopped_first : {false, true}) {
        Scene scene;
        scene.operation = operation;
        scene.length = length;
        scene.victim_initiates = victim_initiates;
        scene.messages = length > 65536 ? 20 : 200;
        scene.stopped_first = stopped_first;
        const Aftermath aftermath = play(nic, scene);
        RecordProperty("noticed_ms", std::to_string(aftermath.noticed_ms));
        std::printf("%s: noticed after %.2f ms\n", scene.text().c_str(), aftermath.noticed_ms);
    }
    nic.close();
    host.reclaim();
    EXPECT_EQ(host.met(), "");
}

std::string scene_name(
    const testing::TestParamInfo<std::tuple<Operation, std::size_t, bool>>& info) {
    return std::string(name_of(std::get<0>(info.param))) + "_" +
           std::to_string(std::get<1>(info.param)) +
           (std::get<2>(info.param) ? "_initiator" : "_target") + "_dies";
}

INSTANTIATE_TEST_SUITE_P(
    All, DeathInTransfer,
    testing::Combine(testing::Values(Operation::send, Operation::write, Operation::read),
                     testing::Values(std::size_t{8}, std::size_t{1} << 20), testing::Bool()),
    scene_name);

}  // namespace

}  // namespace system_test::death_transfer_test
