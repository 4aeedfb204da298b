#include "device/datagram/searches.hpp"

namespace via::device::datagram {

Search& Searches::add(const NetAddress& remote, std::uint64_t cookie, std::uint64_t question,
                      Time now, Duration patience) {
    Search& search = searches_.emplace_back();
    search.cookie = cookie;
    search.remote = remote;
    search.question = question;
    search.give_up = now + patience;
    questions_.emplace(question, std::prev(searches_.end()));
    if (const auto delay = refused_.delay_of(remote.host, now)) expect_silence(search, *delay, now);
    return search;
}

Search* Searches::find(std::uint64_t question) {
    const auto found = questions_.find(question);
    return found == questions_.end() ? nullptr : &*found->second;
}

/// Those for which which(search) is true get `event`, each with its own cookie.
template <class Which>
bool Searches::end_those(Which which, PathEvent event) {
    return std::erase_if(searches_, [&](const Search& search) {
               if (!which(search)) return false;
               event.cookie = search.cookie;
               events_.push_back(event);
               questions_.erase(search.question);
               return true;
           }) != 0;
}

void Searches::end(Search& search, const PathEvent& event) {
    const auto found = questions_.find(search.question);
    events_.push_back(event);
    events_.back().cookie = search.cookie;
    searches_.erase(found->second);
    questions_.erase(found);
}

bool Searches::end_all_of(PathId path, const PathEvent& event) {
    return end_those([path](const Search& search) { return search.path == path; }, event);
}

void Searches::end_unanswered(Time now) {
    end_those(
        [now](const Search& search) { return search.is_asking() && now >= search.refused_until; },
        {PathEventKind::unresolved, 0, Status::no_match});
    end_those([now](const Search& search) { return search.is_asking() && now >= search.give_up; },
              {PathEventKind::unresolved, 0, Status::not_done});
}

void Searches::find_deadline() {
    deadline_ = Time::never();
    for (const Search& search : searches_)
        if (search.is_asking()) deadline_ = earlier(deadline_, search.deadline());
}

void Searches::ask_again_all_of(PathId path, Time now) {
    for (Search& search : searches_) {
        if (search.path != path) continue;
        search.path = Search::no_path;
        search.next_try = now + search.interval;
        deadline_ = earlier(deadline_, search.deadline());
    }
}

void Searches::asked(Search& search, Time now) {
    search.refused = false;
    search.asked = now;
    search.next_try = now + search.interval;
    search.interval = std::min(search.interval * 2, try_longest);
    deadline_ = earlier(deadline_, search.deadline());
}

void Searches::answered(Search& search) {
    refused_.forget(search.remote.host);
    search.refused_until = Time::never();
}

/// What strangers may have caused is looked up.
void Searches::on_network_error(const NetworkError& error, Time now) {
    if (!error.is_ours) {
        if (Search* const search = find(error.connection)) refuse(*search, error, now);
        return;
    }
    for (auto next = searches_.begin(); next != searches_.end();) refuse(*next++, error, now);
}

/// The host that is asked had nobody at its port just now.
void Searches::expect_silence(Search& search, Duration delay, Time now) {
    const Duration silence = std::max(refused_least, delay * refused_delays);
    search.refused_until = earlier(search.refused_until, now + silence);
    deadline_ = earlier(deadline_, search.refused_until);
}

/// Nobody is there whom it asks, or there is no way: if several questions in a row meet that.
void Searches::refuse(Search& search, const NetworkError& error, Time now) {
    if (error.kind != NetworkErrorKind::port_unreachable && error.kind != NetworkErrorKind::no_way)
        return;
    if (!search.is_asking() || search.refused || search.remote.host != error.to) return;
    search.refused = true;
    if (error.kind == NetworkErrorKind::port_unreachable) {
        refused_.note(error.to, now - search.asked, now);
        expect_silence(search, now - search.asked, now);
    }
    if (++search.refusals < refusals_max) return;
    // A host that says that nobody has the port is there, and its NIC may yet be opened.
    const Status status =
        error.kind == NetworkErrorKind::port_unreachable ? Status::no_match : Status::not_reachable;
    end(search, {PathEventKind::unresolved, 0, status});
}

}  // namespace via::device::datagram
