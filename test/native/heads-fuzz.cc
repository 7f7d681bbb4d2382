// Gives mutated requests to the native readers of heads and chunks, whole and in pieces, from memory of exactly their size, so that
// a sanitizer sees every byte too far. Arguments: rounds, seed.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "../../native/server/chunks.h"
#include "mutate.h"

using namespace server;

static void readHead(const std::string& text) {
  std::vector<uint8_t> bytes(text.begin(), text.end());
  std::vector<int32_t> out(kRequestMax, -1);
  Parsed parsed = HeadReader(bytes.data(), bytes.size(), out.data()).read();
  require(parsed.consumed == 0 || parsed.fault == nullptr, "both a head and a fault", text);
  require(parsed.consumed <= bytes.size() && parsed.consumed <= kHeadMax, "more was read than there is", text);
  if (parsed.consumed == 0) return;
  int32_t places[] = {out[kMethodStart], out[kMethodEnd],  out[kPathStart], out[kPathEnd],
                      out[kQueryStart],  out[kQueryEnd], out[kTextEnd]};
  require(bytes[static_cast<size_t>(out[kPathStart])] == '/', "a path that starts with no slash", text);
  for (int at = 1; at < 7; at += 1) require(places[at - 1] <= places[at], "places out of order", text);
  require(static_cast<size_t>(out[kTextEnd]) == parsed.consumed, "another end", text);
  for (int line = 0; line < out[kCount]; line += 1) {
    const int32_t* at = out.data() + kLines + kLineFields * line;
    // The value of Host lies before all lines where the target names a host.
    bool inTarget = at[4] <= out[kQueryEnd] && at[3] > out[kMethodEnd];
    require(at[1] < at[2] && (at[2] < at[3] || inTarget) && at[3] <= at[4] && at[4] < out[kTextEnd], "a line out of order", text);
  }
  // Less of the same never gives another head.
  std::vector<uint8_t> less(text.begin(), text.begin() + static_cast<long>(below(static_cast<uint32_t>(parsed.consumed))));
  Parsed early = HeadReader(less.data(), less.size(), out.data()).read();
  require(early.consumed == 0 && early.fault == nullptr, "a beginning was judged otherwise", text);
}

static std::string readChunks(const std::string& text, bool inPieces, bool* whole) {
  ChunkReader reader;
  std::string body;
  for (size_t at = 0; at < text.size() && !reader.whole && !reader.failed;) {
    size_t length = text.size() - at;
    if (inPieces && length > 1) length = 1 + below(static_cast<uint32_t>(length < 9 ? length : 9));
    std::vector<uint8_t> bytes(text.begin() + static_cast<long>(at), text.begin() + static_cast<long>(at + length));
    for (size_t used = 0; used < length && !reader.whole && !reader.failed;) {
      Span piece;
      used += reader.take(bytes.data() + used, length - used, &piece);
      body.append(reinterpret_cast<const char*>(piece.start), piece.length);
    }
    at += length;
  }
  *whole = reader.whole;
  return body;
}

int main(int count, char** arguments) {
  long rounds = count > 1 ? atol(arguments[1]) : 100000;
  state = count > 2 ? strtoull(arguments[2], nullptr, 10) | 1 : 88172645463325252u;
  const std::string heads[] = {
      "GET /a?b=c HTTP/1.1\r\nHost: x\r\nAccept: */*\r\nConnection: keep-alive, close\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: [::1]:80\r\nContent-Length: 12\r\nExpect: 100-continue\r\n\r\nabcdefghijkl",
      "\r\nPUT /x HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      "GET https://x.y:80/a?b HTTP/1.1\r\nHost: z\r\n\r\n",
      "GET HTTP://x HTTP/1.1\r\nHost: z\r\n\r\n",
  };
  const std::string bodies[] = {"3\r\nabc\r\n0\r\n\r\n", "5;a=\"b\"\r\nabcde\r\nA\r\n0123456789\r\n0\r\nA: b\r\nC: d\r\n\r\n"};
  for (long round = 0; round < rounds; round += 1) {
    readHead(mutated(heads[below(5)], 20000));
    std::string text = mutated(bodies[below(2)], 20000);
    bool whole = false, wholeInPieces = false;
    std::string body = readChunks(text, false, &whole);
    std::string same = readChunks(text, true, &wholeInPieces);
    require(whole == wholeInPieces && (!whole || body == same), "pieces gave another body", text);
  }
  return 0;
}
