#include "lab/study/compare.hpp"

#include <algorithm>
#include <cstdio>

namespace via::lab::study {
namespace {

/// Where a latency goes; two of them can be taken from each other.
struct Profile {
    std::array<double, share_count> parts{};
    std::map<std::string, double> waits;

    Profile() = default;
    explicit Profile(const Sample& sample) : parts(sample.parts_ns), waits(sample.waits_ns) {}
    Profile operator-(const Profile& other) const {
        Profile rest = *this;
        for (std::size_t share = 0; share < share_count; ++share)
            rest.parts[share] -= other.parts[share];
        for (const auto& [resource, wait] : other.waits) rest.waits[resource] -= wait;
        return rest;
    }
};

class Comparer {
public:
    Comparer(const std::vector<Contender>& contenders, Of of, Over over, const Question& question)
        : contenders_(contenders), of_(of), over_(over), question_(question) {
        result_.refusals.resize(contenders.size());
    }

    std::expected<Comparison, std::string> compare(const std::vector<std::int64_t>& points) {
        result_.points = points;
        for (const std::int64_t point : points) {
            result_.samples.push_back(all_at(point));
            const auto& samples = result_.samples.back();
            result_.winners.push_back(winner_of(samples));
            result_.reasons.push_back(reason_of(samples, result_.winners.back()));
        }
        if (std::ranges::none_of(result_.winners, [](const auto& one) { return one.has_value(); }))
            return std::unexpected(result_.refusals.empty() ? "nothing to compare"
                                                            : result_.refusals[0]);
        for (std::size_t n = 1; n < points.size(); ++n) cross(n);
        return std::move(result_);
    }

private:
    using Samples = std::vector<std::optional<Sample>>;

    bool better(double a, double b) const { return of_ == Of::latency ? a < b : a > b; }

    std::optional<Sample> at(std::size_t contender, std::int64_t point) {
        Trial trial = contenders_[contender].trial;
        Question question = question_;
        if (over_ == Over::sizes) question.size = point;
        if (over_ == Over::vis) trial.load.vis = point;
        if (over_ == Over::queues) question.queues = point;
        std::string refusal;
        if (of_ == Of::latency) {
            const auto found = latency(trial, question);
            if (found)
                return Sample{found->mean_ns, found->parts_ns, found->waits_ns, {}, found->busiest};
            refusal = found.error();
        } else {
            const auto found = bandwidth(trial, question);
            if (found)
                return Sample{found->bytes_per_second, {}, {}, found->spent_ns, found->busiest};
            refusal = found.error();
        }
        std::string& first = result_.refusals[contender];
        if (first.empty()) first = refusal;
        return std::nullopt;
    }
    Samples all_at(std::int64_t point) {
        Samples samples;
        for (std::size_t n = 0; n < contenders_.size(); ++n) samples.push_back(at(n, point));
        return samples;
    }
    std::optional<std::size_t> winner_of(const Samples& samples) const {
        std::optional<std::size_t> best;
        for (std::size_t n = 0; n < samples.size(); ++n) {
            if (!samples[n]) continue;
            if (!best || better(samples[n]->value, samples[*best]->value)) best = n;
        }
        return best;
    }
    /// What sets the winner apart from the second best.
    std::string reason_of(const Samples& samples, std::optional<std::size_t> winner) const {
        if (!winner) return "none can be";
        Samples others = samples;
        others[*winner].reset();
        const auto second = winner_of(others);
        if (!second) return "the others cannot be";
        return of_ == Of::latency ? grown(Profile(*samples[*winner]), Profile(*samples[*second]))
                                  : held_up(*samples[*winner], *samples[*second]);
    }
    /// Which resource holds the slower stream up, how long for each message, and what of that the
    /// faster one does not have.
    static std::string held_up(const Sample& faster, const Sample& slower) {
        const Spent slow = spent_of(slower, slower.busiest),
                    fast = spent_of(faster, slower.busiest);
        Spent more = slow;
        for (std::size_t share = 0; share < share_count; ++share) more[share] -= fast[share];
        const auto largest = std::ranges::max_element(more) - more.begin();
        char text[96];
        std::snprintf(text, sizeof text, ", %.2f us a message, of %s %.2f us more",
                      sum_of(slow) / 1e3, name_of(static_cast<Share>(largest)),
                      more[static_cast<std::size_t>(largest)] / 1e3);
        return slower.busiest + text;
    }
    static Spent spent_of(const Sample& sample, const std::string& resource) {
        const auto found = sample.spent_ns.find(resource);
        return found == sample.spent_ns.end() ? Spent{} : found->second;
    }
    static double sum_of(const Spent& spent) {
        double sum = 0;
        for (const double part : spent) sum += part;
        return sum;
    }
    /// The part that is longest in `more`, against `less`; of waiting, for what.
    static std::string grown(const Profile& less, const Profile& more) {
        const Profile by = more - less;
        const auto largest = std::ranges::max_element(by.parts) - by.parts.begin();
        const auto share = static_cast<Share>(largest);
        std::string name = name_of(share);
        if (share == Share::waiting && !by.waits.empty()) {
            name += " for " + std::ranges::max_element(by.waits, {}, [](const auto& one) {
                                  return one.second;
                              })->first;
        }
        char text[32];
        std::snprintf(text, sizeof text, ", %.2f us",
                      by.parts[static_cast<std::size_t>(largest)] / 1e3);
        return name + text;
    }

    /// Between points n - 1 and n.
    void cross(std::size_t n) {
        const auto before = result_.winners[n - 1], after = result_.winners[n];
        if (!before || !after || *before == *after) return;
        std::int64_t low = result_.points[n - 1], high = result_.points[n];
        while (high - low > 1) {
            const std::int64_t middle = (low + high) / 2;
            const auto old = at(*before, middle), young = at(*after, middle);
            const bool turned = young && (!old || better(young->value, old->value));
            (turned ? high : low) = middle;
        }
        result_.crossings.push_back({high, *before, *after, cause(n, *before, *after)});
    }
    /// Of a latency: the part of the old winner that has grown most, against the new one's.
    std::string cause(std::size_t n, std::size_t before, std::size_t after) const {
        const auto& old_high = result_.samples[n][before];
        if (!old_high) return "cannot be any more: " + result_.refusals[before];
        if (of_ == Of::bandwidth) {
            const auto& young_high = result_.samples[n][after];
            return "what takes longest is " + held_up(*young_high, *old_high);
        }
        const Profile low = Profile(*result_.samples[n - 1][before]) - profile_of(n - 1, after);
        const Profile high = Profile(*old_high) - profile_of(n, after);
        return grown(low, high) + " more between these points";
    }
    Profile profile_of(std::size_t n, std::size_t contender) const {
        const auto& sample = result_.samples[n][contender];
        return sample ? Profile(*sample) : Profile();
    }

    const std::vector<Contender>& contenders_;
    Of of_;
    Over over_;
    Question question_;
    Comparison result_;
};

}  // namespace

std::expected<Comparison, std::string> compare(const std::vector<Contender>& contenders, Of of,
                                               Over over, const std::vector<std::int64_t>& points,
                                               const Question& question) {
    return Comparer(contenders, of, over, question).compare(points);
}

}  // namespace via::lab::study
