// A load maker for HTTP/1.1 with keep-alive: a closed loop over a number of connections on one thread. Bodies are dropped
// in the kernel, so that large ones are not bounded by this side. Prints one line of JSON.
//
// With a rate and `open`, requests are sent when their time has come whether or not others were answered, as many as the sockets
// take: a flood that does not wait.
//
// load PORT CONNECTIONS SECONDS METHOD PATH [range LENGTH SIZE] [header "Name: value"] [rate N] [open] [from ADDRESS]
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

struct Connection {
  int fd = -1;
  uint64_t asked = 0;      // when the request under way was sent, ns
  uint64_t bodyLeft = 0;   // bytes of the body still to come
  bool inBody = false;
  std::string head;
  bool idle = false;
  std::string unsent;      // the end of a request that the socket did not take
};

struct Options {
  int port = 0;
  size_t connections = 1;
  double seconds = 1;
  std::string method, path, header;
  uint64_t rangeLength = 0, size = 0;
  uint64_t rate = 0;
  bool open = false;
  std::string from;
};

struct Result {
  uint64_t requests = 0, bytes = 0, failures = 0, sent = 0;
  int status = 0;
  std::vector<uint32_t> microseconds;
};

uint64_t now() {
  timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return static_cast<uint64_t>(at.tv_sec) * 1000000000u + static_cast<uint64_t>(at.tv_nsec);
}

uint64_t randomNumber() {
  static uint64_t state = now() | 1;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state >> 11;
}

std::string requestOf(const Options& options) {
  std::string text = options.method + " " + options.path + " HTTP/1.1\r\nUser-Agent: load\r\n";
  if (options.header.rfind("Host:", 0) != 0) text += "Host: 127.0.0.1\r\n";
  if (options.rangeLength > 0) {
    uint64_t start = randomNumber() % (options.size - options.rangeLength + 1);
    text += "Range: bytes=" + std::to_string(start) + "-" + std::to_string(start + options.rangeLength - 1) + "\r\n";
  }
  if (!options.header.empty()) text += options.header + "\r\n";
  return text + "\r\n";
}

// False where the socket takes no more.
bool pour(Connection& connection, const Options& options, Result& result) {
  if (connection.unsent.empty()) {
    connection.unsent = requestOf(options);
    result.sent += 1;
  }
  ssize_t took = send(connection.fd, connection.unsent.data(), connection.unsent.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (took > 0) connection.unsent.erase(0, static_cast<size_t>(took));
  return connection.unsent.empty();
}

// Without waiting for anybody: what is due goes out on the next connection that takes it, or not at all.
void flood(std::vector<Connection>& connections, const Options& options, Result& result, uint64_t& next) {
  static size_t turn = 0;
  uint64_t step = 1000000000ull / options.rate;
  // What is due goes out, but for what was due while this side had no turn.
  next = std::max(next, now() - 20 * 1000000u);
  for (uint64_t due = now(); next < due; next += step) {
    bool taken = false;
    for (size_t tries = 0; tries < connections.size() && !taken; tries += 1) {
      turn += 1;
      taken = pour(connections[turn % connections.size()], options, result);
    }
    if (!taken) next = due;
  }
}

void ask(Connection& connection, const Options& options, Result& result) {
  std::string text = requestOf(options);
  connection.asked = now();
  connection.inBody = false;
  connection.head.clear();
  if (send(connection.fd, text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size())) {
    result.failures += 1;
  }
}

// The body's length, from a head that is complete; a HEAD or 304 has none.
uint64_t bodyLength(const std::string& head, const Options& options, Result& result) {
  result.status = atoi(head.c_str() + 9);
  if (options.method == "HEAD" || result.status == 304) return 0;
  const char* line = strcasestr(head.c_str(), "\r\nContent-Length:");
  return line == nullptr ? 0 : strtoull(line + 17, nullptr, 10);
}

void finish(Connection& connection, const Options& options, Result& result) {
  result.requests += 1;
  if (options.open) {
    connection.inBody = false;
    connection.head.clear();
    return;
  }
  result.microseconds.push_back(static_cast<uint32_t>((now() - connection.asked) / 1000));
  if (options.rate == 0) ask(connection, options, result);
  else connection.idle = true;
}

// At a given rate, idle connections ask when their time has come, and never in bursts to catch up.
void pace(std::vector<Connection>& connections, const Options& options, Result& result, uint64_t& next) {
  uint64_t step = 1000000000ull / options.rate;
  for (auto& connection : connections) {
    if (next > now()) return;
    if (!connection.idle) continue;
    connection.idle = false;
    ask(connection, options, result);
    next = std::max(next + step, now() - 10 * step);
  }
}

// Takes what has come. False where the other side closed.
bool take(Connection& connection, const Options& options, Result& result) {
  static char buffer[64 * 1024];
  for (int turn = 0; turn < 8; turn += 1) {
    if (connection.inBody) {
      size_t wanted = static_cast<size_t>(std::min<uint64_t>(connection.bodyLeft, 16u << 20));
      ssize_t got = recv(connection.fd, buffer, wanted, MSG_TRUNC | MSG_DONTWAIT);
      if (got <= 0) return got < 0 && errno == EAGAIN;
      result.bytes += static_cast<uint64_t>(got);
      connection.bodyLeft -= static_cast<uint64_t>(got);
    } else {
      // Peeked first, so that the body stays in the kernel.
      ssize_t got = recv(connection.fd, buffer, 8192, MSG_PEEK | MSG_DONTWAIT);
      if (got <= 0) return got < 0 && errno == EAGAIN;
      size_t before = connection.head.size();
      connection.head.append(buffer, static_cast<size_t>(got));
      size_t end = connection.head.find("\r\n\r\n");
      size_t taken = end == std::string::npos ? static_cast<size_t>(got) : end + 4 - before;
      if (recv(connection.fd, buffer, taken, MSG_TRUNC) != static_cast<ssize_t>(taken)) return false;
      if (end == std::string::npos) continue;
      connection.head.resize(end + 4);
      connection.bodyLeft = bodyLength(connection.head, options, result);
      connection.inBody = true;
    }
    if (connection.inBody && connection.bodyLeft == 0) finish(connection, options, result);
  }
  return true;
}

bool open(Connection& connection, const Options& options, int poll, uint32_t index) {
  connection.fd = socket(AF_INET, SOCK_STREAM, 0);
  connection.unsent.clear();
  sockaddr_in address{};
  if (!options.from.empty()) {
    address.sin_family = AF_INET;
    inet_pton(AF_INET, options.from.c_str(), &address.sin_addr);
    if (bind(connection.fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return false;
    address.sin_addr = {};
  }
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(options.port));
  inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
  int one = 1;
  setsockopt(connection.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  if (connect(connection.fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return false;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u32 = index;
  return epoll_ctl(poll, EPOLL_CTL_ADD, connection.fd, &event) == 0;
}

Result run(const Options& options) {
  Result result;
  int poll = epoll_create1(0);
  std::vector<Connection> connections(options.connections);
  for (uint32_t at = 0; at < connections.size(); at += 1) {
    if (!open(connections[at], options, poll, at)) {
      result.failures += 1;
      return result;
    }
  }
  for (auto& connection : connections) {
    if (options.rate == 0) ask(connection, options, result);
    else connection.idle = true;
  }
  uint64_t next = now();
  uint64_t end = now() + static_cast<uint64_t>(options.seconds * 1e9);
  epoll_event events[256];
  while (now() < end) {
    if (options.open) flood(connections, options, result, next);
    else if (options.rate > 0) pace(connections, options, result, next);
    int count = epoll_wait(poll, events, 256, options.rate > 0 ? 1 : 50);
    for (int at = 0; at < count; at += 1) {
      Connection& connection = connections[events[at].data.u32];
      if (take(connection, options, result)) continue;
      result.failures += 1;
      close(connection.fd);
      if (!open(connection, options, poll, events[at].data.u32)) return result;
      connection.inBody = false;
      connection.head.clear();
      if (!options.open) ask(connection, options, result);
    }
  }
  return result;
}

}  // namespace

int main(int count, char** args) {
  if (count < 6) return 2;
  Options options;
  options.port = atoi(args[1]);
  options.connections = static_cast<size_t>(atoi(args[2]));
  options.seconds = atof(args[3]);
  options.method = args[4];
  options.path = args[5];
  for (int at = 6; at < count; at += 1) {
    if (strcmp(args[at], "range") == 0 && at + 2 < count) {
      options.rangeLength = strtoull(args[at + 1], nullptr, 10);
      options.size = strtoull(args[at + 2], nullptr, 10);
      at += 2;
    } else if (strcmp(args[at], "header") == 0 && at + 1 < count) {
      options.header = args[at += 1];
    } else if (strcmp(args[at], "rate") == 0 && at + 1 < count) {
      options.rate = strtoull(args[at += 1], nullptr, 10);
    } else if (strcmp(args[at], "open") == 0) {
      options.open = true;
    } else if (strcmp(args[at], "from") == 0 && at + 1 < count) {
      options.from = args[at += 1];
    }
  }
  uint64_t start = now();
  Result result = run(options);
  double seconds = static_cast<double>(now() - start) / 1e9;
  std::sort(result.microseconds.begin(), result.microseconds.end());
  auto quantile = [&](double q) {
    size_t all = result.microseconds.size();
    return all == 0 ? 0u : result.microseconds[std::min(all - 1, static_cast<size_t>(q * static_cast<double>(all)))];
  };
  printf("{\"seconds\":%.3f,\"requests\":%lu,\"sent\":%lu,\"bytes\":%lu,\"failures\":%lu,\"status\":%d,\"p50Us\":%u,\"p99Us\":%u}\n",
         seconds, result.requests, result.sent, result.bytes, result.failures, result.status, quantile(0.5), quantile(0.99));
  return 0;
}
