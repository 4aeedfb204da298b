// A NIC that answers for its host and stands still: another one takes its place.
#include "device/datagram/host_answer_test.hpp"
#include "device/udp/test_support.hpp"

namespace via::device::udp::test::holder_test {
namespace {

/// More than are asked in a row.
constexpr int deadlines_max = 24;

/// As DatagramDevice does, whatever is asked.
void answer_all(Node& node) {
    node->arm(Sleep::awake);  // looks at the host's port, too
    node.take_all();
    for (const Node::Datagram& came : std::exchange(node.came, {})) {
        if (!came.to_host_port) continue;
        datagram::HostQuestion answer;
        datagram::Outgoing out;
        out.to = came.from;
        out.length = datagram::test::answer_query(std::as_bytes(std::span(came.bytes)), answer);
        ASSERT_NE(out.length, 0U);
        out.bytes = answer.data();
        out.from_host_port = true;
        EXPECT_EQ(node->send({&out, 1}), 1U);
    }
}

/// `node` lives on, as does `other`, if it answers; true: `node` took the port over.
bool takes_over(Node& node, Node* other = nullptr) {
    for (int n = 0; n < deadlines_max && !node->has_host_port(); ++n) {
        node->service(node->next_deadline());
        if (other != nullptr) answer_all(*other);
    }
    return node->has_host_port();
}

/// What other hosts ask, each by a port of its own, comes to `node`.
void expect_hears_all(Node& node, const HostAddress& asker) {
    Directory directory;
    node.came.clear();
    std::vector<std::unique_ptr<Node>> others;
    for (std::uint8_t n = 0; n < 16; ++n) {
        others.push_back(std::make_unique<Node>(directory, asker, 100 + n));
        send(*others.back(), node->nic_address(), "question");
    }
    EXPECT_TRUE(node.hear(16));
    node.came.clear();
}

/// On both versions of IP, which keep their sockets in different orders.
class UdpHolder : public testing::TestWithParam<bool> {
protected:
    static HostAddress host(std::uint8_t number = 0) {
        return GetParam() ? ipv6_address(number) : test_address(number);
    }
    Directory directory_;
};

INSTANTIATE_TEST_SUITE_P(Over, UdpHolder, testing::Bool(),
                         [](const auto& about) { return about.param ? "Ipv6" : "Ipv4"; });

TEST_P(UdpHolder, WhoStandsStillIsReplacedAndGoesOnWithoutThePort) {
    auto still = std::make_unique<Node>(directory_, host(), 1);
    auto next = std::make_unique<Node>(directory_, host(), 2);
    ASSERT_TRUE(takes_over(*next));
    EXPECT_TRUE((*still)->has_host_port()) << "it cannot know yet";
    expect_hears_all(*next, host(1));
    (*still)->service((*still)->now());
    EXPECT_FALSE((*still)->has_host_port());
    expect_hears_all(*next, host(1));
    next.reset();
    EXPECT_TRUE(takes_over(*still));
    expect_hears_all(*still, host(1));
}

TEST_P(UdpHolder, WhoAnswersIsAskedNowAndThenAndLeftAlone) {
    Node holder(directory_, host(), 1), other(directory_, host(), 2);
    ASSERT_EQ(other->listen(discriminator("door")), Status::success);
    const Time begin = other->now();
    EXPECT_FALSE(takes_over(other, &holder));
    EXPECT_GT(other->next_deadline(), begin + seconds(5)) << "it does not spin";
    holder->service(holder->now());
    EXPECT_TRUE(holder->has_host_port());
}

TEST_P(UdpHolder, AThirdTakesOverFromTwoThatStandStill) {
    Node first(directory_, host(), 1), second(directory_, host(), 2), third(directory_, host(), 3);
    ASSERT_TRUE(takes_over(second));
    ASSERT_TRUE(takes_over(third)) << "though it knew the first one only";
    // It asks itself, and so finds its place among them.
    for (int n = 0; n < deadlines_max; ++n) {
        third->service(third->next_deadline());
        answer_all(third);
    }
    expect_hears_all(third, host(1));
    for (Node* one : {&first, &second}) {
        (*one)->service((*one)->now());
        EXPECT_FALSE((*one)->has_host_port());
    }
    for (int n = 0; n < deadlines_max; ++n) {
        third->service(third->next_deadline());
        answer_all(third);
    }
    EXPECT_TRUE(third->has_host_port());
    expect_hears_all(third, host(1));
}

TEST_P(UdpHolder, OfTwoWhoTakeOverAtOnceOneStays) {
    Node still(directory_, host(), 1), one(directory_, host(), 2), other(directory_, host(), 3);
    // Deadline by deadline, so that neither sees that the other one has it.
    for (int n = 0; n < deadlines_max && !(one->has_host_port() || other->has_host_port()); ++n)
        for (Node* node : {&one, &other}) (*node)->service((*node)->next_deadline());
    const Time later = one->now() + seconds(60);
    for (Node* node : {&still, &one, &other}) (*node)->service(later);
    EXPECT_EQ(still->has_host_port() + one->has_host_port() + other->has_host_port(), 1);
}

/// Another user has the port, to whom nobody can join.
class NotOurs : public System {
public:
    int setsockopt(int fd, int level, int option, int value) override {
        return option == SO_REUSEPORT ? 0 : System::setsockopt(fd, level, option, value);
    }
};

TEST_P(UdpHolder, ThatOneOfAnotherUserStandsStillIsToldOnce) {
    NotOurs system;
    const Node still(directory_, host(), 1);
    std::vector<std::string> reports;
    UdpConfig config{{"lo", 1, host()}, directory_.path, 2, false, &system};
    config.report = [&](const std::string& text) { reports.push_back(text); };
    auto opened = UdpPort::open(config);
    ASSERT_TRUE(opened) << opened.error();
    Node next(std::move(*opened));
    EXPECT_FALSE(takes_over(next));
    EXPECT_FALSE(takes_over(next));
    ASSERT_EQ(reports.size(), 1U);
    EXPECT_NE(reports[0].find("does not answer for the host"), std::string::npos) << reports[0];
    EXPECT_NE(reports[0].find("(socket, bind): Address already in use"), std::string::npos)
        << reports[0];
}

}  // namespace
}  // namespace via::device::udp::test::holder_test
