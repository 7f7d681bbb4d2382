// Gives mutated heads of answers to the native reader, from memory of exactly their size, so that a sanitizer sees every byte too
// far. Arguments: rounds, seed.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "../../native/client/answer.h"
#include "mutate.h"

using namespace client;

static void readHead(const std::string& text) {
  static const Names names = {{"content-length", 0}, {"content-type", 1}, {"x-word", 2}};
  std::vector<char> bytes(text.begin(), text.end());
  Head head;
  AnswerReader reader(bytes.data(), bytes.size(), names, below(8) == 0);
  bool isThere = reader.read(&head);
  require(!isThere || reader.fault == kSound, "both a head and a fault", text);
  if (!isThere) return;
  require(head.bytes <= text.size() && head.bytes <= kHeadMax, "more was read than there is", text);
  require(text.compare(head.bytes - 2, 2, "\r\n") == 0, "an end that is none", text);
  require(head.status >= 100 && head.status <= 599, "a status that is none", text);
  require(!(head.chunked && head.length > 0) && !(head.untilEnd && head.keeps), "a framing that is none", text);
  for (const Line& line : head.lines) {
    require(line.start <= line.end && line.end < head.bytes, "a line out of order", text);
    require(text.substr(line.start, line.end - line.start).find('\n') == std::string::npos, "a value of two lines", text);
  }
  // Less of the same never gives a head.
  std::vector<char> less(bytes.begin(), bytes.begin() + static_cast<long>(below(static_cast<uint32_t>(head.bytes))));
  AnswerReader early(less.data(), less.size(), names, false);
  require(!early.read(&head) && early.fault == kSound, "a beginning was judged otherwise", text);
}

int main(int count, char** words) {
  static const std::string seeds[] = {
      "HTTP/1.1 200 OK\r\nContent-Length: 12\r\nContent-Type: text/plain\r\n\r\nHello, world",
      "HTTP/1.0 404 Not Found\r\nConnection: close\r\nX-Word: a,b\r\nx-word:\tc \r\n\r\n",
      "HTTP/1.1 206 Part\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive, Close\r\n\r\n0\r\n\r\n",
      "HTTP/1.1 103 Early\r\nLink: </a>\r\n\r\nHTTP/1.1 304\r\nContent-Length: 000000000000007\r\n\r\n",
  };
  int rounds = count > 1 ? atoi(words[1]) : 100000;
  state = (count > 2 ? strtoull(words[2], nullptr, 10) : 1) | 1;
  for (int round = 0; round < rounds; round += 1) readHead(mutated(seeds[below(4)], 40000));
  return 0;
}
