// TLS of the load maker, by the OpenSSL of this machine: it is looked up when it is needed, so that other loads run without it.
// Certificates are not verified: the servers are our own.
#pragma once
#include <dlfcn.h>

#include <cstddef>
#include <stdexcept>
#include <string>

namespace tls {

struct Ssl;
struct Ctx;
struct Session;

// Constants of OpenSSL 3's ssl.h and tls1.h.
constexpr int kCtrlMode = 33, kCtrlReadAhead = 41, kCtrlSessionCache = 44, kCtrlMinVersion = 123, kCtrlMaxVersion = 124;
constexpr long kPartialWrites = 1, kMovingBuffer = 2;
constexpr int kWantRead = 2, kWantWrite = 3, kShutBothSides = 3;

#define LOAD_TLS_CALLS(X)                                              \
  X(TLS_client_method, const void*, (void))                            \
  X(SSL_CTX_new, Ctx*, (const void*))                                  \
  X(SSL_CTX_ctrl, long, (Ctx*, int, long, void*))                      \
  X(SSL_CTX_set_ciphersuites, int, (Ctx*, const char*))                \
  X(SSL_CTX_set_cipher_list, int, (Ctx*, const char*))                 \
  X(SSL_new, Ssl*, (Ctx*))                                             \
  X(SSL_free, void, (Ssl*))                                            \
  X(SSL_set_fd, int, (Ssl*, int))                                      \
  X(SSL_set_session, int, (Ssl*, Session*))                            \
  X(SSL_get1_session, Session*, (Ssl*))                                \
  X(SSL_SESSION_is_resumable, int, (const Session*))                   \
  X(SSL_SESSION_free, void, (Session*))                                \
  X(SSL_session_reused, int, (const Ssl*))                             \
  X(SSL_set_shutdown, void, (Ssl*, int))                               \
  X(SSL_connect, int, (Ssl*))                                          \
  X(SSL_read_ex, int, (Ssl*, void*, size_t, size_t*))                  \
  X(SSL_write_ex, int, (Ssl*, const void*, size_t, size_t*))           \
  X(SSL_get_error, int, (const Ssl*, int))                             \
  X(ERR_clear_error, void, (void))

struct Calls {
#define LOAD_TLS_MEMBER(name, result, arguments) result(*name) arguments = nullptr;
  LOAD_TLS_CALLS(LOAD_TLS_MEMBER)
#undef LOAD_TLS_MEMBER
  Calls() {
    void* library = dlopen("libssl.so.3", RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr) throw std::runtime_error("TLS needs libssl.so.3");
#define LOAD_TLS_FIND(name, result, arguments)                            \
  name = reinterpret_cast<result(*) arguments>(dlsym(RTLD_DEFAULT, #name)); \
  if (name == nullptr) throw std::runtime_error("OpenSSL lacks " #name);
    LOAD_TLS_CALLS(LOAD_TLS_FIND)
#undef LOAD_TLS_FIND
  }
};
#undef LOAD_TLS_CALLS

inline const Calls& calls() {
  static const Calls found;
  return found;
}

// The first ticket that came. Each connection that is to resume a session uses it: not all servers replace one that was used.
inline Session* ticket = nullptr;

// Takes the ticket of a session, where there is one by now.
inline void takeTicket(Ssl* session) {
  Session* found = calls().SSL_get1_session(session);
  if (found == nullptr) return;
  if (calls().SSL_SESSION_is_resumable(found) == 1) ticket = found;
  else calls().SSL_SESSION_free(found);
}

// One version, and its AES-128-GCM, so that all servers do the same work.
inline Ctx* context(const std::string& version) {
  const Calls& ssl = calls();
  Ctx* ctx = ssl.SSL_CTX_new(ssl.TLS_client_method());
  long number = version == "1.2" ? 0x0303 : version == "1.3" ? 0x0304 : 0;
  if (ctx == nullptr || number == 0) throw std::runtime_error("tls=1.2 or tls=1.3");
  ssl.SSL_CTX_ctrl(ctx, kCtrlMinVersion, number, nullptr);
  ssl.SSL_CTX_ctrl(ctx, kCtrlMaxVersion, number, nullptr);
  ssl.SSL_CTX_ctrl(ctx, kCtrlMode, kPartialWrites | kMovingBuffer, nullptr);
  ssl.SSL_CTX_ctrl(ctx, kCtrlReadAhead, 1, nullptr);
  // With a cache OpenSSL would use each ticket of TLS 1.3 once.
  ssl.SSL_CTX_ctrl(ctx, kCtrlSessionCache, 0, nullptr);
  ssl.SSL_CTX_set_ciphersuites(ctx, "TLS_AES_128_GCM_SHA256");
  ssl.SSL_CTX_set_cipher_list(ctx, "ECDHE-ECDSA-AES128-GCM-SHA256");
  return ctx;
}

}  // namespace tls
