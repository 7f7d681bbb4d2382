// TLS as JavaScript sees it. See tls.h.
#include "listener.h"
#include "tls.h"

namespace server {

namespace {
constexpr size_t kWordsMax = 4096, kPemMax = 1024 * 1024;
}

// tlsReady() -> whether this Node has what TLS takes
napi_value tlsReady(napi_env env, napi_callback_info) {
  napi_value result;
  napi_get_boolean(env, openssl::calls() != nullptr, &result);
  return result;
}

// tlsOpen(listener, ticketKeys, refusesUnknown, suites, ciphers, groups)
napi_value tlsOpen(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "tlsOpen");
  Server* server = serverOf(arguments);
  auto tickets = arguments.shared<uint8_t>(1, napi_uint8_array, "is no Uint8Array");
  bool refuses = arguments.truth(2);
  std::string suites = arguments.text(3, kWordsMax), ciphers = arguments.text(4, kWordsMax), groups = arguments.text(5, kWordsMax);
  if (arguments.good && tickets.count != TicketKeys::kBytes) arguments.wrong(1, "has another size", true);
  if (!arguments.good || server == nullptr) return nullptr;
  if (openssl::calls() == nullptr) return fail(env, "tlsOpen", ENOSYS);
  if (server->slots() > 0 || server->tls() != nullptr) return fail(env, "tlsOpen", EBUSY);
  if (keep(env, arguments, 1, &loop_bridge::ownerOf<Listener>(arguments)->kept) == nullptr) return nullptr;
  TlsContext::Given given{tickets.start, refuses, suites, ciphers, groups};
  server->speakTls(std::make_unique<TlsContext>(openssl::calls(), std::move(given)));
  return nullptr;
}

// tlsAdd(listener, names, cert, key): adds one to those that `tlsUse` puts in place. `names`: a line each.
napi_value tlsAdd(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "tlsAdd");
  Server* server = serverOf(arguments);
  std::string names = arguments.text(1, kPemMax), cert = arguments.text(2, kPemMax), key = arguments.text(3, kPemMax);
  if (!arguments.good || server == nullptr || server->tls() == nullptr) return nullptr;
  std::string wrong = server->tls()->add(names, cert, key);
  if (!wrong.empty()) napi_throw_error(env, nullptr, wrong.c_str());
  return nullptr;
}

// tlsUse(listener): new connections get what was added since the last call.
napi_value tlsUse(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "tlsUse");
  Server* server = serverOf(arguments);
  if (!arguments.good || server == nullptr || server->tls() == nullptr) return nullptr;
  if (!server->tls()->use()) napi_throw_error(env, nullptr, "TLS needs a certificate");
  return nullptr;
}

}  // namespace server
