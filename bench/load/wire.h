// One connection: requests out, answers in. An answer is read to its end and held against what had to come.
#pragma once
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <deque>
#include <string>

#include "outcome.h"
#include "plan.h"
#include "tls.h"

struct Flight {
  const Target* target;
  uint64_t due;         // ns: when the request had to go out
  uint64_t from;        // first byte requested
  bool isCompared;      // the body is compared with the truth
};

struct Connection {
  int fd = -1;
  tls::Ssl* ssl = nullptr;  // null: plain HTTP
  bool isUp = true;         // no handshake is under way
  bool writable = true;
  std::deque<Flight> flights;
  std::string unsent;   // what the socket did not take
  std::string head;     // of the answer under way
  bool inBody = false;
  bool last = false;    // the server closes behind this answer
  bool mismatch = false;
  uint64_t left = 0;    // bytes of the body still to come
  uint64_t at = 0;      // bytes of the body that came

  void clear() {
    flights.clear();
    unsent.clear();
    head.clear();
    inBody = last = mismatch = false;
    left = at = 0;
  }

  // As recv and send without waiting. `dropped`: the bytes are not wanted.
  ssize_t receive(void* to, size_t room, bool dropped) {
    if (ssl == nullptr) return recv(fd, to, room, MSG_DONTWAIT | (dropped ? MSG_TRUNC : 0));
    size_t got = 0;
    return outcomeOf(tls::calls().SSL_read_ex(ssl, to, room, &got), got);
  }
  ssize_t transmit(const void* bytes, size_t count) {
    if (ssl == nullptr) return send(fd, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT);
    size_t took = 0;
    return outcomeOf(tls::calls().SSL_write_ex(ssl, bytes, count, &took), took);
  }

  // Begins TLS. `ticket`: of a session before, or null.
  void secure(tls::Ctx* ctx, tls::Session* ticket) {
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    ssl = tls::calls().SSL_new(ctx);
    tls::calls().SSL_set_fd(ssl, fd);
    if (ticket != nullptr) tls::calls().SSL_set_session(ssl, ticket);
    isUp = false;
  }
  // Goes on with a handshake. False: it has failed.
  bool shake() {
    ssize_t step = outcomeOf(tls::calls().SSL_connect(ssl), 1);
    isUp = step > 0;
    return isUp || errno == EAGAIN;
  }

  void shut() {
    if (ssl != nullptr) {
      // Else OpenSSL takes the session for a broken one, and its ticket is not used again.
      tls::calls().SSL_set_shutdown(ssl, tls::kShutBothSides);
      tls::calls().SSL_free(ssl);
    }
    ssl = nullptr;
    if (fd >= 0) close(fd);
    fd = -1;
  }

 private:
  ssize_t outcomeOf(int step, const size_t& count) {
    if (step == 1) return static_cast<ssize_t>(count);
    int error = tls::calls().SSL_get_error(ssl, step);
    tls::calls().ERR_clear_error();
    errno = error == tls::kWantRead || error == tls::kWantWrite ? EAGAIN : ECONNRESET;
    return -1;
  }
};

inline int openSocket(int port, const std::string& from) {
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  int one = 1;
  if (!from.empty()) {
    inet_pton(AF_INET, from.c_str(), &address.sin_addr);
    setsockopt(fd, SOL_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
    if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return close(fd), -1;
  }
  address.sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return close(fd), -1;
  return fd;
}

// The value of a header line in a head that is complete, or null.
inline const char* valueOf(const std::string& head, const char* name) {
  const char* line = strcasestr(head.c_str(), name);
  if (line == nullptr) return nullptr;
  line += strlen(name);
  while (*line == ' ' || *line == '\t') line += 1;
  return line;
}

// Reads answers off a connection. `finish` is called with each flight whose answer is whole, right or wrong.
class Reader {
 public:
  Reader(const Plan& plan, Outcome& outcome) : plan_(plan), outcome_(outcome) {}

  // Takes what has come. False where the connection is of no more use: closed, or its bytes cannot be made sense of.
  template <typename Finish>
  bool take(Connection& connection, Finish finish) {
    static uint8_t buffer[128 * 1024];
    bool isTls = connection.ssl != nullptr;
    // What OpenSSL has read already makes no event: it is read until it has no more.
    for (int turn = 0; turn < 16 || isTls; turn += 1) {
      bool dropped = !isTls && connection.inBody && connection.left > sizeof buffer && !connection.flights.front().isCompared;
      size_t room = dropped ? static_cast<size_t>(std::min<uint64_t>(connection.left, 16u << 20)) : sizeof buffer;
      ssize_t got = connection.receive(buffer, room, dropped);
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
      if (got <= 0) return closed(connection);
      if (dropped) {
        bodyBytes(connection, nullptr, static_cast<size_t>(got));
        if (connection.left == 0 && !over(connection, finish)) return false;
      } else if (!read(connection, buffer, static_cast<size_t>(got), finish)) return false;
      if (!isTls && static_cast<size_t>(got) < room) return true;
    }
    return true;
  }

 private:
  const Plan& plan_;
  Outcome& outcome_;

  static std::string nameOf(const Flight& flight) { return flight.target->method + " " + flight.target->path; }

  bool closed(Connection& connection) {
    size_t lost = connection.flights.size();
    if (lost > 0) outcome_.mistake(Wrong::closed, nameOf(connection.flights.front()) + ": closed before its answer was whole", lost);
    return false;
  }

  template <typename Finish>
  bool read(Connection& connection, const uint8_t* bytes, size_t count, Finish finish) {
    while (count > 0) {
      if (connection.flights.empty()) {
        outcome_.mistake(Wrong::framing, "bytes that nobody requested");
        return false;
      }
      size_t used;
      if (connection.inBody) {
        used = static_cast<size_t>(std::min<uint64_t>(count, connection.left));
        bodyBytes(connection, bytes, used);
      } else {
        if (!headBytes(connection, bytes, count, used)) return false;
      }
      bytes += used;
      count -= used;
      if (connection.inBody && connection.left == 0 && !over(connection, finish)) return false;
    }
    return true;
  }

  void bodyBytes(Connection& connection, const uint8_t* bytes, size_t count) {
    const Flight& flight = connection.flights.front();
    if (bytes != nullptr && flight.isCompared && !connection.mismatch &&
        !plan_.isTrue(*flight.target, flight.from + connection.at, bytes, count))
      connection.mismatch = true;
    connection.at += count;
    connection.left -= count;
    outcome_.bytes += count;
  }

  // Takes bytes of a head; `used`: how many of them belong to it. False: it cannot be read.
  bool headBytes(Connection& connection, const uint8_t* bytes, size_t count, size_t& used) {
    std::string& head = connection.head;
    size_t before = head.size();
    head.append(reinterpret_cast<const char*>(bytes), std::min<size_t>(count, 65536));
    size_t end = head.find("\r\n\r\n", before < 3 ? 0 : before - 3);
    if (end == std::string::npos) {
      used = head.size() - before;
      if (head.size() <= 65536) return true;
      outcome_.mistake(Wrong::framing, nameOf(connection.flights.front()) + ": a head without end");
      return false;
    }
    used = end + 4 - before;
    head.resize(end + 2);
    return understand(connection);
  }

  bool understand(Connection& connection) {
    const Flight& flight = connection.flights.front();
    const Target& target = *flight.target;
    const std::string& head = connection.head;
    int status = head.compare(0, 9, "HTTP/1.1 ") == 0 ? atoi(head.c_str() + 9) : 0;
    outcome_.statuses[status] += 1;
    bool isExpected = target.status == 0 || status == target.status;
    if (!isExpected)
      outcome_.mistake(Wrong::status, nameOf(flight) + ": " + std::to_string(status) + " instead of " + std::to_string(target.status));
    const char* length = valueOf(head, "\r\nContent-Length:");
    bool hasBody = target.method != "HEAD" && status != 304 && status != 204;
    if (status == 0 || valueOf(head, "\r\nTransfer-Encoding:") != nullptr || (length == nullptr && hasBody)) {
      outcome_.mistake(Wrong::framing, nameOf(flight) + ": an answer without a length");
      return false;
    }
    uint64_t stated = length == nullptr ? 0 : strtoull(length, nullptr, 10);
    if (isExpected) compare(flight, head, status, length, stated);
    const char* connectionLine = valueOf(head, "\r\nConnection:");
    connection.last = connectionLine != nullptr && strncasecmp(connectionLine, "close", 5) == 0;
    connection.left = hasBody ? stated : 0;
    connection.at = 0;
    connection.mismatch = false;
    connection.inBody = true;
    if (!isExpected) connection.flights.front().isCompared = false;
    return true;
  }

  // Length and range of an answer that has the expected status.
  void compare(const Flight& flight, const std::string& head, int status, const char* length, uint64_t stated) {
    const Target& target = *flight.target;
    if (target.size < 0 || status == 304) return;
    uint64_t wanted = target.range > 0 ? target.range : static_cast<uint64_t>(target.size);
    if (length == nullptr || stated != wanted)
      outcome_.mistake(Wrong::length, nameOf(flight) + ": " + std::to_string(stated) + " bytes instead of " + std::to_string(wanted));
    if (target.range == 0) return;
    std::string range = "bytes " + std::to_string(flight.from) + "-" + std::to_string(flight.from + target.range - 1) + "/" +
                        std::to_string(target.size) + "\r\n";
    const char* line = valueOf(head, "\r\nContent-Range:");
    if (line == nullptr || strncmp(line, range.c_str(), range.size()) != 0)
      outcome_.mistake(Wrong::range, nameOf(flight) + ": another range than " + range.substr(0, range.size() - 2));
  }

  template <typename Finish>
  bool over(Connection& connection, Finish finish) {
    Flight flight = connection.flights.front();
    connection.flights.pop_front();
    outcome_.answered += 1;
    if (flight.isCompared) outcome_.checked += 1;
    if (connection.mismatch) outcome_.mistake(Wrong::body, nameOf(flight) + ": other bytes than its content has");
    bool last = connection.last;
    connection.head.clear();
    connection.inBody = connection.last = connection.mismatch = false;
    finish(flight);
    if (last && !connection.flights.empty())
      outcome_.mistake(Wrong::closed, nameOf(connection.flights.front()) + ": closed before it was answered", connection.flights.size());
    return !last;
  }
};
