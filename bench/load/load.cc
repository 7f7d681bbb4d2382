// A load maker for HTTP/1.1 with keep-alive, on one thread. Prints one line of JSON (outcome.h).
//
//   load PLAN PORT [name=value ...]
//
//   connections=N   keep-alive connections (32)
//   seconds=N       for which requests are sent (2); what is on its way then is waited for
//   order=zipf:S | uniform | once    which target is next: by Zipf's law with this exponent over their order in the plan, evenly, or
//                   one after another until each was requested
//   rate=N          requests a second, at random moments (a Poisson process): each is timed from when it was due, whether or not
//                   a connection was free for it. Without a rate each connection asks again as soon as it was answered
//   flood=1         with a rate: requests go out without waiting for answers, as many as the sockets take; none is timed
//   unknown=N       every Nth request asks for an id that nobody has, and wants 404
//   compare=N       bodies of one in N answers are compared with the truth (8); the rest is counted
//   late=MS         an answer that takes longer is wrong (10000)
//   drain=MS        wait for answers behind the end (10000); what is open then is unanswered. A server that answers nothing
//                   for late and drain together is given up
//   tls=1.2 | 1.3   over TLS of this version, by AES-128-GCM
//   fresh=1         each request on a connection of its own, whose handshake is part of its time
//   resume=1        with tls: connections resume the session of one ticket; one that the server does not take is wrong
//   shake=1         with tls: connections only shake hands, and nothing is requested
//   from=ADDRESS    of this machine (127.0.0.0/8), for the connections
//   spread=1        each connection comes from a client of its own: any address of 127.0.0.0/8
//   seed=N          of all chance
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>

#include <memory>

#include "outcome.h"
#include "plan.h"
#include "wire.h"

namespace {

constexpr uint64_t second = 1000000000;

struct Options {
  std::string plan, order = "uniform", from, tls;
  int port = 0;
  size_t connections = 32;
  double seconds = 2, rate = 0;
  bool flood = false, fresh = false, resume = false, shake = false, spread = false;
  uint64_t unknown = 0, compare = 8, late = 10000, drain = 10000, seed = 1;
};

uint64_t now() {
  timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return static_cast<uint64_t>(at.tv_sec) * second + static_cast<uint64_t>(at.tv_nsec);
}

class Load {
 public:
  Load(const Options& options, const Plan& plan) : options_(options), plan_(plan), reader_(plan, outcome_), chance_{options.seed * 7919} {
    if (options.order.rfind("zipf:", 0) == 0) zipf_ = Weighted(plan.targets.size(), atof(options.order.c_str() + 5));
    if (!options.tls.empty()) ctx_ = tls::context(options.tls);
    absent_.method = "GET";
    absent_.lines = "Host: 127.0.0.1\r\n";
    absent_.status = 404;
  }

  Outcome run() {
    poll_ = epoll_create1(0);
    timer_ = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    watch(timer_, EPOLL_CTL_ADD, EPOLLIN, UINT32_MAX);
    connections_.resize(options_.connections);
    if (options_.resume) fetchTicket();
    if (!isFresh())
      for (uint32_t at = 0; at < connections_.size(); at += 1)
        if (!connectOne(at)) throw std::runtime_error("cannot connect");
    began_ = now();
    end_ = began_ + static_cast<uint64_t>(options_.seconds * static_cast<double>(second));
    due_ = began_ + gap();
    if (options_.rate == 0)
      for (uint32_t at = 0; at < connections_.size(); at += 1) again(at);
    else
      for (uint32_t at = 0; at < connections_.size(); at += 1) idle_.push_back(at);
    loop();
    outcome_.seconds = static_cast<double>(std::max(lastAnswer_, began_ + 1) - began_) / 1e9;
    finishCounts();
    return std::move(outcome_);
  }

 private:
  const Options& options_;
  const Plan& plan_;
  Outcome outcome_;
  Reader reader_;
  Chance chance_;
  Weighted zipf_;
  std::vector<Connection> connections_;
  std::vector<uint32_t> idle_;       // connections that wait for a request, of an open loop
  std::deque<uint64_t> waiting_;     // requests that are due and have no connection
  std::deque<Target> absentees_;     // ids that nobody has, requested just now
  Target absent_;
  tls::Ctx* ctx_ = nullptr;
  int poll_ = -1, timer_ = -1;
  uint64_t began_ = 0, end_ = 0, due_ = 0, lastAnswer_ = 0, lastSent_ = 0, sent_ = 0;
  size_t turn_ = 0, given_ = 0, lost_ = 0;

  bool isFresh() const { return options_.fresh || options_.shake; }

  // A connection that is there for its ticket alone, which TLS 1.3 sends behind the handshake.
  void fetchTicket() {
    Connection connection;
    connection.fd = openSocket(options_.port, options_.from);
    if (connection.fd < 0) throw std::runtime_error("cannot connect");
    connection.secure(ctx_, nullptr);
    uint64_t last = now() + 5 * second;
    char byte;
    while (tls::ticket == nullptr && now() < last) {
      if (!connection.isUp ? !connection.shake() : (connection.receive(&byte, 1, false) < 0 && errno != EAGAIN)) break;
      usleep(1000);
      if (connection.isUp) tls::takeTicket(connection.ssl);
    }
    connection.shut();
    if (tls::ticket == nullptr) throw std::runtime_error("the server gives no ticket");
  }

  // Whether there is something left to ask for: what waits for a connection will take a target, too.
  bool sending() const { return options_.order != "once" || given_ + waiting_.size() < plan_.targets.size(); }

  uint64_t gap() {
    if (options_.rate == 0) return 0;
    return static_cast<uint64_t>(-std::log(1 - chance_.unit()) / options_.rate * static_cast<double>(second));
  }

  void watch(int fd, int how, uint32_t events, uint32_t index) {
    epoll_event event{};
    event.events = events;
    event.data.u32 = index;
    epoll_ctl(poll_, how, fd, &event);
  }

  // Networks differ, too: servers bound what comes from one network.
  std::string anyClient() {
    auto part = [&](uint64_t below) { return std::to_string(1 + chance_.below(below)); };
    return "127." + part(254) + "." + part(254) + "." + part(253);
  }

  bool connectOne(uint32_t at) {
    Connection& connection = connections_[at];
    connection.clear();
    connection.fd = openSocket(options_.port, options_.spread ? anyClient() : options_.from);
    if (connection.fd < 0) return false;
    connection.writable = true;
    outcome_.connects += 1;
    if (ctx_ != nullptr) connection.secure(ctx_, options_.resume ? tls::ticket : nullptr);
    // A handshake begins with the first event, which comes at once.
    watch(connection.fd, EPOLL_CTL_ADD, connection.isUp ? EPOLLIN : EPOLLIN | EPOLLOUT, at);
    return true;
  }

  const Target* choose() {
    sent_ += 1;
    if (options_.unknown > 0 && sent_ % options_.unknown == 0) {
      static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
      absent_.path = "/";
      for (int at = 0; at < 42; at += 1) absent_.path += letters[chance_.below(64)];
      absent_.path += letters[chance_.below(16) * 4];
      // Kept for as long as an answer may take: no more than this many are on their way at once.
      if (absentees_.size() > 65536) absentees_.pop_front();
      absentees_.push_back(absent_);
      return &absentees_.back();
    }
    given_ += 1;
    if (options_.order == "once") return &plan_.targets[given_ - 1];
    if (options_.order == "uniform") return &plan_.targets[chance_.below(plan_.targets.size())];
    return &plan_.targets[zipf_.draw(chance_)];
  }

  void ask(uint32_t at, uint64_t due) {
    Connection& connection = connections_[at];
    if (isFresh() && !connectOne(at)) return lose();
    const Target& target = *choose();
    Flight flight{&target, due, 0, false};
    flight.isCompared = target.start >= 0 && target.method != "HEAD" && chance_.below(options_.compare) == 0;
    std::string& text = connection.unsent;
    text += target.method + " " + target.path + " HTTP/1.1\r\n" + target.lines;
    text += plan_.clients[chance_.below(plan_.clients.size())];
    if (target.range > 0) {
      flight.from = chance_.below(static_cast<uint64_t>(target.size) - target.range + 1);
      text += "Range: bytes=" + std::to_string(flight.from) + "-" + std::to_string(flight.from + target.range - 1) + "\r\n";
    }
    text += "\r\n";
    connection.flights.push_back(flight);
    lastSent_ = now();
    outcome_.sent += 1;
    if (!options_.shake) pour(at);
  }

  void pour(uint32_t at) {
    Connection& connection = connections_[at];
    if (connection.unsent.empty() || !connection.isUp) return;
    ssize_t took = connection.transmit(connection.unsent.data(), connection.unsent.size());
    if (took > 0) connection.unsent.erase(0, static_cast<size_t>(took));
    bool writable = connection.unsent.empty();
    if (writable == connection.writable) return;
    connection.writable = writable;
    watch(connection.fd, EPOLL_CTL_MOD, writable ? EPOLLIN : EPOLLIN | EPOLLOUT, at);
  }

  // A connection that has nothing to do.
  void again(uint32_t at) {
    if (options_.flood) return;
    if (options_.rate > 0) {
      if (waiting_.empty()) idle_.push_back(at);
      else {
        ask(at, waiting_.front());
        waiting_.pop_front();
      }
    } else if (now() < end_ && sending()) ask(at, now());
  }

  // Everything that is due by now goes out, or waits for a connection.
  void fall(uint64_t time) {
    for (; due_ <= time && due_ < end_ && sending(); due_ += gap()) {
      if (options_.flood) flood();
      else if (idle_.empty()) waiting_.push_back(due_);
      else {
        uint32_t at = idle_.back();
        idle_.pop_back();
        ask(at, due_);
      }
    }
  }

  // On the next connection that takes it, or not at all.
  void flood() {
    for (size_t tries = 0; tries < connections_.size(); tries += 1) {
      uint32_t at = static_cast<uint32_t>(turn_++ % connections_.size());
      if (!connections_[at].unsent.empty()) continue;
      ask(at, due_);
      return;
    }
  }

  void answered(const Flight& flight) {
    lastAnswer_ = now();
    if (options_.flood) return;
    uint64_t took = lastAnswer_ - flight.due;
    outcome_.microseconds.push_back(static_cast<uint32_t>(std::min<uint64_t>(took / 1000, UINT32_MAX)));
    if (took > options_.late * 1000000)
      outcome_.mistake(Wrong::late, flight.target->method + " " + flight.target->path + ": " + std::to_string(took / 1000000) + " ms");
  }

  void lose() {
    outcome_.mistake(Wrong::closed, "cannot connect again");
    lost_ += 1;
  }

  // Goes on with a handshake. False: it is not over yet, or was all that was wanted.
  bool shaken(uint32_t at) {
    Connection& connection = connections_[at];
    watch(connection.fd, EPOLL_CTL_MOD, EPOLLIN, at);
    bool isGood = connection.shake();
    if (isGood && !connection.isUp) return false;
    if (!isGood) outcome_.mistake(Wrong::handshake, "a handshake failed");
    else if (options_.resume && tls::calls().SSL_session_reused(connection.ssl) != 1)
      outcome_.mistake(Wrong::handshake, "a ticket was not taken");
    if (isGood && !options_.shake) {
      pour(at);
      return true;
    }
    if (isGood && !connection.flights.empty()) {
      outcome_.answered += 1;
      answered(connection.flights.front());
    }
    connection.clear();
    connection.shut();
    if (isFresh()) again(at);
    else lost_ += 1;
    return false;
  }

  void heard(uint32_t at) {
    Connection& connection = connections_[at];
    if (connection.fd < 0 || (!connection.isUp && !shaken(at))) return;
    bool isFree = false;
    bool isOpen = reader_.take(connection, [&](const Flight& flight) {
      isFree = true;
      answered(flight);
    });
    if (isFresh() && (!isOpen || isFree)) {
      connection.clear();
      connection.shut();
      again(at);
    } else if (!isOpen) {
      bool wasIdle = !isFree && connection.flights.empty();
      connection.shut();
      if (!connectOne(at)) return lose();
      if (wasIdle && options_.rate > 0 && !options_.flood && std::find(idle_.begin(), idle_.end(), at) != idle_.end()) return;
      again(at);
    } else if (isFree && connection.flights.empty()) again(at);
  }

  bool isOver() const {
    if (!waiting_.empty()) return false;
    for (const auto& connection : connections_)
      if (!connection.flights.empty()) return false;
    return true;
  }

  void loop() {
    epoll_event events[256];
    for (;;) {
      uint64_t time = now();
      if (options_.rate > 0) fall(time);
      bool isSending = time < end_ && sending();
      if ((!isSending && isOver()) || lost_ == connections_.size()) return;
      if (time > end_ + options_.drain * 1000000) return;
      // Requests on their way and no answer to any: the server is stuck.
      if (time > std::max(lastAnswer_, lastSent_) + (options_.late + options_.drain) * 1000000 && !isOver()) return;
      if (options_.rate > 0 && isSending) arm(time);
      int count = epoll_wait(poll_, events, 256, 20);
      for (int at = 0; at < count; at += 1) {
        uint32_t index = events[at].data.u32;
        if (index == UINT32_MAX) {
          uint64_t times;
          if (read(timer_, &times, sizeof times) < 0 && errno != EAGAIN) return;
          continue;
        }
        if ((events[at].events & EPOLLOUT) != 0) pour(index);
        if ((events[at].events & ~static_cast<uint32_t>(EPOLLOUT)) != 0 || !connections_[index].isUp) heard(index);
      }
    }
  }

  void arm(uint64_t time) {
    uint64_t wait = due_ > time ? due_ - time : 1;
    itimerspec spec{};
    spec.it_value.tv_sec = static_cast<time_t>(wait / second);
    spec.it_value.tv_nsec = static_cast<long>(wait % second);
    timerfd_settime(timer_, 0, &spec, nullptr);
  }

  void finishCounts() {
    uint64_t open = waiting_.size();
    for (const auto& connection : connections_) open += connection.flights.size();
    if (open > 0 && !options_.flood) outcome_.mistake(Wrong::unanswered, std::to_string(open) + " requests were not answered", open);
    if (options_.order == "once" && given_ < plan_.targets.size())
      outcome_.mistake(Wrong::unanswered, "not all targets were requested in time", plan_.targets.size() - given_);
  }
};

Options optionsOf(int count, char** args) {
  if (count < 3) throw std::runtime_error("load PLAN PORT [name=value ...]");
  Options options;
  options.plan = args[1];
  options.port = atoi(args[2]);
  for (int at = 3; at < count; at += 1) {
    std::string word = args[at];
    size_t equals = word.find('=');
    std::string name = word.substr(0, equals), value = equals == std::string::npos ? "" : word.substr(equals + 1);
    auto number = [&] { return strtoull(value.c_str(), nullptr, 10); };
    if (name == "connections") options.connections = std::max<size_t>(1, number());
    else if (name == "seconds") options.seconds = atof(value.c_str());
    else if (name == "order") options.order = value;
    else if (name == "rate") options.rate = atof(value.c_str());
    else if (name == "flood") options.flood = value == "1";
    else if (name == "unknown") options.unknown = number();
    else if (name == "compare") options.compare = std::max<uint64_t>(1, number());
    else if (name == "late") options.late = number();
    else if (name == "drain") options.drain = number();
    else if (name == "tls") options.tls = value;
    else if (name == "fresh") options.fresh = value == "1";
    else if (name == "resume") options.resume = value == "1";
    else if (name == "shake") options.shake = value == "1";
    else if (name == "from") options.from = value;
    else if (name == "spread") options.spread = value == "1";
    else if (name == "seed") options.seed = number();
    else throw std::runtime_error("unknown option " + word);
  }
  if (options.tls.empty() && (options.resume || options.shake)) throw std::runtime_error("resume and shake need tls");
  if (options.flood && options.rate == 0) throw std::runtime_error("a flood needs a rate");
  return options;
}

}  // namespace

int main(int count, char** args) {
  try {
    Options options = optionsOf(count, args);
    Plan plan = readPlan(options.plan);
    auto load = std::make_unique<Load>(options, plan);
    Outcome outcome = load->run();
    outcome.print();
    return 0;
  } catch (const std::exception& error) {
    fprintf(stderr, "load: %s\n", error.what());
    return 2;
  }
}
