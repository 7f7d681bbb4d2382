// Answers requests without JavaScript, where the same was answered before and nothing has changed since.
#include <errno.h>
#include <sys/random.h>
#include <time.h>

#include <algorithm>
#include <cstdio>

#include "places.h"
#include "cache-state.h"
#include "server.h"
#include "signing.h"

namespace server {

namespace {

struct Text {
  const char* start = nullptr;
  size_t length = 0;
};

bool is(const Text& text, const char* word) { return text.length == strlen(word) && memcmp(text.start, word, text.length) == 0; }

// What a request that may be answered here says.
struct Requested {
  Text host, target, noneMatch, range;
  bool isHead = false, loose = false;
};

// A number of 1 to 15 digits up to `end`, or -1.
int64_t digits(const char* at, const char* end) {
  if (at >= end || end - at > 15) return -1;
  int64_t value = 0;
  for (; at < end; at += 1) {
    if (*at < '0' || *at > '9') return -1;
    value = value * 10 + (*at - '0');
  }
  return value;
}

// `bytes=A-B` with nothing else in it, as `readUsual` in src/format/range.ts; false for everything else, which JavaScript reads.
bool readRange(const Text& field, size_t sizeBytes, size_t* start, size_t* end) {
  static const char unit[] = "bytes=";
  constexpr size_t kUnit = sizeof(unit) - 1;
  if (field.length <= kUnit || memcmp(field.start, unit, kUnit) != 0) return false;
  const char* from = field.start + kUnit;
  const char* stop = field.start + field.length;
  const char* dash = std::find(from, stop, '-');
  if (dash == stop) return false;
  int64_t first = digits(from, dash), last = digits(dash + 1, stop);
  if (first < 0 || last < first || first >= static_cast<int64_t>(sizeBytes)) return false;
  *start = static_cast<size_t>(first);
  *end = std::min(static_cast<size_t>(last), sizeBytes - 1) + 1;
  return true;
}

// Reads the request of these numbers (parser.h). False: it is one for JavaScript.
bool readRequested(const PlainLines& plain, const uint8_t* bytes, const int32_t* out, Requested* requested) {
  if ((out[kFlags] & (kBody | kChunked | kExpects)) != 0 || out[kQueryStart] != out[kQueryEnd]) return false;
  const char* text = reinterpret_cast<const char*>(bytes);
  auto piece = [text](int32_t start, int32_t end) { return Text{text + start, static_cast<size_t>(end - start)}; };
  Text method = piece(out[kMethodStart], out[kMethodEnd]);
  requested->isHead = is(method, "HEAD");
  if (!requested->isHead && !is(method, "GET")) return false;
  requested->target = piece(out[kPathStart], out[kPathEnd]);
  for (int32_t at = 0; at < out[kCount]; at += 1) {
    const int32_t* line = out + kLines + kLineFields * at;
    Text name = piece(line[1], line[2]), value = piece(line[3], line[4]);
    PlainLines::Verdict verdict = plain.judge(static_cast<uint32_t>(line[0]), name.start, name.length, value.start, value.length);
    if (verdict == PlainLines::kLoose) requested->loose = true;
    if (verdict != PlainLines::kUnknown) continue;
    Text* special = is(name, "host") ? &requested->host : is(name, "if-none-match") ? &requested->noneMatch : is(name, "range") ? &requested->range : nullptr;
    if (special == nullptr || special->start != nullptr) return false;
    *special = value;
  }
  return true;
}

// The value of the only line of this name, or none. False: there are several.
bool onlyLine(const uint8_t* bytes, const int32_t* out, const char* name, Text* value) {
  const char* text = reinterpret_cast<const char*>(bytes);
  for (int32_t at = 0; at < out[kCount]; at += 1) {
    const int32_t* line = out + kLines + kLineFields * at;
    if (!is(Text{text + line[1], static_cast<size_t>(line[2] - line[1])}, name)) continue;
    if (value->start != nullptr) return false;
    *value = {text + line[3], static_cast<size_t>(line[4] - line[3])};
  }
  return true;
}

void count(const Limited& limits, const Taken& taken) {
  *limits.requests += 1;
  *limits.ipTokens += static_cast<double>(taken.tokens);
  *limits.resourceTokens += static_cast<double>(taken.resourceTokens);
}

double secondsOf(const timespec& time) { return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9; }

}  // namespace

bool RequestIds::next(char* to) {
  if (used_ == sizeof(spelled_)) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    uint8_t random[kBytes];
    for (size_t got = 0; got < kBytes;) {
      ssize_t more = getrandom(random + got, kBytes - got, 0);
      if (more <= 0 && errno != EINTR) return false;
      if (more > 0) got += static_cast<size_t>(more);
    }
    for (size_t from = 0, at = 0; from < kBytes; from += 3, at += 4) {
      uint32_t bits = static_cast<uint32_t>(random[from]) << 16 | static_cast<uint32_t>(random[from + 1]) << 8 | random[from + 2];
      for (size_t part = 0; part < 4; part += 1) spelled_[at + part] = letters[(bits >> (18 - 6 * part)) & 63];
    }
    used_ = 0;
  }
  memcpy(to, spelled_ + used_, kLength);
  used_ += kEach;
  return true;
}

const char* DateLine::of(int64_t seconds) {
  if (seconds == second_) return text_;
  static const char days[][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  time_t time = static_cast<time_t>(seconds);
  tm parts = {};
  gmtime_r(&time, &parts);
  char text[128];
  snprintf(text, sizeof(text), "\r\nDate: %s, %02d %s %04d %02d:%02d:%02d GMT", days[parts.tm_wday], parts.tm_mday,
           months[parts.tm_mon], parts.tm_year + 1900, parts.tm_hour, parts.tm_min, parts.tm_sec);
  memcpy(text_, text, kLength);
  text_[kLength] = '\0';
  second_ = seconds;
  return text_;
}

// Answers the request of these numbers here, where that can be done. False: nothing has happened, and JavaScript answers.
bool Server::answerFromCache(Connection* c, const uint8_t* bytes, const int32_t* out) {
  CacheState& all = *cacheState_;
  Requested requested;
  if (!readRequested(all.lines, bytes, out, &requested)) return false;
  Variant variant = requested.noneMatch.start != nullptr ? Variant::kUnchanged : requested.range.start != nullptr ? Variant::kPart : Variant::kAll;
  CacheKey key{variant, requested.isHead, requested.host.start, requested.target.start, requested.host.length, requested.target.length};
  if (key.host == nullptr) key.host = "";
  CacheEntry* answer = all.cache.findFor(key);
  if (answer == nullptr && all.group != nullptr) answer = all.adopt(key);
  if (answer == nullptr || (answer->strict && requested.loose)) return false;
  timespec wall, began;
  clock_gettime(CLOCK_REALTIME, &wall);
  clock_gettime(CLOCK_MONOTONIC, &began);
  if (!all.cache.holds(*answer)) {
    all.cache.remove(answer);
    return false;
  }
  bool hasBody = answer->hasBody && !requested.isHead;
  if (variant == Variant::kUnchanged) {
    bool same = answer->tag == requested.noneMatch.length && memcmp(answer->tagText(), requested.noneMatch.start, answer->tag) == 0;
    if (!same) return false;
  }
  size_t start = 0, end = answer->sizeBytes;
  if (variant == Variant::kPart && !readRange(requested.range, answer->sizeBytes, &start, &end)) return false;
  size_t length = hasBody ? end - start : 0;
  const uint8_t* body = length > 0 ? all.cache.regions[answer->region].memory + answer->offset + start : nullptr;
  file_places::Place place;
  bool mayWait = length >= kFromFile && length <= kCachedBodyMax && all.sending < sendingMax(limits_.connectionsMax);
  bool isFromFile = mayWait && placeOf(body, length, &place);
  if (!isFromFile && (length > kAsideEachMax || all.aside + length > (length > kSmallBody ? kAsideLargeMax : kAsideMax))) return false;
  if (length > 0 && !all.cache.isHere(*answer, start, end)) return false;

  std::string& head = all.head;
  head.resize(answer->headLength());
  all.cache.unsignedHead(*answer, &head[0]);
  if (!isInTime(&all.cache, answer, requested.isHead, wall.tv_sec, all.sealer.get(), &head[0])) {
    // Not where HEAD alone is signed elsewhere.
    if (answer->isHead == requested.isHead) all.cache.remove(answer);
    return false;
  }
  if (!all.ids.next(&head[answer->before])) return false;
  if (answer->price != Price::kNone && !admit(c, bytes, out, *answer, length)) return false;
  bool last = c->last || closing_;
  char own[160];
  if (variant == Variant::kPart) {
    int written = snprintf(own, sizeof(own), "\r\nContent-Range: bytes %zu-%zu/%zu", start, end - 1, answer->sizeBytes);
    head.append(own, static_cast<size_t>(written));
  }
  head.append(all.date.of(wall.tv_sec), DateLine::kLength).append(all.every);
  if (variant != Variant::kUnchanged) {
    int written = snprintf(own, sizeof(own), "\r\nContent-Length: %zu", end - start);
    head.append(own, static_cast<size_t>(written));
  }
  head.append(last ? "\r\nConnection: close\r\n\r\n" : "\r\n\r\n");

  if (length >= kLarge && !c->near) limitInFlight(c);
  Took took = transmit(c, reinterpret_cast<const uint8_t*>(head.data()), head.size(), body, length);
  // The file has shrunk beneath its mapping: JavaScript finds that out.
  if (took.lost && took.bytes == 0) {
    if (c->taken.tokens > 0) all.limits->giveBack(c->taken);
    c->taken.tokens = 0;
    return false;
  }
  c->last = last;
  c->phase = Phase::kAnswering;
  c->ended = true;
  c->broken = isHard(took.error);
  size_t sent = took.bytes;
  if (sent > 0) c->begun = true;
  c->since = now_;
  ResponseCache::use(answer);
  all.answered += 1;
  note(*answer, secondsOf(wall) * 1000, length);
  if (answer->price != Price::kNone) count(*all.limits, c->taken);
  const Tally& tally = all.cache.tallies[answer->tally];
  *tally.at[kHits] += 1;
  *tally.at[kFromCache] += 1;
  if (tally.at[kNames] != nullptr) *tally.at[kNames] += 1;
  c->beganSeconds = secondsOf(began);
  c->owed = static_cast<int64_t>(answer->tally);
  c->owedBody = length;
  c->isPart = sent < head.size() + length || !c->rest.empty();
  if (!c->isPart) {
    finishCached(c, kWhole);
    return true;
  }
  all.unfinished += 1;
  if (c->tls == nullptr) c->rest.assign(head, sent < head.size() ? sent : head.size(), std::string::npos);
  size_t done = sent > head.size() ? sent - head.size() : 0;
  if (isFromFile && done < length && !took.lost) {
    sendLater(c, {body + done, length - done, answer->region});
    return true;
  }
  if (took.lost || (length > done && !setAside(c, body + done, length - done))) {
    c->owedBody = done;
    c->rest.clear();
    finishCached(c, kBroken);
    c->broken = true;
    return true;
  }
  c->aside = c->rest.size();
  all.aside += c->aside;
  return true;
}

// Takes the tokens of an answer of so many bytes, where it costs any. False: nothing was taken, and JavaScript decides.
bool Server::admit(Connection* c, const uint8_t* bytes, const int32_t* out, const CacheEntry& answer, size_t length) {
  Limited* limits = cacheState_->limits.get();
  c->taken.tokens = c->taken.resourceTokens = 0;
  if (limits == nullptr) return false;
  if (c->client.lists != limits->lists) c->client = limits->clientAt(c->ip);
  Client client = c->client;
  if (client.trusted) {
    Text forwarded, real;
    if (!onlyLine(bytes, out, "x-forwarded-for", &forwarded) || !onlyLine(bytes, out, "x-real-ip", &real)) return false;
    if (forwarded.start == nullptr && real.start != nullptr) return false;
    if (forwarded.start != nullptr && !limits->behind(forwarded.start, forwarded.length, c->client, &client)) return false;
  }
  if (client.exempt || answer.price == Price::kFree) return true;
  if (limits->take(client, answer.resource, length, &c->taken)) return true;
  c->taken.tokens = 0;
  return false;
}

// What follows an answer that went out or was put aside.
void Server::afterCachedAnswer(Connection* c) {
  if (c->broken) return gone(c);
  if (!c->isFull()) return finish(c);
  arm(c, c->events | UV_WRITABLE);
}

// The rest of a body goes out as its client takes it: its memory has to stay for so long.
void Server::sendLater(Connection* c, const BodyLeft& body) {
  c->body = body;
  cacheState_->cache.regions[body.region].sending += 1;
  cacheState_->sending += 1;
}

// Whether what is left of a body can be sent without waiting for the disk. Where it cannot, the read is started, and the next sweep tries again.
bool Server::isLaterHere(Connection* c) {
  const BodyLeft& body = c->body;
  const Region& region = cacheState_->cache.regions[body.region];
  size_t start = static_cast<size_t>(body.start - region.memory);
  if (region.isHere(start, start + body.length)) return true;
  resident::bringIn(body.start, body.length);
  arm(c, c->events & ~UV_WRITABLE);
  return false;
}

void Server::noLater(Connection* c) {
  size_t at = c->body.region;
  if (at == kNoRegion) return;
  c->body = BodyLeft();
  cacheState_->cache.regions[at].sending -= 1;
  cacheState_->sending -= 1;
}

// Counts how a cached answer ended, once.
void Server::finishCached(Connection* c, Count ending) {
  if (c->owed < 0) return;
  const Tally& tally = cacheState_->cache.tallies[static_cast<size_t>(c->owed)];
  timespec over;
  clock_gettime(CLOCK_MONOTONIC, &over);
  tally.took(secondsOf(over) - c->beganSeconds);
  c->owed = -1;
  size_t aside = c->rest.size() < c->owedBody ? c->rest.size() : c->owedBody;
  size_t left = c->body.length > 0 ? c->body.length : aside;
  if (c->tls != nullptr) left = std::min(c->owedBody, c->body.length + c->rest.size());
  *tally.at[kBodyBytes] += static_cast<double>(c->owedBody - left);
  if (ending != kWhole && c->taken.tokens > 0) cacheState_->limits->returnUnsent(c->taken, c->owedBody - left);
  c->taken.tokens = 0;
  *tally.at[ending == kWhole ? kWhole : kAborted] += 1;
  if (ending != kWhole && ending != kAborted) *tally.at[ending] += 1;
  cacheState_->aside -= c->aside;
  c->aside = 0;
  cacheState_->unfinished -= c->isPart ? 1 : 0;
  c->isPart = false;
  noLater(c);
}

void Server::note(const CacheEntry& answer, double nowMs, size_t bytes) {
  CacheState& all = *cacheState_;
  all.unsampled += 1;
  bool recent = nowMs - all.sampledMs < kSampleGapMs && nowMs >= all.sampledMs;
  if (recent || all.samples.size() >= kSamplesMax) return;
  std::string shown(answer.shownText(), answer.shown);
  if (!shown.empty()) shown += ": ";
  shown.append(answer.targetText(), answer.target);
  all.samples.push_back({nowMs, static_cast<double>(bytes), all.unsampled, shown});
  all.unsampled = 0;
  all.sampledMs = nowMs;
}

}  // namespace server
