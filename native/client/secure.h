// TLS 1.2 and 1.3 of this client, by the OpenSSL inside Node (../server/openssl.h says how its functions are found). OpenSSL sees no
// socket: what was received is a window of bytes that it reads from, and what it writes is gathered.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "../server/openssl.h"

namespace client {

struct Session;
struct Store;
struct VerifyParam;

// The calls beside those of ../server/openssl.h.
#define CLIENT_OPENSSL_CALLS(X)                                                             \
  X(TLS_client_method, const openssl::Method*, (void))                                      \
  X(SSL_CTX_set_verify, void, (openssl::Ctx*, int, int (*)(int, void*)))                    \
  X(SSL_CTX_get_cert_store, Store*, (const openssl::Ctx*))                                  \
  X(SSL_CTX_set_alpn_protos, int, (openssl::Ctx*, const unsigned char*, unsigned))          \
  X(SSL_CTX_sess_set_new_cb, void, (openssl::Ctx*, int (*)(openssl::Ssl*, Session*)))       \
  X(X509_STORE_add_cert, int, (Store*, openssl::X509*))                                     \
  X(X509_VERIFY_PARAM_set1_ip_asc, int, (VerifyParam*, const char*))                        \
  X(X509_VERIFY_PARAM_set_hostflags, void, (VerifyParam*, unsigned))                        \
  X(X509_verify_cert_error_string, const char*, (long))                                     \
  X(SSL_get0_param, VerifyParam*, (openssl::Ssl*))                                          \
  X(SSL_set1_host, int, (openssl::Ssl*, const char*))                                       \
  X(SSL_ctrl, long, (openssl::Ssl*, int, long, void*))                                      \
  X(SSL_set_connect_state, void, (openssl::Ssl*))                                           \
  X(SSL_get_verify_result, long, (const openssl::Ssl*))                                     \
  X(SSL_set_shutdown, void, (openssl::Ssl*, int))                                           \
  X(SSL_set_session, int, (openssl::Ssl*, Session*))                                        \
  X(SSL_SESSION_get_protocol_version, int, (const Session*))                                \
  X(SSL_SESSION_free, void, (Session*))

struct TlsCalls : openssl::Calls {
#define CLIENT_OPENSSL_MEMBER(name, result, arguments) result(*name) arguments = nullptr;
  CLIENT_OPENSSL_CALLS(CLIENT_OPENSSL_MEMBER)
#undef CLIENT_OPENSSL_MEMBER

  TlsCalls() {
#define CLIENT_OPENSSL_FIND(name, result, arguments)                        \
  name = reinterpret_cast<result(*) arguments>(dlsym(RTLD_DEFAULT, #name)); \
  all = all && name != nullptr;
    CLIENT_OPENSSL_CALLS(CLIENT_OPENSSL_FIND)
#undef CLIENT_OPENSSL_FIND
  }
};
#undef CLIENT_OPENSSL_CALLS

// Null: this Node has no OpenSSL 3, or not all of it.
const TlsCalls* tlsCalls();

// Sessions of one server that the next connections resume. A ticket of TLS 1.3 is used once (RFC 8446 appendix C.4).
class Resumable {
 public:
  ~Resumable();
  Resumable() = default;
  Resumable(Resumable&& other) noexcept : kept_(std::move(other.kept_)) { other.kept_.clear(); }
  Resumable(const Resumable&) = delete;
  Resumable& operator=(const Resumable&) = delete;
  void keep(Session* session);
  // Has `ssl` begin with the newest, where there is one.
  void begin(openssl::Ssl* ssl);

 private:
  std::vector<Session*> kept_;
};

// What certificates of servers are checked against, and which ciphers are offered.
class Trust {
 public:
  explicit Trust(const TlsCalls* calls);
  ~Trust();
  Trust(const Trust&) = delete;
  Trust& operator=(const Trust&) = delete;

  // False: this OpenSSL lacks one of them.
  bool offer(const std::string& suites, const std::string& ciphers);
  // Adds the certificates of a PEM text. Returns how many were in it.
  size_t add(const std::string& pem);

  const TlsCalls* const ssl;

 private:
  friend class Secure;
  openssl::Ctx* ctx_;
  openssl::BioMethod* method_;
  std::string out_;
  const char* in_ = nullptr;
  size_t inLength_ = 0;

  static int writeBio(openssl::Bio* bio, const char* bytes, int length);
  static int readBio(openssl::Bio* bio, char* to, int length);
};

// TLS of one connection.
class Secure {
 public:
  // The server must have a certificate for this name, or this address where `isAddress`.
  Secure(Trust* trust, Resumable* resumable, const std::string& host, bool isAddress);
  ~Secure();
  Secure(const Secure&) = delete;
  Secure& operator=(const Secure&) = delete;

  bool isUp = false, failed = false;
  // The server has stated that no more will come.
  bool ends = false;
  // Sealed bytes that are to be sent.
  std::string out;
  // Why it has failed.
  std::string reason;

  // Begins the handshake.
  void begin() { take(nullptr, 0, nullptr, 0); }
  // Uses these bytes from the socket. Returns how many plain ones are now in `to`, which must have room for as many and one record.
  size_t take(const char* bytes, size_t length, char* to, size_t room);
  void seal(const char* bytes, size_t length);
  // Says that no more will be sent.
  void close();

 private:
  friend class Trust;
  Trust* const trust_;
  Resumable* const resumable_;
  openssl::Ssl* ssl_;
  static int keepSession(openssl::Ssl* ssl, Session* session);
  void handshake();
  void fail();
};

}  // namespace client
