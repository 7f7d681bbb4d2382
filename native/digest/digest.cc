// Several digests in one pass over the bytes. See README.md for why and how fast.
#include <node_api.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "../calls.h"
#include "deep.h"
#include "lanes.h"

namespace {

constexpr size_t kChunk = 64;
constexpr size_t kSha256 = 32;
constexpr size_t kSha1 = 20;
// Blocks and pieces are no larger.
constexpr uint64_t kCutMax = 0xffffffff;

// FIPS 180-4, 5.3.3 and 5.3.1.
constexpr uint32_t kStart256[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                   0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
constexpr uint32_t kStart1[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};

// One pass. It lies in an ArrayBuffer, so that its memory is JavaScript's.
struct Pass {
  uint32_t whole[8];
  uint32_t block[8];
  uint32_t piece[5];
  uint32_t restBytes;
  uint8_t rest[kChunk];
  uint64_t total;
  // Multiples of 64; a piece is a multiple of blocks.
  uint64_t blockBytes;
  uint64_t pieceBytes;
};

void writeWords(uint8_t* to, const uint32_t* words, size_t count) {
  for (size_t at = 0; at < count; at += 1, to += 4) {
    for (int byte = 0; byte < 4; byte += 1) to[byte] = static_cast<uint8_t>(words[at] >> (24 - 8 * byte));
  }
}

// Padding (FIPS 180-4, 5.1.1) behind `restBytes` of an unfinished chunk: one chunk or two. Returns how many.
size_t pad(uint8_t* chunks, const uint8_t* rest, size_t restBytes, uint64_t totalBytes) {
  size_t count = restBytes + 9 > kChunk ? 2 : 1;
  memset(chunks, 0, count * kChunk);
  if (restBytes > 0) memcpy(chunks, rest, restBytes);
  chunks[restBytes] = 0x80;
  uint64_t bits = totalBytes * 8;
  for (int byte = 0; byte < 8; byte += 1) {
    chunks[count * kChunk - 1 - byte] = static_cast<uint8_t>(bits >> (8 * byte));
  }
  return count;
}

void end256(uint32_t* state, const uint8_t* rest, size_t restBytes, uint64_t totalBytes, uint8_t* out) {
  uint8_t chunks[2 * kChunk];
  size_t count = pad(chunks, rest, restBytes, totalBytes);
  lanes::run<true, false, false>(state, nullptr, nullptr, chunks, count);
  writeWords(out, state, 8);
  memcpy(state, kStart256, sizeof(kStart256));
}

void end1(uint32_t* state, uint64_t totalBytes, uint8_t* out) {
  uint8_t chunks[2 * kChunk];
  size_t count = pad(chunks, nullptr, 0, totalBytes);
  lanes::run<false, false, true>(nullptr, nullptr, state, chunks, count);
  writeWords(out, state, 5);
  memcpy(state, kStart1, sizeof(kStart1));
}

// Where the digests of finished blocks and pieces go.
struct Out {
  uint8_t* blocks;
  uint8_t* pieces;
};

void take(Pass& pass, const uint8_t* bytes, size_t chunks, Out& out) {
  while (chunks > 0) {
    size_t run = (pass.blockBytes - pass.total % pass.blockBytes) / kChunk;
    if (run > chunks) run = chunks;
    lanes::run<true, true, true>(pass.whole, pass.block, pass.piece, bytes, run);
    bytes += run * kChunk;
    chunks -= run;
    pass.total += run * kChunk;
    if (pass.total % pass.blockBytes != 0) continue;
    end256(pass.block, nullptr, 0, pass.blockBytes, out.blocks);
    out.blocks += kSha256;
    if (pass.total % pass.pieceBytes != 0) continue;
    end1(pass.piece, pass.pieceBytes, out.pieces);
    out.pieces += kSha1;
  }
}

bool isCut(uint64_t blockBytes, uint64_t pieceBytes) {
  return blockBytes > 0 && blockBytes % kChunk == 0 && pieceBytes > 0 && pieceBytes % blockBytes == 0;
}

napi_value refuse(napi_env env, const char* what) {
  napi_throw_range_error(env, nullptr, what);
  return nullptr;
}

// The pass in an ArrayBuffer. Its memory is JavaScript's, so what it says of lengths is checked each time.
Pass* passOf(napi_env env, Arguments& arguments) {
  void* data = nullptr;
  size_t length = 0;
  if (napi_get_arraybuffer_info(env, arguments.at(0), &data, &length) != napi_ok || length != sizeof(Pass)) {
    arguments.wrong(0, "is no pass", false);
    return nullptr;
  }
  Pass* pass = static_cast<Pass*>(data);
  bool sound = pass->restBytes < kChunk && pass->total % kChunk == 0 && pass->total < static_cast<uint64_t>(kExact) &&
               pass->blockBytes <= kCutMax && pass->pieceBytes <= kCutMax && isCut(pass->blockBytes, pass->pieceBytes);
  if (!sound) arguments.wrong(0, "is a pass that was written to", false);
  return pass;
}

// start(blockBytes, pieceBytes) -> what the calls below are given.
napi_value start(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "start");
  uint64_t blockBytes = arguments.integer(0, 0, kCutMax), pieceBytes = arguments.integer(1, 0, kCutMax);
  if (!arguments.good) return nullptr;
  if (!isCut(blockBytes, pieceBytes)) return refuse(env, "blocks are of whole chunks, pieces of whole blocks");
  void* data = nullptr;
  napi_value made;
  if (napi_create_arraybuffer(env, sizeof(Pass), &data, &made) != napi_ok) return nullptr;
  Pass pass{};
  memcpy(pass.whole, kStart256, sizeof(kStart256));
  memcpy(pass.block, kStart256, sizeof(kStart256));
  memcpy(pass.piece, kStart1, sizeof(kStart1));
  pass.blockBytes = blockBytes;
  pass.pieceBytes = pieceBytes;
  memcpy(data, &pass, sizeof(pass));
  return made;
}

// update(pass, bytes, blocks, pieces): the latter two have room for exactly the digests that are finished by these bytes.
napi_value update(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "update");
  Pass* kept = passOf(env, arguments);
  Bytes bytes = arguments.bytes(1), blocks = arguments.bytes(2), pieces = arguments.bytes(3);
  if (!arguments.good) return nullptr;
  // The caller's buffers may overlap the pass itself, so the calculation uses a copy of it.
  Pass pass = *kept;
  uint64_t before = pass.total + pass.restBytes, after = before + bytes.length;
  bool fits = (after / pass.blockBytes - before / pass.blockBytes) * kSha256 == blocks.length &&
              (after / pass.pieceBytes - before / pass.pieceBytes) * kSha1 == pieces.length;
  if (!fits) return refuse(env, "no room for exactly the finished digests");
  if (bytes.length == 0) return nullptr;
  Out out{blocks.data, pieces.data};
  if (pass.restBytes > 0) {
    size_t more = kChunk - pass.restBytes < bytes.length ? kChunk - pass.restBytes : bytes.length;
    memcpy(pass.rest + pass.restBytes, bytes.data, more);
    pass.restBytes += static_cast<uint32_t>(more);
    bytes.data += more;
    bytes.length -= more;
    if (pass.restBytes < kChunk) {
      *kept = pass;
      return nullptr;
    }
    pass.restBytes = 0;
    take(pass, pass.rest, 1, out);
  }
  take(pass, bytes.data, bytes.length / kChunk, out);
  pass.restBytes = static_cast<uint32_t>(bytes.length % kChunk);
  if (pass.restBytes > 0) memcpy(pass.rest, bytes.data + bytes.length - pass.restBytes, pass.restBytes);
  *kept = pass;
  return nullptr;
}

// The last piece, filled up with zeros. The last thing that `rest` is needed for.
void endPiece(Pass& pass, uint8_t* out) {
  uint64_t chunks = (pass.pieceBytes - pass.total % pass.pieceBytes) / kChunk;
  static constexpr size_t most = 64;
  static constexpr uint8_t zeros[most * kChunk] = {};
  memset(pass.rest + pass.restBytes, 0, kChunk - pass.restBytes);
  lanes::run<false, false, true>(nullptr, nullptr, pass.piece, pass.rest, 1);
  for (chunks -= 1; chunks > 0;) {
    size_t run = chunks < most ? chunks : most;
    lanes::run<false, false, true>(nullptr, nullptr, pass.piece, zeros, run);
    chunks -= run;
  }
  end1(pass.piece, pass.pieceBytes, out);
}

// finish(pass, whole, blocks, pieces): `blocks` and `pieces` have room for one digest where one is unfinished, else none.
napi_value finish(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "finish");
  const Pass* kept = passOf(env, arguments);
  Bytes whole = arguments.bytes(1), blocks = arguments.bytes(2), pieces = arguments.bytes(3);
  if (!arguments.good) return nullptr;
  Pass pass = *kept;
  uint64_t total = pass.total + pass.restBytes;
  uint64_t blockRest = total % pass.blockBytes, pieceRest = total % pass.pieceBytes;
  bool fits = whole.length == kSha256 && blocks.length == (blockRest > 0 ? kSha256 : 0) &&
              pieces.length == (pieceRest > 0 ? kSha1 : 0);
  if (!fits) return refuse(env, "no room for exactly the last digests");
  end256(pass.whole, pass.rest, pass.restBytes, total, whole.data);
  if (blockRest > 0) end256(pass.block, pass.rest, pass.restBytes, blockRest, blocks.data);
  if (pieceRest > 0) endPiece(pass, pieces.data);
  return nullptr;
}

// SHA-256 of two blocks at once.
void hashTwo(const uint8_t* bytes, const uint8_t* others, uint64_t blockBytes, uint8_t* out) {
  uint32_t one[8], other[8];
  memcpy(one, kStart256, sizeof(kStart256));
  memcpy(other, kStart256, sizeof(kStart256));
  lanes::runTwo(one, other, bytes, others, blockBytes / kChunk);
  uint8_t chunks[2 * kChunk];
  size_t count = pad(chunks, nullptr, 0, blockBytes);
  lanes::runTwo(one, other, chunks, chunks, count);
  writeWords(out, one, 8);
  writeWords(out + kSha256, other, 8);
}

// blocks(bytes, blockBytes, digests): SHA-256 of each block; the last one may be shorter.
napi_value blocks(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "blocks");
  Bytes bytes = arguments.bytes(0);
  size_t size = static_cast<size_t>(arguments.integer(1, 0, kCutMax));
  Bytes digests = arguments.bytes(2);
  if (!arguments.good) return nullptr;
  if (size == 0 || size % kChunk != 0) return refuse(env, "blocks are of whole chunks");
  if (digests.length != (bytes.length + size - 1) / size * kSha256) return refuse(env, "no room for exactly the digests");
  size_t at = 0;
  uint8_t* out = digests.data;
  for (; bytes.length - at >= 2 * size; at += 2 * size, out += 2 * kSha256) {
    hashTwo(bytes.data + at, bytes.data + at + size, size, out);
  }
  for (; at < bytes.length; at += size, out += kSha256) {
    size_t rest = bytes.length - at < size ? bytes.length - at : size;
    uint32_t state[8];
    memcpy(state, kStart256, sizeof(kStart256));
    lanes::run<true, false, false>(state, nullptr, nullptr, bytes.data + at, rest / kChunk);
    end256(state, bytes.data + at + rest / kChunk * kChunk, rest % kChunk, rest, out);
  }
  return nullptr;
}

// deepen(begun, blobs, out): the accumulator of a list after the blobs in the array `blobs`; `begun` before them. `out` may be
// `begun`.
napi_value deepen(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "deepen");
  Bytes begun = arguments.bytes(0), out = arguments.bytes(2);
  if (!arguments.good) return nullptr;
  if (begun.length != deep::kHash || out.length != deep::kHash) return refuse(env, "accumulators have 48 bytes");
  uint32_t count = 0;
  bool isArray = false;
  napi_value blobs = arguments.at(1);
  if (napi_is_array(env, blobs, &isArray) != napi_ok || !isArray || napi_get_array_length(env, blobs, &count) != napi_ok) {
    arguments.wrong(1, "is no array", false);
    return nullptr;
  }
  uint8_t acc[deep::kHash];
  memcpy(acc, begun.data, sizeof(acc));
  for (uint32_t at = 0; at < count; at += 1) {
    napi_value blob;
    napi_typedarray_type type;
    void* data = nullptr;
    size_t length = 0;
    if (napi_get_element(env, blobs, at, &blob) != napi_ok) return nullptr;
    if (napi_get_typedarray_info(env, blob, &type, &length, &data, nullptr, nullptr) != napi_ok || type != napi_uint8_array) {
      arguments.wrong(1, "has something in it that is no Uint8Array", false);
      return nullptr;
    }
    deep::extendBy(acc, static_cast<const uint8_t*>(data), length);
  }
  memcpy(out.data, acc, sizeof(acc));
  return nullptr;
}

// deepenBy(begun, hash, length, out): the same for one blob of `length` bytes with this SHA-384.
napi_value deepenBy(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "deepenBy");
  Bytes begun = arguments.bytes(0), hash = arguments.bytes(1);
  uint64_t length = arguments.integer(2, 0, static_cast<uint64_t>(kExact) - 1);
  Bytes out = arguments.bytes(3);
  if (!arguments.good) return nullptr;
  if (begun.length != deep::kHash || hash.length != deep::kHash || out.length != deep::kHash) {
    return refuse(env, "accumulators and hashes have 48 bytes");
  }
  uint8_t acc[deep::kHash], blob[deep::kHash];
  memcpy(acc, begun.data, sizeof(acc));
  memcpy(blob, hash.data, sizeof(blob));
  deep::extend(acc, length, blob);
  memcpy(out.data, acc, sizeof(acc));
  return nullptr;
}

// able() -> whether this processor has what the calls above need, those of deep hashes aside: they need nothing.
napi_value able(napi_env env, napi_callback_info) {
  napi_value result;
  napi_get_boolean(env, lanes::able(), &result);
  return result;
}

}  // namespace

NAPI_MODULE_INIT() {
  return give(env, exports, {{"able", able}, {"start", start}, {"update", update}, {"finish", finish},
                             {"blocks", blocks}, {"deepen", deepen}, {"deepenBy", deepenBy}});
}
