#include "sim/check_atomics.hpp"

#include <algorithm>

namespace via::sim {

namespace {

unsigned long long printed(std::uint64_t number) { return number; }

}  // namespace

void CheckAtomics::observe(const Event& event) {
    std::visit(Overloaded{
                   [this](const WordMade& e) { words_[e.word].first = e.value; },
                   [this](const WordAsked& e) { asked_.emplace(e.work, e); },
                   [this](const WordFound& e) { on_found(e); },
                   [this](const WordEnded& e) { words_[e.word].last = e.value; },
                   ignore,
               },
               event.what);
}

void CheckAtomics::on_found(const WordFound& found) {
    const auto at = asked_.find(found.work);
    if (at == asked_.end())
        return violate("atomic operation %u brought something again, or was never asked for",
                       found.work);
    const WordAsked asked = at->second;
    asked_.erase(at);
    Word& word = words_[asked.word];
    std::uint64_t& known = word.known.try_emplace(asked.channel, word.first).first->second;
    if (found.was < known)
        return violate("atomic operation %u found %llu, an earlier one of its VI left %llu",
                       found.work, printed(found.was), printed(known));
    known = found.was;
    if (asked.expected && *asked.expected != found.was) return;  // it changed nothing
    known += asked.step;
    word.growths.push_back({found.was, found.was + asked.step, found.work});
}

void CheckAtomics::check(WordNumber number, Word& word, std::uint64_t unheard) {
    if (!word.last) return violate("word %u did not end", number);
    std::sort(word.growths.begin(), word.growths.end(),
              [](const Growth& a, const Growth& b) { return a.from < b.from; });
    std::uint64_t at = word.first;
    std::uint64_t missing = 0;
    for (const Growth& growth : word.growths) {
        if (growth.from < at)
            return violate("atomic operation %u found word %u as %llu, another one left it as %llu",
                           growth.work, number, printed(growth.from), printed(at));
        missing += growth.from - at;
        at = growth.to;
    }
    if (*word.last < at)
        return violate("word %u ended as %llu, an operation left it as %llu", number,
                       printed(*word.last), printed(at));
    missing += *word.last - at;
    if (missing > unheard)
        violate("word %u grew by %llu more than its operations explain", number,
                printed(missing - unheard));
}

void CheckAtomics::finish(Time /*now*/) {
    std::map<WordNumber, std::uint64_t> unheard;
    for (const auto& [work, asked] : asked_) unheard[asked.word] += asked.step;
    for (auto& [number, word] : words_) check(number, word, unheard[number]);
}

}  // namespace via::sim
