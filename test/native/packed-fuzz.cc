// Packs mutated heads of answers against those that were packed before, and compares what comes out again, with memory of exactly the
// size that is said, so that a sanitizer sees every byte too far. Arguments: rounds, seed.
#include <deque>
#include <memory>

#include "../../native/server/packed.h"
#include "../../native/server/seal.h"
#include "mutate.h"

using namespace server;

struct Kept {
  std::string head, key, steps, own;
  size_t pattern;
};

// Memory of exactly these bytes, which is somewhere even where there are none.
static std::unique_ptr<char[]> exactly(const std::string& text) {
  std::unique_ptr<char[]> made(new char[text.size()]);
  text.copy(made.get(), text.size());
  return made;
}

static void readAgain(const HeadPatterns& patterns, const Kept& kept) {
  std::unique_ptr<char[]> out = exactly(std::string(kept.head.size(), '?'));
  size_t steps = kept.steps.size() / sizeof(PackedStep);
  patterns.unpack(kept.pattern, exactly(kept.steps).get(), steps, exactly(kept.own).get(), exactly(kept.key).get(), out.get());
  require(kept.head == std::string(out.get(), kept.head.size()), "another head came out", kept.head);
}

// What is taken out of lines can be put back.
static void seal(const std::string& head) {
  std::unique_ptr<char[]> lines = exactly(head);
  SealPlaces places = {};
  if (!findSeal(lines.get(), head.size(), &places)) return;
  require(places.created + kSecondText <= places.signature && places.signature + kSignatureText <= head.size(), "places outside", head);
  Seal taken;
  if (!take(places, lines.get(), &taken)) return;
  put(taken, places, lines.get());
  require(head == std::string(lines.get(), head.size()), "another signature was put back", head);
}

int main(int count, char** words) {
  static const std::string id = "v8_5zp70w62gKb3s6g3eG5odLJRj04bZB6YZus37xJg", signature = std::string(85, 'S') + "A==";
  static const std::string seeds[] = {
      "HTTP/1.1 200 OK\r\nX-Request-Id: 1234567890123456789012\r\nCache-Control: public\r\nX-Id: " + id + "\r\nETag: \"" + id +
          "\"\r\nContent-Digest: sha-256=:v8/5zp70w62gKb3s6g3eG5odLJRj04bZB6YZus37xJg=:\r\nSignature-Input: sig1=(\"@status\" \"x-id\");created=1795730459;keyid=\"k\"\r\nSignature: sig1=:" + signature +
          ":\r\nX-Hops: 0",
      "HTTP/1.1 206 Partial Content\r\nX-Tag-A: one\r\nX-Tag-A: two\r\nX-Id: " + id + "\r\nX-Tag-B: one",
      "HTTP/1.1 304 Not Modified\r\nA: b\r\n\r\nC:\r\n:",
      "",
  };
  int rounds = count > 1 ? atoi(words[1]) : 100000;
  state = (count > 2 ? strtoull(words[2], nullptr, 10) : 1) | 1;
  HeadPatterns patterns;
  std::deque<Kept> all;
  Packed packed;
  for (int round = 0; round < rounds; round += 1) {
    Kept made;
    made.head = mutated(seeds[below(4)], 32000);
    made.key = below(4) == 0 ? mutated(id, 400) : "/" + id;
    seal(made.head);
    patterns.pack({exactly(made.head).get(), made.head.size()}, made.key, &packed);
    made.pattern = packed.pattern;
    made.steps.assign(reinterpret_cast<const char*>(packed.steps.data()), packed.steps.size() * sizeof(PackedStep));
    made.own = packed.own;
    all.push_back(made);
    readAgain(patterns, all[below(static_cast<uint32_t>(all.size()))]);
    readAgain(patterns, made);
    while (all.size() > 200 || (!all.empty() && below(300) == 0)) {
      size_t at = below(static_cast<uint32_t>(all.size()));
      patterns.drop(all[at].pattern);
      all.erase(all.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }
  for (const Kept& kept : all) readAgain(patterns, kept);
  return 0;
}
