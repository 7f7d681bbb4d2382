// The client as JavaScript sees it: Node-API in and out. See client.h for what it does, client.ts for the words.
#include <errno.h>
#include <node_api.h>

#include <memory>
#include <sstream>
#include <utility>
#include <vector>

#include "../loop-bridge.h"
#include "client.h"

namespace {

using namespace client;

struct Memory {
  std::vector<int32_t> inbox;
  std::vector<uint8_t> bytes;
};

// One client and the JavaScript that it talks to.
using OpenClient = loop_bridge::Bridge<Client, Memory>;

Client* clientOf(Arguments& arguments) {
  OpenClient* owner = loop_bridge::ownerOf<OpenClient>(arguments);
  return owner == nullptr ? nullptr : owner->part;
}

size_t originOf(Arguments& arguments, const Client* client) {
  if (client->origins() > 0) return static_cast<size_t>(arguments.integer(1, 0, client->origins() - 1));
  arguments.wrong(1, "is no origin", true);
  return 0;
}

constexpr size_t kPartMax = 1 << 28;

// open(names, inboxNumbers, bytesBytes, hear) -> [client, inbox, bytes], the last two as ArrayBuffers. `names`: of header lines,
// separated by commas.
napi_value open(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "open");
  std::string names = arguments.text(0, 8192);
  size_t inbox = static_cast<size_t>(arguments.integer(1, kInboxMin, kPartMax));
  size_t bytes = static_cast<size_t>(arguments.integer(2, kBytesMin, kPartMax));
  napi_valuetype type = napi_undefined;
  napi_typeof(env, arguments.at(3), &type);
  if (arguments.good && type != napi_function) arguments.wrong(3, "is no function", false);
  if (!arguments.good) return nullptr;
  Names known;
  std::stringstream list(names);
  for (std::string name; std::getline(list, name, ',');) known.emplace(name, static_cast<int>(known.size()));
  OpenClient* owner = new OpenClient{};
  owner->memory->inbox.resize(inbox);
  owner->memory->bytes.resize(bytes);
  Shared shared{owner->memory->inbox.data(), inbox, owner->memory->bytes.data(), bytes};
  uv_loop_t* loop = loop_bridge::bind(env, arguments.at(3), owner);
  owner->part = new Client(loop, shared, std::move(known), [owner](size_t numbers) { callWith(owner->env, owner->hear, numbers); });
  napi_value parts[] = {loop_bridge::keyOf(env, owner), loop_bridge::viewOf(owner, owner->memory->inbox.data(), inbox * sizeof(int32_t)),
                        loop_bridge::viewOf(owner, owner->memory->bytes.data(), bytes)};
  return loop_bridge::listOf(owner, parts);
}

// origin(client, connectionsMax) -> number
napi_value origin(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "origin");
  Client* client = clientOf(arguments);
  size_t most = static_cast<size_t>(arguments.integer(1, 1, 1 << 16));
  if (!arguments.good || client == nullptr) return nullptr;
  return numberOf(env, static_cast<double>(client->addOrigin(most)));
}

// address(client, origin, ip, port, isFirst): the first one takes the place of all before.
napi_value address(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "address");
  Client* client = clientOf(arguments);
  if (client == nullptr) return nullptr;
  size_t at = originOf(arguments, client);
  std::string ip = arguments.text(2, 63);
  int port = static_cast<int>(arguments.integer(3, 1, 65535));
  bool isFirst = arguments.truth(4);
  if (!arguments.good) return nullptr;
  if (isFirst) client->dropAddresses(at);
  if (!client->addAddress(at, ip, port)) arguments.wrong(2, "is no address", true);
  return nullptr;
}

// trust(client, pem, suites, ciphers) -> certificates that were added; -1 where there is no OpenSSL for it. Once before the first
// origin of TLS.
napi_value trust(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "trust");
  Client* client = clientOf(arguments);
  std::string pem = arguments.text(1, 1 << 24);
  std::string suites = arguments.text(2, 4096), ciphers = arguments.text(3, 4096);
  if (!arguments.good || client == nullptr) return nullptr;
  Trust* trust = client->trust();
  bool good = trust != nullptr && trust->offer(suites, ciphers);
  return numberOf(env, good ? static_cast<double>(trust->add(pem)) : -1);
}

// secure(client, origin, host, isAddress): TLS is spoken with this origin.
napi_value secure(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "secure");
  Client* client = clientOf(arguments);
  if (client == nullptr) return nullptr;
  size_t at = originOf(arguments, client);
  std::string host = arguments.text(2, 255);
  bool isAddress = arguments.truth(3);
  if (!arguments.good) return nullptr;
  if (!client->secure(at, host, isAddress)) return fail(env, "this Node has no OpenSSL 3", ENOTSUP);
  return nullptr;
}

// What is sent is one head: lines that end with CR LF, of which the last one is empty.
bool isHead(const std::string& text) {
  if (text.size() < 4 || text.find("\r\n\r\n") != text.size() - 4) return false;
  for (size_t at = 0; at < text.size(); at += 1) {
    if (text[at] == '\r' && text[at + 1] != '\n') return false;
    if (text[at] == '\n' && (at == 0 || text[at - 1] != '\r')) return false;
  }
  return true;
}

// request(client, origin, head, isHead, wholeMax) -> number of the request
napi_value request(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "request");
  Client* client = clientOf(arguments);
  if (client == nullptr) return nullptr;
  size_t at = originOf(arguments, client);
  std::string text;
  size_t length = 0;
  if (arguments.good && napi_get_value_string_latin1(env, arguments.at(2), nullptr, 0, &length) != napi_ok)
    arguments.wrong(2, "is no text", false);
  if (arguments.good && length > kHeadMax) arguments.wrong(2, "is too long", true);
  if (arguments.good) {
    text.resize(length + 1);
    napi_get_value_string_latin1(env, arguments.at(2), &text[0], length + 1, &length);
    text.resize(length);
    if (!isHead(text)) arguments.wrong(2, "is no head", true);
  }
  bool bodiless = arguments.truth(3);
  uint64_t wholeMax = arguments.integer(4, 0, kWholeMax);
  if (!arguments.good) return nullptr;
  return numberOf(env, client->begin(at, std::move(text), bodiless, wholeMax));
}

// NAME(client, request)
template <void (Client::*act)(uint32_t)>
napi_value onRequest(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "a call about a request");
  Client* client = clientOf(arguments);
  uint32_t id = static_cast<uint32_t>(arguments.integer(1, 0, 0xffffffff));
  if (client != nullptr && arguments.good) (client->*act)(id);
  return nullptr;
}

}  // namespace

NAPI_MODULE_INIT() {
  return give(env, exports, {{"open", open},
                             {"origin", origin},
                             {"address", address},
                             {"trust", trust},
                             {"secure", secure},
                             {"request", request},
                             {"pause", onRequest<&Client::pause>},
                             {"resume", onRequest<&Client::resume>},
                             {"drop", onRequest<&Client::drop>},
                             {"destroy", loop_bridge::destroyCall<OpenClient>}});
}
